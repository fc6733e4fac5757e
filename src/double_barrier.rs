//! The double barrier.
//!
//! It is made of two barriers. A party that enters first comes *inside*: it takes a ticket that no arrival of others
//! ends. Then it arrives at the entry, a cyclic barrier, and waits there for the others. So all parties are inside
//! before any of them passes the entry, and each ticket has a lease from then on: the server notices who dies between
//! the entry and the end. A broken generation may leave tickets at the entry. Each arrival there names the generation
//! that it belongs to, so that generations do not mix. A party that is ready to leave says so, and the last one ends
//! the generation inside for all.
//!
//! | inside, an attempt id | stored as | becomes, on |
//! |---|---|---|
//! | is inside | a ticket with the end of its lease | ready on `leave`; ended on a cancel, a reset, or any call that finds the lease of a party over |
//! | is ready | the same, and the word `ready` | ended: passed when the last one is ready; broken as above |
//! | ended | the number of the end | unknown, when nobody may ask any more |

use std::fmt;
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};

use crate::acquire::ticket_only::{TicketWait, stay};
use crate::acquire::wait::{LastFailure, end_of, in_time, timed_out};
use crate::barrier::break_generation;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, WaiterState, clients_of};
use crate::observe::{self, meter};
use crate::protocol::barrier::end::GenerationEnd;
use crate::protocol::barrier::keep;
use crate::protocol::barrier::reply::BarrierInspected;
use crate::protocol::kind::Kind;
use crate::protocol::limits::MAX_LISTED;
use crate::protocol::ticket::ticket_ttl;
use crate::protocol::token::Token;
use crate::runtime::Executor;

use inside::{GONE, fail};
pub use inside::{Inside, Leave};

mod inside;

/// A party holds no units.
const NOTHING: u32 = 0;

/// A wait at the entry has some time, even if coming inside has used it up.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// A named section that a fixed number of parties, in programs on many machines, begin together and end together.
///
/// Returned by [`Client::double_barrier`](crate::Client::double_barrier). A handle is cheap to make and to clone, and
/// stores nothing in Redis. Each [`enter`](Self::enter) is one party.
///
/// # Guarantees
/// - No party is [`Inside`] before as many have come as there are parties, each with a lease that has not ended.
/// - No [`leave`](Inside::leave) succeeds before all parties of the generation are ready to leave.
/// - The parties of one generation are inside at a time. A generation begins when the one before has ended.
/// - A generation is broken for all of its parties when one of them stops: it gives up entering or leaving, it drops
///   its [`Inside`], its client is closed, or its lease ends because its program was killed, cut off or frozen; and by
///   [`reset`](Self::reset). The others get [`Broken`](ErrorKind::Broken) by a message: those that wait, and those that
///   work, by [`Inside::broken`]. That a lease has ended is noticed by the first of them that asks: at most a third of
///   the client's lease later.
/// - After an entry that was given up, a leave that was given up, or an [`Inside`] that was dropped, the client's next
///   entry begins when the server has confirmed that the earlier party has left, or has refused the request to remove
///   it.
///
/// # Not guaranteed
/// Those of [`Barrier`](crate::Barrier), and:
/// - After a loss of data, such as a failover that lost the last writes, parties that were not lost may wait for those
///   that were, until their timeouts. Set timeouts where that may happen.
/// - What the parties do inside is not kept from others, and a party that was declared dead may still act. There is no
///   fencing token.
/// - Of two generations that follow at once, parties may learn the end of the first one at different times. A party
///   that comes while the one before has not ended gets [`OtherParties`](ErrorKind::OtherParties).
///
/// # Redis keys
/// Those of a [`Barrier`](crate::Barrier), twice: `<prefix>:entry:{<name>}...` and `<prefix>:double:{<name>}...`.
///
/// # Examples
/// ```no_run
/// # async fn compute() {}
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// // In each of three workers:
/// let step = client.double_barrier("step", 3);
/// let inside = step.enter().await?;
/// compute().await; // begins when all three are here
/// inside.leave().await?; // and all three have done it now
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DoubleBarrier {
    inside: Primitive,
    parties: u32,
    keep: u64,
}

