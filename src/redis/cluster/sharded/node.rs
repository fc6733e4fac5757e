//! Keeps the channels of one master's slots subscribed there.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use rustc_hash::FxHashSet;

use super::super::super::failure::Failure;
use super::super::super::link::attempt;
use super::super::host::Host;
use super::super::redirect::Redirect;
use super::super::router::Router;
use super::super::subscription::{CutOff, HEARTBEAT, limits};
use super::channels::Channels;
use super::socket::{ChannelAnswer, FromNode, Socket};
use crate::backoff::Backoff;
use crate::mutant::{self, Mutant};
use crate::protocol::slot;
use crate::redis::dial::progress::DialProgress;
use crate::tuning::{BATCH, CHANNEL, RECONNECT};

/// Keeps the wanted channels of a master subscribed, until none is wanted there any more.
pub(super) async fn keep(router: &Router, channels: &Channels, host: &Host) {
    let node = Node { router, channels, host };
    select(pin!(node.stand()), pin!(node.unwanted())).await;
    channels.look(|table| {
        table.left_all(host);
        table.places.forget(host);
    });
}

struct Node<'a> {
    router: &'a Router,
    channels: &'a Channels,
    host: &'a Host,
}

/// A socket with its subscribed channels.
struct Subscribed<'a> {
    node: &'a Node<'a>,
    socket: Socket,
    /// The time limit for one answer. It was long enough for all the answers that opening the socket took.
    limit: Duration,
    here: FxHashSet<Arc<str>>,
    /// The channels to check: they may be wanted and not subscribed here, or subscribed here and not wanted.
    open: FxHashSet<Arc<str>>,
    /// Channels that must not be tried again before the pause is over.
    put_off: FxHashSet<Arc<str>>,
    /// Resolves when the channels that were put off are to be tried again.
    again: BoxFuture<'static, ()>,
    backoff: Backoff,
}

/// The next event at a socket.
enum Next {
    FromNode(Option<FromNode>),
    /// The wanted channels have changed, or a slot has another master.
    Changed,
    Heartbeat,
    /// The channels that were put off are to be tried again.
    Again,
}

impl Node<'_> {
    async fn unwanted(&self) {
        loop {
            let changed = self.channels.listen(self.host);
            if self.channels.look(|table| table.places.wanted(self.host).is_none()) {
                return;
            }
            changed.await;
        }
    }

    /// Opens one socket after another.
    async fn stand(&self) {
        let Self { router, channels, host } = *self;
        let mut backoff = Backoff::new(RECONNECT, router.seed.wrapping_add(host.port.into()));
        let (mut again, [mut limit, _]) = (false, limits(router));
        loop {
            let progress: Arc<DialProgress> = Arc::default();
            let opened = Socket::open(router, host, &progress);
            let ended = match attempt(&router.executor, limits(router), &mut limit, &progress, opened).await {
                Ok(socket) => {
                    if std::mem::replace(&mut again, true) {
                        router.resubscribed();
                    }
                    let since = router.executor.now();
                    let failure = Subscribed::new(self, socket, limit).read().await;
                    channels.look(|table| table.left_all(host));
                    backoff.lasted(router.executor.now().saturating_duration_since(since));
                    failure
                }
                Err(failure) => failure,
            };
            let wanted = channels.wanted_at(host);
            channels.look(|table| match ended {
                Failure::Io(_) | Failure::Left => wanted.iter().for_each(|channel| table.failed(channel, &ended)),
                _ => wanted.iter().for_each(|channel| table.refused(channel, &ended)),
            });
            // Other nodes know whether this master was replaced.
            router.signals.suspect_map();
            router.executor.sleep(backoff.pause()).await;
        }
    }
}

impl<'a> Subscribed<'a> {
    fn new(node: &'a Node<'a>, socket: Socket, limit: Duration) -> Self {
        let backoff = Backoff::new(CHANNEL, node.router.seed);
        Self {
            node,
            socket,
            limit,
            here: FxHashSet::default(),
            open: node.channels.wanted_at(node.host),
            put_off: FxHashSet::default(),
            again: pending().boxed(),
            backoff,
        }
    }

