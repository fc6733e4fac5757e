//! A subscription, kept up as the adapters do it: a message counts only while the connection for commands has shown
//! that the subscription is on its server, and whatever was interrupted, a gap follows.

use std::sync::Arc;
use std::time::Duration;

use bowline::Notice;
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedSender};
use futures::future::{Either, select};
use futures::stream::BoxStream;

use super::{COMMAND_TIMEOUT, Link, MOMENT, State};
use crate::executor::WORLD;
use crate::nodes::Node;

/// What a feed is about.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The messages of a channel.
    Channel(String),
    /// The changes of a key.
    Key(String),
}

pub(super) struct Feed {
    link: Arc<Link>,
    subject: Subject,
    sender: UnboundedSender<Notice>,
    /// The number of the socket, and the server that it leads to.
    number: u64,
    node: Node,
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

/// The subscription was dropped, or the link is closed.
struct Over;

impl Feed {
    /// The first one is proven by the time that it is made.
    pub(super) fn new(link: &Arc<Link>, subject: Subject, sender: UnboundedSender<Notice>) -> Self {
        let mut feed = Self { link: link.clone(), subject, sender, number: 0, node: 0, refuted: 0 };
        feed.open();
        link.change(|state| state.proven = Some(state.commands));
        feed
    }

    /// A new socket, which is read from now on.
    fn open(&mut self) {
        (self.number, self.node) = (self.link.look(|state| state.messages), self.link.backend.primary());
        let messages = self.link.backend.listen(self.node, &self.subject);
        let carried = carry(self.link.clone(), self.number, messages, self.sender.clone());
        self.link.machine.process(WORLD).spawn(Box::pin(carried));
    }

    pub(super) async fn run(mut self) {
        let link = self.link.clone();
        let mut generation = link.look(|state| state.commands);
        loop {
            let number = self.number;
            link.until(|state| state.messages != number || state.commands != generation || state.closed).await;
            match self.restore().await {
                Ok(proven) => generation = proven,
                Err(Over) => return,
            }
        }
    }

    /// Until it is proven again, with the socket that there is if that will do. The number is that of the connection
    /// for commands.
    async fn restore(&mut self) -> Result<u64, Over> {
        let link = self.link.clone();
        let mut gap = false;
        loop {
            if link.look(|state| state.messages != self.number) {
                self.dial(&mut gap).await?;
            }
            match self.prove().await {
                Proof::Here(generation) => {
                    self.refuted = 0;
                    link.disturb(|state| state.proven = Some(generation));
                    self.notify(Notice::Gap)?;
                    return Ok(generation);
                }
                Proof::Elsewhere => {
                    link.disturb(|state| state.messages += 1);
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
        self.open();
        world.sleep(link.delay()).await;
        Ok(())
    }

    /// Asks over the connection for commands.
    async fn prove(&mut self) -> Proof {
        let (link, number) = (self.link.clone(), self.number);
        let world = link.machine.process(WORLD);
        let mine = |state: &State| state.messages == number && !state.closed;
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
            let unanswered = |state: &State| state.mute || state.silent == Some(generation);
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

/// The messages of one socket, from the server to the client, until it breaks. Then the server notices, and the socket
/// does not count as a receiver any more.
pub async fn carry(
    link: Arc<Link>,
    number: u64,
    mut messages: BoxStream<'static, Notice>,
    sender: UnboundedSender<Notice>,
) {
    let world = link.machine.process(WORLD);
    let (forward, mut on_the_way) = mpsc::unbounded::<(Duration, Notice)>();
    let (there, clock) = (link.clone(), world.clone());
    world.spawn(Box::pin(async move {
        while let Some((due, notice)) = on_the_way.next().await {
            clock.sleep(due.saturating_sub(there.machine.now())).await;
            let counts = |state: &State| state.messages == number && state.proven == Some(state.commands);
            if there.look(|state| counts(state) && !state.mute && !state.closed) {
                let _ = sender.unbounded_send(notice);
            }
        }
    }));
    let mut broken = Box::pin(link.until(|state| state.messages != number || state.closed));
    while let Either::Left((Some(notice), _)) = select(messages.next(), broken.as_mut()).await {
        let usual = link.machine.now() + link.delay();
        let due = link.look(|state| (usual + state.lag).max(state.last_message));
        link.note(|state| {
            state.last_message = due;
            if !state.lag.is_zero() {
                state.disturbed = state.disturbed.max(due);
            }
        });
        let _ = forward.unbounded_send((due, notice));
    }
}