impl DoubleBarrier {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str, parties: u32) -> Self {
        let config = &source.context.config;
        let keep = keep(ticket_ttl(config.lease), config.retry_timeout, config.command_timeout);
        Self { inside: Primitive::new(source, Kind::Inside { parties, keep }, name), parties, keep }
    }

    /// The entry for those that have come inside after that generation.
    fn entry(&self, of: u64) -> Primitive {
        let kind = Kind::Entry { parties: self.parties, keep: self.keep, of };
        // A bad name is an error of the other primitive.
        Primitive::new(&self.inside.source, kind, self.inside.name().unwrap_or_default())
    }

    /// Comes, and waits until all parties have come. Set a timeout on the result if needed, then await it.
    pub fn enter(&self) -> Enter {
        Enter { barrier: self.clone(), timeout: None }
    }

    /// Reads who is there. What waits to enter and who is inside are read one after the other, and may have changed
    /// when the answers arrive.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name or number of parties, and the errors of a server
    /// that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<DoubleBarrierState> {
        const OPERATION: &str = "inspect";
        let entering = self.entry(0).ask(OPERATION, |scripts, keys| scripts.inspect_barrier(keys, 0)).await?.waiters;
        let BarrierInspected { now, generation, parties, waiters: present, queue } =
            self.inside.ask(OPERATION, |scripts, keys| scripts.inspect_barrier(keys, MAX_LISTED)).await?;
        let context = self.inside.context();
        context.observe(now);
        let queue = Labels::read(context, clients_of([], &queue)).await.parties(queue);
        Ok(DoubleBarrierState { generation, parties, present, entering, queue })
    }

    /// Breaks the generation, and returns whether anybody was there. Its parties get [`Broken`](ErrorKind::Broken). A
    /// double barrier goes on without this call: it is for operators.
    ///
    /// # Errors
    /// Those of [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// After the future is dropped, the generation may or may not have been broken.
    pub async fn reset(&self) -> Result<bool> {
        break_generation(&self.inside).await
    }
}

impl fmt::Debug for DoubleBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DoubleBarrier");
        shown.field("name", &self.inside.name()).field("parties", &self.parties).finish_non_exhaustive()
    }
}

/// The state of a double barrier, as read by [`DoubleBarrier::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DoubleBarrierState {
    /// The last generation that has ended, whether all have left or it was broken. Zero if none is known. The number
    /// is not that of [`Inside::generation`], which tells when it began.
    pub generation: u64,
    /// The number of parties with which the last one has come. Zero if none is known.
    pub parties: u32,
    /// The number of parties that are there, inside or waiting to enter, without those whose leases have ended.
    pub present: u64,
    /// How many wait to enter. For a lease, this may count parties of a generation that was broken.
    pub entering: u64,
    /// At most 100 of the parties that are there, in no order.
    pub queue: Vec<WaiterState>,
}

/// A party that enters, returned by [`DoubleBarrier::enter`]. Nothing is sent before it is awaited, or before
/// [`block`](Self::block) is called in blocking code.
///
/// # Errors
/// - [`Broken`](ErrorKind::Broken): the generation was broken, as the message says. Enter again. If it was broken in
///   the moment in which the last party came, others may be inside, and learn it there.
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed. If the party had come, this
///   breaks the generation.
/// - [`OtherParties`](ErrorKind::OtherParties): those who are there are of another number of parties; or as many as
///   there are parties are there already, because a whole generation has not left yet.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the number of parties is invalid, or the timeout is zero.
///   Nothing was sent.
/// - [`Lost`](ErrorKind::Lost), [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused) and
///   [`Closed`](ErrorKind::Closed), as of a [`BarrierWait`](crate::BarrierWait).
///
/// # Cancel safety
/// Dropping the future breaks the generation in the background.
#[derive(Clone, Debug)]
#[must_use = "a party does not enter unless this is awaited"]
pub struct Enter {
    barrier: DoubleBarrier,
    timeout: Option<Duration>,
}

