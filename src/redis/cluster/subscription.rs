//! A subscription in a cluster: one socket at any master. The watch of a key has it at the master of the key's slot.
//!
//! What any node publishes reaches all of them over the cluster's bus, so it does not matter which one has the socket.
//! That node has to be on the bus: a node that is cut off still answers `PING`, but its `CLUSTER INFO` says `fail`, and
//! the others replace it.
//!
//! | event | what follows |
//! |---|---|
//! | the socket ends, the node says `fail`, it is no longer a master, or no longer that of the slot | a gap, another socket, a gap |
//! | the node refuses to read the watched key, because it has given the slot away | the map is read; a gap, another socket, a gap |
//! | a link for commands was made anew, or a master was replaced | a gap |

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{PushInfo, Value};
use futures::FutureExt;
use futures::future::select;

use super::super::convert;
use super::super::dial::handshake::{self, Checked, Fresh, driven};
use super::super::dial::progress::DialProgress;
use super::super::dial::wishes::{self, Wishes};
use super::super::failure::Failure;
use super::super::subscribe::{self, Notices, Proven, Source, Subject, Subscription, Tracked, pass_on};
use super::host::Host;
use super::map::SlotMap;
use super::place::Place;
use super::reading::is_up;
use super::router::Router;
use crate::connection::{ConnectionError, Notice, Reply};
use crate::mutant::{self, Mutant};
use crate::protocol::slot;
use crate::runtime::Executor;

/// How often a node is asked whether it still belongs to the cluster.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(2);

/// See [`subscribe`](subscribe::subscribe).
pub(super) async fn subscribe(
    router: &Arc<Router>,
    subject: Subject<'_>,
    number: u64,
) -> Result<Subscription, ConnectionError> {
    let seed = router.seed.wrapping_add(number);
    let at = match subject {
        Subject::Channel(_) => At::AnyMaster(seed),
        Subject::Key { key, .. } => At::MasterOf(slot::of(key)),
    };
    subscribe::subscribe(InCluster { router: Arc::clone(router), at }, None, subject.name(), seed).await
}

struct InCluster {
    router: Arc<Router>,
    at: At,
}

impl InCluster {
    /// Another master may serve the slot by now.
    fn left(&self) {
        if let At::MasterOf(_) = self.at {
            self.router.signals.suspect_map();
        }
    }
}

/// Where the socket leads.
enum At {
    /// The number of attempts. Each attempt goes to the next master. The first master is random, so that clients are
    /// spread.
    AnyMaster(u64),
    /// To the master of this slot.
    MasterOf(u16),
}

impl At {
    /// The node of the next attempt.
    fn next(&mut self, map: &SlotMap) -> Option<Host> {
        match self {
            Self::AnyMaster(next) => {
                let count = u64::try_from(map.masters().len()).unwrap_or(1).max(1);
                let place = usize::try_from(*next % count).unwrap_or(0);
                *next = next.wrapping_add(1);
                map.masters().get(place).cloned()
            }
            Self::MasterOf(slot) => map.owner(*slot).cloned(),
        }
    }

    fn is_at(&self, host: &Host, map: &SlotMap) -> bool {
        match self {
            Self::AnyMaster(_) => map.masters().contains(host),
            Self::MasterOf(slot) => map.owner(*slot) == Some(host),
        }
    }
}

/// A socket that is subscribed.
struct Socket {
    host: Host,
    fresh: Fresh,
    /// The key that it watches, if it does.
    tracked: Option<Tracked>,
    /// The number of gaps when the socket was dialled.
    gaps: u64,
}

impl Source for InCluster {
    type Socket = Socket;

    fn executor(&self) -> &Arc<dyn Executor> {
        &self.router.executor
    }

    fn limits(&self) -> [Duration; 2] {
        limits(&self.router)
    }

    fn first_limit(&self) -> Option<Duration> {
        let has_others = matches!(self.at, At::AnyMaster(_)) && self.router.map().masters().len() > 1;
        // Half of the time is left for another master, unless an attempt needs more.
        let half = |[shortest, longest]: [Duration; 2]| shortest.min((longest / 2).max(ten_round_trips(&self.router)));
        has_others.then(|| half(self.limits()))
    }

