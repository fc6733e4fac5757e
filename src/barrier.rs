//! The cyclic barrier.
//!
//! A party is an attempt id. Redis knows it in one of these states:
//!
//! | state | stored as | becomes, on |
//! |---|---|---|
//! | unknown | nothing | waits, or ended, on arrival; ended on a cancel, so that a late copy of its arrival finds that it has left |
//! | waits | a ticket with the end of its lease | ended: passed with the last arrival; broken by a cancel, a reset, or any call that finds the lease of a party over |
//! | ended | the number of the end | unknown, when no party and no copy of a request may ask for it any more |
//!
//! The script that ends a generation notes the end of all parties and sends each a message. A party that misses the
//! message reads the end with its next heartbeat, which comes after a third of its lease, and when the first lease of
//! all parties ends. So a party that is dead is noticed at the end of its lease, by those that wait with it.
//!
//! A future that is dropped sends a cancel in the background. If the generation had passed by then, the cancel finds
//! the end and changes nothing. A party that Redis does not know any more, after a loss of data, cannot tell whether
//! its generation has passed, so it must not arrive anew by itself: it gets an error.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::ticket_only::TicketWait;
use crate::call_once::{CopyAnswer, call_once};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, WaiterState, clients_of};
use crate::protocol::barrier::end::GenerationEnd;
use crate::protocol::barrier::keep;
use crate::protocol::barrier::reply::{BarrierInspected, BarrierReset};
use crate::protocol::kind::Kind;
use crate::protocol::limits::{MAX_LISTED, MAX_PARTIES};
use crate::protocol::ticket::ticket_ttl;
use crate::runtime::Executor;

/// The most parties of a barrier: 1,000.
pub const MAX_BARRIER_PARTIES: u32 = MAX_PARTIES;

/// A named point at which a fixed number of parties, in programs on many machines, wait for each other. When the last
/// one arrives, all pass, and the next generation begins: a barrier is cyclic and needs no reset.
///
/// Returned by [`Client::barrier`](crate::Client::barrier). A handle is cheap to make and to clone, and stores nothing
/// in Redis. Each [`wait`](Self::wait) is one party, so two waits of one program are two parties.
///
/// # Guarantees
/// - No party passes before as many have arrived as there are parties, each with a lease that has not ended.
/// - All parties of a generation pass, or it is broken for all that wait in it. A generation is broken when a party
///   stops waiting (its timeout passes, its future is dropped, its client is closed), when the lease of a party ends
///   because its program was killed, cut off or frozen, and by [`reset`](Self::reset). The others get
///   [`Broken`](ErrorKind::Broken) by a message, not after their own timeouts. That a lease has ended is noticed by
///   the first of them that asks: at most a third of the client's lease later. Those that arrive later wait in a fresh
///   generation.
/// - Each wait arrives once, even if its request is sent several times or arrives late. After a wait that was given up,
///   the client's next wait here arrives when the server has confirmed that the earlier one has left, or has refused
///   the request to remove it.
/// - A party whose message was lost learns of the end at most a third of the client's lease after it can reach the
///   server again.
/// - Exactly one party of a generation is its [leader](BarrierPass::is_leader).
///
/// # Not guaranteed
/// - A party whose program dies counts as present until its lease ends, which is the client's
///   [lease](crate::ConfigBuilder::lease), but at most 30 min. The generation may pass in that time. If the server's
///   clock is set forward by a lease, a generation may be broken; if it is set back, a party whose program is dead
///   counts for longer by that.
/// - A party whose own wait ends with another error than `Broken`, such as [`TimedOut`](ErrorKind::TimedOut), does not
///   know whether the others passed: the last party may have arrived in the same moment.
/// - Replicas do not [acknowledge](crate::ConfigBuilder::acknowledged_by) arrivals. After a failover that lost the
///   last writes, or another loss of data, a party whose arrival was lost gets [`Lost`](ErrorKind::Lost), while those
///   whose arrivals were not lost wait on. If it is the end of a generation that was lost, some of its parties may have
///   passed, while the others get `Broken` or `Lost`, or wait on and are counted for another generation.
/// - A party that was frozen for longer than its end is remembered gets `Lost`. An end is remembered for the client's
///   lease (at most 30 min), [`retry_timeout`](crate::ConfigBuilder::retry_timeout) and
///   [`command_timeout`](crate::ConfigBuilder::command_timeout) together; with several clients, the longest of these.
///   If the server's clock is set forward by that time, a party that has not heard of its end yet gets `Lost`, too.
///
/// # Redis keys
/// - `<prefix>:barrier:{<name>}`, the number of parties, the last generation, and how generations have ended for their
///   parties, and `...:ended`, until when each end is remembered, expire 1 h after the last arrival or heartbeat, or
///   after the time that is named above if that is longer.
/// - `...:tickets`, the parties that wait, expires 1 h after the last arrival or heartbeat.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn work(_step: u32) {}
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// // In each of three workers:
/// let barrier = client.barrier("steps", 3);
/// for step in 0..10 {
///     work(step).await;
///     let passed = barrier.wait().timeout(Duration::from_secs(60)).await?;
///     if passed.is_leader() {
///         println!("step {step} is done");
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Barrier {
    primitive: Primitive,
    parties: u32,
}

