//! A subscription to one server. Its messages count only while the server that executes the commands has the
//! subscription.
//!
//! When the connection for commands is lost, the subscription keeps its socket, but drops messages until the next
//! connection has proven the socket.
//!
//! After a failed proof, the subscription dials anew. After every second failure in a row, the connection for commands
//! does too, because either of them may lead to the wrong server. They do not dial together every time: behind a
//! balancer that sends the dials of a client to two servers in turn, they would never meet.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::PushInfo;
use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use futures::FutureExt;
use futures::future::{Either, OptionFuture, join, select};

use super::super::convert;
use super::super::dial::handshake::{self, Fresh, driven};
use super::super::dial::progress::DialProgress;
use super::super::dial::wishes::{self, Beside, Wishes};
use super::super::failure::Failure;
use super::super::link::Link;
use super::proof::{self, Early, Proof};
use super::{Notices, Proven, Source, Subject, Subscription, Tracked, pass_on, subscribe};
use crate::connection::ConnectionError;
use crate::observe;
use crate::runtime::Executor;

/// How often an idle connection is checked.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// See [`subscribe`].
pub(in super::super) async fn at_one_server(
    link: &Arc<Link>,
    subject: Subject<'_>,
    number: u64,
) -> Result<Subscription, ConnectionError> {
    let inbox = match subject {
        Subject::Channel(_) => None,
        Subject::Key { inbox, .. } => Some(inbox.to_owned()),
    };
    let source = OneServer { link: Arc::clone(link), inbox, refuted: 0 };
    subscribe(source, Some(Arc::clone(link)), subject.name(), link.seed.wrapping_add(number)).await
}

struct OneServer {
    /// The connection for commands.
    link: Arc<Link>,
    /// The channel of the client, if a key is watched. The user may not subscribe a channel that begins like the key.
    inbox: Option<String>,
    /// The number of failed proofs in a row.
    refuted: u64,
}

/// A socket that is subscribed to the channel, or watches the key, and is subscribed to its own probe.
struct Socket {
    fresh: Fresh,
    probe: String,
    /// The question for a proof that was sent right after the subscription. Most often it arrives later, too.
    early: Option<Early>,
    /// The key that it watches, if it does.
    tracked: Option<Tracked>,
    /// The generation of the connection for commands that has proven this socket, or 0.
    proven: Arc<AtomicU64>,
}

impl Source for OneServer {
    type Socket = Socket;

    fn executor(&self) -> &Arc<dyn Executor> {
        &self.link.executor
    }

    fn limits(&self) -> [Duration; 2] {
        [self.link.upkeep, self.link.timeout]
    }

    /// A replica is refused, but tried again: behind a load balancer, the next dial may lead to the primary.
    async fn open(
        &mut self,
        channel: &str,
        notices: &Notices,
        progress: &Arc<DialProgress>,
    ) -> Result<Socket, Failure> {
        let proven = Arc::new(AtomicU64::new(0));
        let messages = {
            let (notices, proven) = (notices.clone(), Arc::clone(&proven));
            move |push: PushInfo| match proven.load(Ordering::SeqCst) {
                0 => Ok(()),
                proven => notices.push(push, Some(proven)),
            }
        };
        let (tracked, push): (_, Arc<dyn AsyncPushSender>) = match self.inbox {
            None => (None, Arc::new(messages)),
            Some(_) => {
                let (tracked, reports) = Tracked::new(channel);
                (Some(tracked), reports)
            }
        };
        let probe = proof::probe(self.inbox.as_deref().unwrap_or(channel));
        let both = [channel, &probe];
        let channels = if tracked.is_none() { &both[..] } else { &both[1..] };
        let mut early = Early::new(&self.link, &probe);
        let beside: Beside<'_> = Box::new(|_| early.ask().boxed());
        let wishes = Wishes { beside: Some(beside), ..Wishes::subscribing(push, channels) };
        let made = self.link.dial_to_subscribe(wishes, progress).await.map_err(|failure| match &failure {
            Failure::Refused(refusal) | Failure::Explained(refusal, _) if convert::is_of_a_replica(refusal) => {
                Failure::Io(failure.to_string())
            }
            _ => failure,
        })?;
        let (mut fresh, mut answers) = (made.fresh, made.answers);
        channels.iter().try_for_each(|_| wishes::subscribed(answers.next()))?;
        if let Some(tracked) = &tracked {
            tracked.begin(&mut fresh).await?;
        }
        // With a second login, it may be the first connection that the server of the commands has seen.
        let early = made.at_once.then_some(early);
        Ok(Socket { fresh, probe, early, tracked, proven })
    }