impl Enter {
    /// Limits the wait. By default it is unlimited. Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.barrier.inside.context().executor
    }
}

impl IntoFuture for Enter {
    type Output = Result<Inside>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            const OPERATION: &str = "enter";
            let Self { barrier, timeout } = self;
            let keys = barrier.inside.keys(OPERATION)?.clone();
            let context = barrier.inside.context().clone();
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Err(fail(ErrorKind::InvalidInput, OPERATION, "timeout is zero", &keys.name));
            }
            let entering = enter(&barrier, end_of(&context, timeout));
            observe::acquiring(context.observed(OPERATION, &keys), true, meter::of_wait, entering).await
        })
    }
}

async fn enter(barrier: &DoubleBarrier, until: Option<Instant>) -> Result<Inside> {
    const OPERATION: &str = "enter";
    let keys = barrier.inside.keys(OPERATION)?;
    let context = barrier.inside.context();
    let (told, is_inside) = oneshot::channel();
    let last = Arc::new(LastFailure::default());
    let stays = {
        let (context, keys, last) = (context.clone(), keys.clone(), last.clone());
        async move {
            let waits = |id, after| {
                let _ = told.send((id, after));
            };
            stay(&context, "inside", &keys, (until, &last), GONE, waits).await
        }
    };
    let stays = stays.boxed().shared();
    let told_or_over = select(is_inside, stays.clone());
    let coming = pin!(async {
        match told_or_over.await {
            Either::Left((Ok(told), _)) => Ok(told),
            Either::Left((Err(oneshot::Canceled), stays)) => Err(ended_early(stays.await, &keys.name)),
            Either::Right((ended, _)) => Err(ended_early(ended, &keys.name)),
        }
    });
    let late = || {
        let error = Error::new(ErrorKind::TimedOut, OPERATION).with_name(&keys.name);
        timed_out(context, (keys, NOTHING), error, &last)
    };
    let (id, after) = in_time(context, until, coming, late).await?;
    let entry = barrier.entry(after);
    let entry_keys = entry.keys(OPERATION)?;
    let left = until.map(|until| until.saturating_duration_since(context.now()).max(LEAST_WAIT));
    let wait = TicketWait { context, operation: OPERATION, keys: entry_keys, timeout: left, gone: GONE };
    let passes = pin!(wait.ended(|number| match GenerationEnd::of(number) {
        Some(GenerationEnd::Passed { generation, place }) => Ok((generation, place)),
        Some(GenerationEnd::Broken(why)) => Err(fail(ErrorKind::Broken, OPERATION, why.reason(), &entry_keys.name)),
        None => Err(Error::new(ErrorKind::Protocol, OPERATION).with_name(&entry_keys.name)),
    }));
    // If the future is dropped, `presence` is dropped first, because it is declared last. So the server breaks the
    // inside before it tells the parties at the entry. One that enters again at once finds no old ticket inside.
    let presence = stays;
    let passed = match select(presence.clone(), passes).await {
        Either::Left((ended, _)) => return Err(ended_early(ended, &keys.name)),
        Either::Right((passed, _)) => passed?,
    };
    match presence.clone().now_or_never() {
        Some(ended) => Err(ended_early(ended, &keys.name)),
        None => Ok(Inside::new(barrier.inside.clone(), id, presence, passed)),
    }
}

/// Why a party is inside no more that has not left.
fn ended_early(ended: Result<Token>, name: &str) -> Error {
    match ended.map(GenerationEnd::of) {
        Ok(Some(GenerationEnd::Broken(why))) => fail(ErrorKind::Broken, "enter", why.reason(), name),
        // A party ends well only after it has said that it is ready.
        Ok(_) => Error::new(ErrorKind::Protocol, "enter").with_name(name),
        Err(error) => error.during("enter"),
    }
}