    /// Subscribes the wanted channels and reads messages, until the socket ends or is given up.
    async fn read(mut self) -> Failure {
        let Node { router, channels, .. } = *self.node;
        let (mut heartbeat, mut cut_off) = (router.executor.sleep(HEARTBEAT), CutOff::default());
        loop {
            let mut changed = channels.listen(self.node.host);
            match self.adjust().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(failure) => return failure,
            }
            loop {
                let next = {
                    let timers = select(&mut heartbeat, &mut self.again);
                    match select(pin!(self.socket.hear()), select(&mut changed, timers)).await {
                        Either::Left((said, _)) => Next::FromNode(said),
                        Either::Right((Either::Left(_), _)) => Next::Changed,
                        Either::Right((Either::Right((Either::Left(_), _)), _)) => Next::Heartbeat,
                        Either::Right((Either::Right((Either::Right(_), _)), _)) => Next::Again,
                    }
                };
                match next {
                    Next::FromNode(None) => return Failure::Io("the connection was lost".to_owned()),
                    Next::FromNode(Some(FromNode::Message { channel, payload })) => {
                        channels.look(|table| table.deliver(&channel, self.node.host, payload));
                        continue;
                    }
                    Next::Heartbeat => match router.within(self.limit, self.socket.is_alive()).await {
                        Some(Ok(is_alive)) if !cut_off.is_sure(router, is_alive) => {
                            heartbeat = router.executor.sleep(HEARTBEAT);
                            continue;
                        }
                        _ => return Failure::Io("the node is cut off from the cluster".to_owned()),
                    },
                    Next::FromNode(Some(FromNode::Left(channel))) => self.lose(&channel),
                    Next::Again => self.open.extend(self.put_off.drain()),
                    Next::Changed => {}
                }
                break;
            }
        }
    }

    /// Records that the server has ended the subscription by itself, because the slot has another master or soon will.
    fn lose(&mut self, channel: &str) {
        let Node { router, channels, host } = *self.node;
        if mutant::on(Mutant::InboxLeftBehind) {
            return;
        }
        if self.here.remove(channel) {
            channels.look(|table| table.left(channel, host));
            self.open.insert(channel.into());
            router.signals.suspect_map();
        }
    }

    /// Subscribes channels that are wanted and unsubscribes those that are not, at most a batch of each. Returns
    /// whether there was anything to do, because more may remain then.
    async fn adjust(&mut self) -> Result<bool, Failure> {
        let Node { router, channels, host } = *self.node;
        if self.put_off.is_empty() {
            self.again = pending().boxed();
        }
        let (mut unwanted, mut missing) = (Vec::new(), Vec::new());
        channels.look(|table| {
            self.open.extend(table.places.take_changed(host));
            for channel in std::mem::take(&mut self.open) {
                match (table.is_wanted_at(&channel, host), self.here.contains(&channel)) {
                    (false, false) => {}
                    // It may have been dropped and wanted again meanwhile.
                    (true, true) => table.subscribed(&channel, host),
                    (false, true) if unwanted.len() < BATCH => {
                        self.here.remove(&channel);
                        table.left(&channel, host);
                        unwanted.push(channel);
                    }
                    (true, false) if self.put_off.contains(&channel) => {}
                    (true, false) if missing.len() < BATCH => missing.push(channel),
                    (_, _) => {
                        self.open.insert(channel);
                    }
                }
            }
        });
        if unwanted.is_empty() && missing.is_empty() {
            if self.put_off.is_empty() {
                self.backoff = Backoff::new(CHANNEL, router.seed);
            }
            return Ok(false);
        }
        let exchange = self.socket.exchange(&unwanted, &missing);
        let late = || Err(Failure::Io("the node gave no answer".to_owned()));
        let answers = router.within(self.limit, exchange).await.unwrap_or_else(late)?;
        for (channel, answer) in missing.into_iter().zip(answers) {
            self.answered(channel, answer);
        }
        Ok(true)
    }

    fn answered(&mut self, channel: Arc<str>, answer: ChannelAnswer) {
        let Node { router, channels, host } = *self.node;
        let Err(refusal) = answer else {
            channels.look(|table| table.confirmed(&channel, host));
            self.here.insert(channel);
            return;
        };
        if self.put_off.is_empty() {
            self.again = router.executor.sleep(self.backoff.pause());
        }
        let slot = slot::of(&channel);
        match Redirect::of(&refusal, host) {
            Some(Redirect::Moved(Some(owner))) => router.moved(slot, &router.public(owner)),
            Some(_) => router.signals.suspect_map(),
            None => {
                let failure = Failure::Refused(refusal);
                channels.look(|table| table.refused(&channel, &failure));
                self.put_off.insert(channel);
                return;
            }
        }
        channels.look(|table| table.failed(&channel, &Failure::Refused(refusal)));
        self.put_off.insert(channel);
    }
}
