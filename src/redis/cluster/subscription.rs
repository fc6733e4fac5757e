//! A subscription in a cluster: one socket at any master.
//!
//! What any node publishes reaches all of them over the cluster's bus, so it does not matter which one has the socket. It has to
//! be on the bus: a node that is cut off still answers `PING`, but its `CLUSTER INFO` says `fail`, and the others replace it.
//!
//! | event | what follows |
//! |---|---|
//! | the socket ends, the node says `fail`, or is no master any more | a gap, another socket, a gap |
//! | a link for commands was made anew, or a master was replaced | a gap |

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::redis::aio::SendError;
use ::redis::{PushInfo, PushKind, Value};
use futures::Stream;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use futures::future::{Either, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::handshake::{self, Fresh};
use super::super::link::{RECONNECT, attempt};
use super::super::progress::Progress;
use super::host::Host;
use super::place::Place;
use super::reading::is_up;
use super::router::Router;
use crate::backoff::Backoff;
use crate::connection::{ConnectionError, Notice, Reply};
use crate::mutant::{self, Mutant};

/// How often a node is asked whether it still belongs to the cluster.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(2);

/// The receiving end. Dropping it ends the task and closes the connection.
struct Subscription {
    notices: UnboundedReceiver<Notice>,
    _alive: oneshot::Sender<Infallible>,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        Pin::new(&mut self.notices).poll_next(cx)
    }
}

/// Returns when the subscription is confirmed. Connection errors are retried until the deadline, a refusal is not.
pub(super) async fn subscribe(
    router: &Arc<Router>,
    channel: &str,
    number: u64,
) -> Result<impl Stream<Item = Notice> + Send + 'static, ConnectionError> {
    if router.is_closed() {
        return Err(ConnectionError::Closed);
    }
    let (sender, notices) = mpsc::unbounded();
    let (alive, wanted) = oneshot::channel::<Infallible>();
    let (confirm, confirmed) = oneshot::channel();
    let backoff = Backoff::new(RECONNECT, router.seed.wrapping_add(number));
    let next = router.seed.wrapping_add(number);
    let ([limit, _], channel) = (limits(router), channel.to_owned());
    let mut feed = Feed { router: Arc::clone(router), channel, notices: sender, backoff, next, limit };
    let until_closed = Arc::clone(router);
    router.executor.spawn(Box::pin(async move {
        let work = pin!(feed.run(confirm));
        let closed = pin!(until_closed.closed());
        select(work, select(wanted, closed)).await;
    }));
    match confirmed.await {
        Ok(Ok(())) => Ok(Subscription { notices, _alive: alive }),
        Ok(Err(failure)) => Err(failure.into()),
        // The task was dropped: the connection is closed, or the runtime is shut down.
        Err(oneshot::Canceled) => Err(ConnectionError::Closed),
    }
}

/// The state of the task.
struct Feed {
    router: Arc<Router>,
    channel: String,
    notices: UnboundedSender<Notice>,
    backoff: Backoff,
    /// The number of attempts. Each attempt goes to the next master. The first master is random, so that clients are spread.
    next: u64,
    /// The time limit for the next attempt at a new socket.
    limit: Duration,
}

/// The shortest and the longest time limit of an attempt at one node. The shortest leaves time for another node if this one gives no
/// answer, but not less than ten round trips, of which an attempt needs about half.
pub(super) fn limits(router: &Router) -> [Duration; 2] {
    let longest = router.config.command_timeout;
    [longest.min(Duration::from_secs(1).max(router.patient() * 5)), longest]
}

/// A socket that is subscribed.
struct Socket {
    host: Host,
    fresh: Fresh,
    /// The number of gaps when the socket was dialled.
    gaps: u64,
}

impl Feed {
    async fn run(&mut self, confirm: oneshot::Sender<Result<(), Failure>>) {
        let router = Arc::clone(&self.router);
        let limit = router.config.command_timeout;
        let mut last = Failure::Io(format!("no answer within {limit:?}"));
        let first = router.within(limit, self.first(&mut last)).await;
        let mut socket = match first.unwrap_or(Err(last)) {
            Ok(socket) => socket,
            Err(failure) => {
                let _ = confirm.send(Err(failure));
                return;
            }
        };
        if confirm.send(Ok(())).is_err() {
            return;
        }
        loop {
            let since = router.executor.now();
            socket.stand(&router, &self.notices).await;
            self.notify(Notice::Gap);
            self.backoff.lasted(router.executor.now().saturating_duration_since(since));
            socket = self.restore().await;
            router.resubscribed();
            // Sent now, so that messages which arrive before this notice count as not missed.
            self.notify(Notice::Gap);
        }
    }

    /// Tries again while it is polled. `last` keeps the last failure.
    async fn first(&mut self, last: &mut Failure) -> Result<Socket, Failure> {
        loop {
            match self.open(&Arc::default()).await {
                Ok(socket) => return Ok(socket),
                Err(failure @ Failure::Io(_)) => *last = failure,
                Err(failure) => return Err(failure),
            }
            self.router.executor.sleep(self.backoff.pause()).await;
        }
    }

