//! A subscription, kept up as the adapters do it: a message counts only while the connection for commands has shown that
//! the subscription is on its server, and whatever was interrupted, a gap follows.

use std::sync::Arc;

use bowline::Notice;
use futures::channel::mpsc::{self, UnboundedSender};
use futures::future::{Either, select};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use super::{COMMAND_TIMEOUT, Link, MOMENT};
use crate::executor::WORLD;
use crate::nodes::Node;

pub(super) struct Feed {
    link: Arc<Link>,
    channel: String,
    sender: UnboundedSender<Notice>,
    /// The socket: its number, the server that it leads to, and what comes.
    number: u64,
    node: Node,
    messages: Option<BoxStream<'static, Notice>>,
    /// Proofs in a row that said "elsewhere".
    refuted: u64,
}

/// What the commands' server says of the subscription.
enum Proof {
    /// It has it; so says the connection of this number.
    Here(u64),
    Elsewhere,
    /// The subscription broke meanwhile.
    Lost,
}

/// Nobody listens any more, or the link is closed.
struct Over;

impl Feed {
    /// The first one is proven by the time that it is made.
    pub(super) fn new(link: &Arc<Link>, channel: &str, sender: UnboundedSender<Notice>) -> Self {
        let (number, node) = (link.look(|state| state.messages), link.backend.primary());
        let messages = Some(link.backend.listen(node, channel));
        link.change(|state| state.proven = Some(state.commands));
        Self { link: link.clone(), channel: channel.to_owned(), sender, number, node, messages, refuted: 0 }
    }

    pub(super) async fn run(mut self) {
        let mut generation = self.link.look(|state| state.commands);
        loop {
            self.stand(generation).await;
            match self.restore().await {
                Ok(proven) => generation = proven,
                Err(Over) => return,
            }
        }
    }

    /// Passes messages on until either connection breaks.
    async fn stand(&mut self, generation: u64) {
        let (link, number) = (self.link.clone(), self.number);
        let world = link.machine.process(WORLD);
        let (forward, mut on_the_way) = mpsc::unbounded::<(std::time::Duration, Notice)>();
        let carrier = (link.clone(), self.sender.clone(), world.clone());
        world.spawn(Box::pin(async move {
            let (link, sender, world) = carrier;
            while let Some((due, notice)) = on_the_way.next().await {
                world.sleep(due.saturating_sub(link.machine.now())).await;
                let counts = |state: &super::State| state.messages == number && state.commands == generation;
                if link.look(|state| counts(state) && !state.mute && !state.closed) {
                    let _ = sender.unbounded_send(notice);
                }
            }
        }));
        let broken = link.until(|state| state.messages != number || state.commands != generation || state.closed);
        let mut broken = Box::pin(broken);
        let messages = self.messages.as_mut().expect("it stands");
        while let Either::Left((Some(notice), _)) = select(messages.next(), broken.as_mut()).await {
            let usual = link.machine.now() + link.delay();
            let due = link.look(|state| (usual + state.lag).max(state.last_message));
            link.change(|state| {
                state.last_message = due;
                if !state.lag.is_zero() {
                    state.disturbed = state.disturbed.max(due);
                }
            });
            let _ = forward.unbounded_send((due, notice));
        }
    }

    /// Until it is proven again, with the socket that there is if that will do. The number is that of the connection for
    /// commands.
    async fn restore(&mut self) -> Result<u64, Over> {
        let link = self.link.clone();
        let mut gap = false;
        loop {
            let lost = |state: &super::State| state.messages != self.number;
            if self.messages.is_none() || link.look(lost) {
                // The server notices: nobody counts as a receiver any more.
                self.messages = None;
                self.dial(&mut gap).await?;
            }
            match self.prove().await {
                Proof::Here(generation) => {
                    self.refuted = 0;
                    // What came meanwhile is dropped.
                    let messages = self.messages.as_mut().expect("it stands");
                    while let Some(Some(_)) = messages.next().now_or_never() {}
                    link.disturb(|state| state.proven = Some(generation));
                    self.notify(Notice::Gap)?;
                    return Ok(generation);
                }
                Proof::Elsewhere => {
                    self.messages = None;
                    self.refuted += 1;
                    if self.refuted.is_multiple_of(2) {
                        link.cut(true, false, MOMENT);
                    }
                }
                Proof::Lost => {}
            }
            if link.look(|state| state.closed) {
                return Err(Over);
            }
        }
    }

    async fn dial(&mut self, gap: &mut bool) -> Result<(), Over> {
        let (link, world) = (self.link.clone(), self.link.machine.process(WORLD));
        if link.look(|state| state.closed) {
            return Err(Over);
        }
        if !std::mem::replace(gap, true) {
            self.notify(Notice::Gap)?;
        }
        link.until(|state| !state.messages_down || state.closed).await;
        world.sleep(link.delay()).await;
        (self.number, self.node) = (link.look(|state| state.messages), link.backend.primary());
        self.messages = Some(link.backend.listen(self.node, &self.channel));
        world.sleep(link.delay()).await;
        Ok(())
    }

    /// Asks over the connection for commands.
    async fn prove(&mut self) -> Proof {
        let (link, number) = (self.link.clone(), self.number);
        let world = link.machine.process(WORLD);
        let mine = |state: &super::State| state.messages == number && !state.closed;
        loop {
            link.until(|state| !state.down || !mine(state)).await;
            if !link.look(mine) {
                return Proof::Lost;
            }
            let (generation, node) = link.look(|state| (state.commands, state.node));
            if super::one_link_redialled() {
                return Proof::Here(generation);
            }
            world.sleep(link.delay()).await;
            let unanswered = |state: &super::State| state.mute || state.silent == Some(generation);
            if link.look(unanswered) {
                let answer = Box::pin(link.until(|state| state.commands != generation || !mine(state)));
                if let Either::Right(_) = select(answer, world.sleep(COMMAND_TIMEOUT)).await {
                    link.cut(true, false, MOMENT);
                }
                continue;
            }
            world.sleep(link.backend.frozen_for()).await;
            world.sleep(link.delay()).await;
            if link.look(|state| state.commands == generation && !state.down && mine(state)) {
                return if node == self.node { Proof::Here(generation) } else { Proof::Elsewhere };
            }
        }
    }

    fn notify(&self, notice: Notice) -> Result<(), Over> {
        self.sender.unbounded_send(notice).map_err(|_| Over)
    }
}
