//! One socket of a subscription, from the dial to its end.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::SendError;
use ::redis::{PushInfo, PushKind, Value};
use futures::channel::mpsc::UnboundedSender;
use futures::future::{Either, join, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::handshake::{self, Fresh};
use super::super::link::Shared;
use super::super::progress::Progress;
use super::super::proof::{self, Proof};
use super::Told;
use crate::connection::{ConnectionError, Notice};

/// How often an idle connection is checked.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A socket that is subscribed to the channel and to its own probe.
pub(super) struct Socket {
    fresh: Fresh,
    probe: String,
    /// The generation of the connection for commands that has proven this socket, or 0.
    proven: Arc<AtomicU64>,
}

/// Why a subscription has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Its socket ended, did not answer a heartbeat, or leads to a server that is no longer the primary.
    Socket,
    /// The connection for commands ended, so the proof has lapsed.
    Commands,
}

impl Socket {
    /// Connects, subscribes and waits for the confirmation. A replica is refused, but tried again: behind a load balancer,
    /// the next dial may lead to the primary.
    pub(super) async fn open(
        shared: &Shared,
        channel: &str,
        notices: &UnboundedSender<Told>,
        progress: &Arc<Progress>,
    ) -> Result<Self, Failure> {
        let proven = Arc::new(AtomicU64::new(0));
        let push = {
            let (notices, proven) = (notices.clone(), Arc::clone(&proven));
            move |push: PushInfo| deliver(&notices, &proven, push)
        };
        let mut fresh = shared.dial(Some(Arc::new(push)), progress).await?;
        handshake::prepare(&mut fresh, false).await.map_err(|failure| match failure {
            Failure::Refused(refusal) if convert::is_of_a_replica(&refusal) => Failure::Io(refusal.to_string()),
            other => other,
        })?;
        let probe = proof::probe(channel);
        let subscribed = {
            let channels = [channel, &*probe];
            let confirmation = pin!(fresh.connection.subscribe(&channels));
            match select(confirmation, &mut fresh.driver).await {
                Either::Left((confirmation, _)) => confirmation,
                Either::Right(((), _)) => {
                    return Err(Failure::Io("the server closed the connection".to_owned()));
                }
            }
        };
        match subscribed {
            Ok(()) => Ok(Self { fresh, probe, proven }),
            Err(error) => Err(match error.code() {
                Some(code) => {
                    let line = format!("{code} {}", error.detail().unwrap_or(""));
                    Failure::Refused(ConnectionError::refused(line.trim_end()))
                }
                None => Failure::Io(error.to_string()),
            }),
        }
    }

    /// Waits for a connection for commands and asks its server for a proof. Also asks for a sign of life over the own
    /// socket, because the server may not have noticed yet that the socket is dead. `None`: the socket has ended meanwhile.
    pub(super) async fn prove(&mut self, shared: &Shared) -> Option<Proof> {
        let Fresh { connection, driver, .. } = &mut self.fresh;
        let asked = pin!(async {
            let Ok(up) = shared.ready().await else {
                // The connection is closed, and this task is about to be dropped. If this returned, the task would ask again
                // at once.
                return pending().await;
            };
            let ping = handshake::ping();
            let pong = shared.within(shared.upkeep, connection.send_packed_command(&ping));
            let (proof, pong) = join(proof::prove(shared, &up, &self.probe), pong).await;
            matches!(pong, Some(Ok(_))).then_some(proof)
        });
        let proof = match select(asked, driver).await {
            Either::Left((proof, _)) => proof?,
            Either::Right(((), _)) => return None,
        };
        if let Proof::Here(generation) = proof {
            self.proven.store(generation, Ordering::SeqCst);
        }
        Some(proof)
    }

    /// Reads as long as the connection for commands has this generation.
    pub(super) async fn stand(&mut self, shared: &Shared, generation: u64) -> End {
        let Fresh { target, connection, driver } = &mut self.fresh;
        let heartbeat = async {
            let ping = handshake::ping();
            loop {
                shared.executor.sleep(HEARTBEAT).await;
                let pong = shared.within(shared.upkeep, connection.send_packed_command(&ping)).await;
                if !matches!(pong, Some(Ok(_))) {
                    return;
                }
            }
        };
        let heartbeat = pin!(heartbeat);
        let own = select(select(driver, heartbeat), shared.locate.left(target));
        match select(own, pin!(shared.gone(generation))).await {
            Either::Left(_) => End::Socket,
            Either::Right(_) => End::Commands,
        }
    }

    /// Reads during the pause. Returns whether the socket is still up afterwards.
    pub(super) async fn pause(&mut self, shared: &Shared, pause: Duration) -> bool {
        matches!(select(shared.executor.sleep(pause), &mut self.fresh.driver).await, Either::Left(_))
    }
}

/// Called by the driver of the connection.
fn deliver(notices: &UnboundedSender<Told>, proven: &AtomicU64, push: PushInfo) -> Result<(), SendError> {
    let proven = proven.load(Ordering::SeqCst);
    match (push.kind, push.data.into_iter().nth(1)) {
        (PushKind::Message, Some(Value::BulkString(payload))) if proven != 0 => {
            let told = Told { notice: Notice::Message(payload), proven: Some(proven) };
            notices.unbounded_send(told).map_err(|_| SendError)
        }
        _ => Ok(()),
    }
}