    async fn restore(&mut self) -> Socket {
        let router = Arc::clone(&self.router);
        let mut refused = false;
        loop {
            router.executor.sleep(self.backoff.pause()).await;
            let (mut limit, progress) = (self.limit, Arc::default());
            let opened = attempt(&router.executor, limits(&router), &mut limit, &progress, self.open(&progress)).await;
            self.limit = limit;
            match opened {
                Ok(socket) => return socket,
                Err(Failure::Io(_)) => {}
                // Reported once. Further refusals are no news.
                Err(failure) if !std::mem::replace(&mut refused, true) => self.notify(Notice::Refused(failure.into())),
                Err(_) => {}
            }
        }
    }

    /// Connects to the next master, subscribes and waits for the confirmation.
    async fn open(&mut self, progress: &Arc<Progress>) -> Result<Socket, Failure> {
        let (router, gaps) = (&self.router, self.router.signals.gaps());
        let map = router.map();
        let count = u64::try_from(map.masters().len()).unwrap_or(1).max(1);
        let place = usize::try_from(self.next % count).unwrap_or(0);
        self.next = self.next.wrapping_add(1);
        let host = map.masters().get(place).ok_or_else(|| Failure::Io("no master is known".to_owned()))?;
        let target = Place::new(&router.seeds.access, host.clone()).target()?;
        let push = {
            let notices = self.notices.clone();
            move |push: PushInfo| deliver(&notices, push)
        };
        let mut fresh = handshake::login(target, &*router.dialer, Some(Arc::new(push)), progress).await?;
        handshake::prepare(&mut fresh, false).await?;
        let subscribed = {
            let Fresh { connection, driver, .. } = &mut fresh;
            let mut asked = connection.clone();
            let confirmation = pin!(async {
                if !alive(&mut asked).await? && !router.signals.is_down() {
                    return Err(Failure::Io("the node is cut off from the cluster".to_owned()));
                }
                connection.subscribe(&self.channel).await.map_err(|error| refused(&error))
            });
            match select(confirmation, driver).await {
                Either::Left((confirmation, _)) => confirmation,
                Either::Right(((), _)) => Err(Failure::Io("the server closed the connection".to_owned())),
            }
        };
        subscribed.map(|()| Socket { host: host.clone(), fresh, gaps })
    }

    fn notify(&self, notice: Notice) {
        // An error means that the receiver is gone, and the task is about to end.
        let _ = self.notices.unbounded_send(notice);
    }
}

impl Socket {
    /// Reads as long as the node is a master of the cluster.
    async fn stand(&mut self, router: &Router, notices: &UnboundedSender<Notice>) {
        let Fresh { connection, driver, .. } = &mut self.fresh;
        let heartbeat = async {
            let limit = router.config.command_timeout;
            let mut cut_off = CutOff::default();
            loop {
                router.executor.sleep(HEARTBEAT).await;
                match router.within(limit, alive(connection)).await {
                    _ if mutant::on(Mutant::SubscriptionLeftBehind) => {}
                    Some(Ok(is_alive)) if !cut_off.is_sure(router, is_alive) => {}
                    _ => return,
                }
            }
        };
        let watched = async {
            let mut gaps = self.gaps;
            loop {
                router.disturbed(gaps, &self.host).await;
                let is_master = router.map().masters().contains(&self.host);
                if router.is_closed() || !(is_master || mutant::on(Mutant::SubscriptionLeftBehind)) {
                    return;
                }
                gaps = router.signals.gaps();
                let _ = notices.unbounded_send(Notice::Gap);
            }
        };
        select(select(driver, pin!(heartbeat)), pin!(watched)).await;
    }
}

/// Whether a socket is given up because its node says that it is cut off. If no node accepts calls, another socket is no better, and
/// costs a cluster that is trying to heal a login. The first such answer only asks for a reading of the map, which finds that out.
#[derive(Default)]
pub(super) struct CutOff {
    was_cut_off: bool,
}

impl CutOff {
    pub(super) fn is_sure(&mut self, router: &Router, is_alive: bool) -> bool {
        let was_cut_off = std::mem::replace(&mut self.was_cut_off, !is_alive);
        !is_alive && !router.signals.is_down() && was_cut_off
    }
}

/// Whether the node belongs to the cluster.
pub(super) async fn alive(connection: &mut ::redis::aio::MultiplexedConnection) -> Result<bool, Failure> {
    let mut command = ::redis::cmd("CLUSTER");
    command.arg("INFO");
    let info = connection.send_packed_command(&command).await;
    let info: Result<Reply, ConnectionError> = convert::reply(info.map_err(|error| Failure::Io(error.to_string()))?);
    Ok(is_up(info))
}

fn refused(error: &::redis::RedisError) -> Failure {
    match error.code() {
        Some(code) => {
            let line = format!("{code} {}", error.detail().unwrap_or(""));
            Failure::Refused(ConnectionError::refused(line.trim_end()))
        }
        None => Failure::Io(error.to_string()),
    }
}

/// Called by the driver of the connection.
fn deliver(notices: &UnboundedSender<Notice>, push: PushInfo) -> Result<(), SendError> {
    match (push.kind, push.data.into_iter().nth(1)) {
        (PushKind::Message, Some(Value::BulkString(payload))) => {
            notices.unbounded_send(Notice::Message(payload)).map_err(|_| SendError)
        }
        _ => Ok(()),
    }
}