    async fn prove(&mut self, socket: &mut Socket) -> Proven {
        let generation = match socket.prove(&self.link).await {
            None => return Proven::Ended,
            Some(Proof::Here(_)) => {
                self.refuted = 0;
                return Proven::Yes;
            }
            Some(Proof::Refused(refusal)) => return Proven::Refused(refusal),
            Some(Proof::Unanswered) => return Proven::Unanswered,
            Some(Proof::Elsewhere(generation)) => generation,
        };
        let failure = Failure::Io("the subscription is on another server than the commands".to_owned());
        self.refuted += 1;
        if self.refuted.is_multiple_of(2) {
            self.link.suspect(generation, failure.clone());
        }
        Proven::No(failure)
    }

    /// Reads until the socket ends, does not answer a heartbeat, or leads to a server that is no longer the primary; or
    /// until the connection for commands ends, and the proof with it.
    async fn stand(&self, mut socket: Socket, notices: &Notices) -> Option<Socket> {
        let (link, generation) = (&*self.link, socket.proven.load(Ordering::SeqCst));
        let (Fresh { target, connection, driver }, tracked) = (&mut socket.fresh, &mut socket.tracked);
        let changed = || notices.changed(Some(generation));
        let reports = pass_on(tracked.as_mut(), &link.executor, connection.clone(), (HEARTBEAT, link.upkeep), changed);
        let heartbeat = async {
            loop {
                link.executor.sleep(HEARTBEAT).await;
                if !answers(link, connection).await {
                    return;
                }
            }
        };
        let lapsed = {
            let (heartbeat, reports) = (pin!(heartbeat), pin!(reports));
            let own = select(select(driver, select(heartbeat, reports)), link.locate.left(target));
            matches!(select(own, pin!(link.gone(generation))).await, Either::Right(_))
        };
        lapsed.then_some(socket)
    }

    async fn idle(&self, mut socket: Socket, pause: Duration) -> Option<Socket> {
        let is_up = matches!(select(self.link.executor.sleep(pause), &mut socket.fresh.driver).await, Either::Left(_));
        is_up.then_some(socket)
    }

    async fn pause(&self, pause: Duration) {
        self.link.pause(pause).await;
    }

    fn reconnected(&self) {
        self.link.reconnected(observe::MESSAGES);
    }

    fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let link = Arc::clone(&self.link);
        async move { link.closed().await }
    }
}

impl Socket {
    /// Waits for a connection for commands and asks its server for a proof. Also sends a `PING` over the own socket,
    /// because the server may still count a socket that is dead. `None`: the socket has ended meanwhile.
    async fn prove(&mut self, link: &Link) -> Option<Proof> {
        let Fresh { connection, driver, .. } = &mut self.fresh;
        let early = self.early.take();
        let asked = async {
            // The server has just confirmed the subscription, so this socket needs no other sign of life.
            if let Some(generation) = OptionFuture::from(early.map(Early::proven)).await.flatten() {
                return Some(Proof::Here(generation));
            }
            let Ok(up) = link.ready().await else {
                // The connection is closed, and this task is about to be dropped. If this returned, the task would ask
                // again at once.
                return pending().await;
            };
            let (proof, answers) = join(proof::prove(link, &up, &self.probe), answers(link, connection)).await;
            answers.then_some(proof)
        };
        let proof = driven(driver, asked).await.ok()??;
        if let Proof::Here(generation) = proof {
            self.proven.store(generation, Ordering::SeqCst);
        }
        Some(proof)
    }
}

/// Sends a `PING`, whose answer also says how long a round trip takes.
async fn answers(link: &Link, connection: &mut MultiplexedConnection) -> bool {
    let (ping, sent) = (handshake::ping(), link.executor.now());
    let is_answered = matches!(link.within(link.upkeep, connection.send_packed_command(&ping)).await, Some(Ok(_)));
    if is_answered {
        link.answered(link.executor.now().saturating_duration_since(sent));
    }
    is_answered
}

#[cfg(test)]
mod tests;