impl Barrier {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str, parties: u32) -> Self {
        let config = &source.context.config;
        let keep = keep(ticket_ttl(config.lease), config.retry_timeout, config.command_timeout);
        Self { primitive: Primitive::new(source, Kind::Barrier { parties, keep }, name), parties }
    }

    /// Arrives, and waits until all parties have arrived. Set a timeout on the result if needed, then await it.
    pub fn wait(&self) -> BarrierWait {
        BarrierWait { primitive: self.primitive.clone(), parties: self.parties, timeout: None }
    }

    /// Reads who waits. All is read at the same moment, and may have changed when the answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name or number of parties, and the errors of a server
    /// that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<BarrierState> {
        let BarrierInspected { now, generation, parties, waiters, queue } =
            self.primitive.ask("inspect", |scripts, keys| scripts.inspect_barrier(keys, MAX_LISTED)).await?;
        self.primitive.context().observe(now);
        let labels = Labels::read(self.primitive.context(), clients_of([], &queue)).await;
        Ok(BarrierState { generation, parties, waiters, queue: labels.parties(queue) })
    }

    /// Breaks the generation that waits, and returns whether there was one. Its parties get
    /// [`Broken`](ErrorKind::Broken). A barrier goes on without this call: it is for operators.
    ///
    /// # Errors
    /// Those of [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// After the future is dropped, the generation may or may not have been broken.
    pub async fn reset(&self) -> Result<bool> {
        break_generation(&self.primitive).await
    }
}

/// Breaks the generation that waits. Returns whether there was one.
pub(crate) async fn break_generation(primitive: &Primitive) -> Result<bool> {
    call_once(primitive, "reset", |scripts, keys, call| {
        Box::pin(async move {
            Ok(match scripts.reset_barrier(keys, call).await? {
                BarrierReset::Done { broke, now } => (CopyAnswer::Done { outcome: broke, call_again: false }, now),
                BarrierReset::Stale { now } => (CopyAnswer::Stale, now),
            })
        })
    })
    .await
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Barrier");
        shown.field("name", &self.primitive.name()).field("parties", &self.parties).finish_non_exhaustive()
    }
}

/// The state of a barrier, as read by [`Barrier::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BarrierState {
    /// The last generation that has ended, passed or broken. Zero if none is known.
    pub generation: u64,
    /// The number of parties with which the last one has arrived. Zero if none is known.
    pub parties: u32,
    /// The number of parties that wait, without those whose leases have ended.
    pub waiters: u64,
    /// At most 100 of the parties that wait, in no order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Vec<WaiterState>,
}

/// That a party has passed a [`Barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierPass {
    generation: u64,
    index: u32,
    parties: u32,
}

impl BarrierPass {
    /// The number of the generation, the same for all of its parties. It is the server's time in milliseconds when the
    /// generation ended, or larger. Later generations have larger numbers, unless the server has lost the last one, or
    /// the barrier was unused for an hour, and the number was ahead of the clock: because the clock was set back, or
    /// more than 1,000 generations ended in a second.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The place of the party in its generation, from 0 to the number of parties less one. No two parties have the same
    /// one. Only the last place tells the order of arrival: see [`is_leader`](Self::is_leader).
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether this party was the last one that arrived. Exactly one of a generation is.
    pub fn is_leader(&self) -> bool {
        self.index + 1 == self.parties
    }
}

/// A wait at a barrier, returned by [`Barrier::wait`]. Nothing is sent before it is awaited, or before
/// [`block`](Self::block) is called in blocking code.
///
/// # Errors
/// - [`Broken`](ErrorKind::Broken): the generation was broken, as the message says. No party of it has passed, unless
///   the server lost data. The next wait begins a fresh generation.
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed. If the party had arrived, this
///   breaks the generation.
/// - [`OtherParties`](ErrorKind::OtherParties): those that wait are of another number of parties. They wait on.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the number of parties is invalid, or the timeout is zero.
///   Nothing was sent.
/// - [`Lost`](ErrorKind::Lost): the server has lost the party, and it is not known whether its generation has passed.
/// - [`Unavailable`](ErrorKind::Unavailable): the server has not confirmed for the client's
///   [`retry_timeout`](crate::ConfigBuilder::retry_timeout) that an earlier wait of the client has left.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for the
///   client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). Other errors of the server are returned at once.
/// - [`Closed`](ErrorKind::Closed): the client is closed, or was closed during the wait.
///
/// # Cancel safety
/// Dropping the future breaks the generation in the background, unless it has passed by then.
#[derive(Clone, Debug)]
#[must_use = "a wait does nothing unless awaited"]
pub struct BarrierWait {
    primitive: Primitive,
    parties: u32,
    timeout: Option<Duration>,
}

impl BarrierWait {
    /// Limits the wait. By default it is unlimited. Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.primitive.context().executor
    }
}

impl IntoFuture for BarrierWait {
    type Output = Result<BarrierPass>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            const OPERATION: &str = "wait";
            let Self { primitive, parties, timeout } = self;
            let keys = primitive.keys(OPERATION)?;
            let fail = |kind, reason: &'static str| Error::because(kind, OPERATION, reason).with_name(&keys.name);
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Err(fail(ErrorKind::InvalidInput, "timeout is zero"));
            }
            let gone = "the server has lost the party, and it is not known whether its generation has passed";
            let ended = |number| match GenerationEnd::of(number) {
                Some(GenerationEnd::Passed { generation, place: index }) => {
                    Ok(BarrierPass { generation, index, parties })
                }
                Some(GenerationEnd::Broken(why)) => Err(fail(ErrorKind::Broken, why.reason())),
                None => Err(Error::new(ErrorKind::Protocol, OPERATION).with_name(&keys.name)),
            };
            let context = primitive.context();
            TicketWait { context, operation: OPERATION, keys, timeout, gone }.observed(ended).await
        })
    }
}