    async fn open(
        &mut self,
        channel: &str,
        notices: &Notices,
        progress: &Arc<DialProgress>,
    ) -> Result<Socket, Failure> {
        let (router, gaps) = (&self.router, self.router.signals.gaps());
        let host = self.at.next(&router.map()).ok_or_else(|| Failure::Io("no master is known".to_owned()));
        let notices = notices.clone();
        let (tracked, push): (_, Arc<dyn AsyncPushSender>) = match self.at {
            At::AnyMaster(_) => (None, Arc::new(move |push: PushInfo| notices.push(push, None))),
            At::MasterOf(_) => {
                let (tracked, reports) = Tracked::new(channel);
                (Some(tracked), reports)
            }
        };
        let opened = async {
            let host = host?;
            let channels: &[&str] = if tracked.is_none() { &[channel] } else { &[] };
            let (mut fresh, mut answers) = open(router, &host, Wishes::subscribing(push, channels), progress).await?;
            match &tracked {
                None => wishes::subscribed(answers.next())?,
                Some(tracked) => tracked.begin(&mut fresh).await?,
            }
            Ok(Socket { host, fresh, tracked, gaps })
        };
        let opened = opened.await;
        if opened.is_err() {
            self.left();
        }
        opened
    }

    /// Every master passes on what any other master publishes, and no other one is asked to report a key's changes.
    async fn prove(&mut self, _: &mut Socket) -> Proven {
        Proven::Yes
    }

    /// Reads as long as the node is a master of the cluster, and that of the slot.
    async fn stand(&self, mut socket: Socket, notices: &Notices) -> Option<Socket> {
        let (router, tracked) = (&*self.router, &mut socket.tracked);
        let Fresh { connection, driver, .. } = &mut socket.fresh;
        let reports = {
            let times = (HEARTBEAT, router.config.command_timeout);
            let changed = || notices.changed(None);
            let reports = pass_on(tracked.as_mut(), &router.executor, connection.clone(), times, changed);
            reports.map(|()| self.left())
        };
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
            let mut gaps = socket.gaps;
            loop {
                router.disturbed(gaps, |map| self.at.is_at(&socket.host, map)).await;
                let is_there = self.at.is_at(&socket.host, &router.map());
                if router.is_closed() || !(is_there || mutant::on(Mutant::SubscriptionLeftBehind)) {
                    return;
                }
                gaps = router.signals.gaps();
                notices.send(Notice::Gap);
            }
        };
        select(select(driver, select(pin!(heartbeat), pin!(reports))), pin!(watched)).await;
        None
    }

    async fn idle(&self, socket: Socket, pause: Duration) -> Option<Socket> {
        self.pause(pause).await;
        Some(socket)
    }

    fn reconnected(&self) {
        self.router.resubscribed();
    }

    fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let router = Arc::clone(&self.router);
        async move { router.closed().await }
    }
}

/// The shortest and the longest time limit of an attempt at one node. The shortest leaves time for another node if this
/// one gives no answer, but not less than ten round trips, of which an attempt needs about half.
pub(super) fn limits(router: &Router) -> [Duration; 2] {
    let longest = router.config.command_timeout;
    [longest.min(Duration::from_secs(1).max(ten_round_trips(router))), longest]
}

fn ten_round_trips(router: &Router) -> Duration {
    router.patient() * 5
}

/// Connects to a node, unless it is cut off from the cluster. If no node accepts calls, a node that is cut off will do,
/// because another one is no better. Also returns the answers to the commands that were wished.
pub(super) async fn open(
    router: &Router,
    host: &Host,
    wishes: Wishes<'_>,
    progress: &Arc<DialProgress>,
) -> Result<(Fresh, IntoIter<Value>), Failure> {
    let target = Place::new(&router.seeds.access, host.clone()).target()?;
    let made = handshake::connect(target, &*router.dialer, &router.executor, progress, (false, wishes)).await?;
    let Checked { mut fresh, answers, .. } = made;
    let is_alive = driven(&mut fresh.driver, alive(&mut fresh.connection)).await??;
    if is_alive || router.signals.is_down() {
        Ok((fresh, answers))
    } else {
        Err(Failure::Io("the node is cut off from the cluster".to_owned()))
    }
}

/// Decides whether a socket is given up because its node says that it is cut off. The first such answer only asks for a
/// reading of the map. The second one ends the socket, unless the reading found no node that accepts calls: another
/// socket would be no better then, and its login would burden a cluster that is trying to heal.
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
pub(super) async fn alive(connection: &mut MultiplexedConnection) -> Result<bool, Failure> {
    let mut command = ::redis::cmd("CLUSTER");
    command.arg("INFO");
    let info = connection.send_packed_command(&command).await;
    let info: Result<Reply, ConnectionError> = convert::reply(info.map_err(|error| Failure::Io(error.to_string()))?);
    Ok(is_up(info))
}
