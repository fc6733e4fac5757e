//! The one acquire loop, and what happens when it is dropped.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::context::{Context, Late, Tries, Undecided};
use crate::error::{Error, ErrorKind, Result};
use crate::executor::timeout;
use crate::holder::Holder;
use crate::key::{Keys, Kind};
use crate::lease::{Hold, deadline};
use crate::ledger::Outcome;
use crate::mutant::{self, Mutant};
use crate::owned::Owned;
use crate::reentry::{Entry, Reentry};
use crate::scripts::dispatch::AcquireArgs;
use crate::scripts::reply::Acquired;
use crate::ticket::ticket_ttl;
use crate::token::Token;

/// So many grants in a row that come too late to be used are not bad luck.
const MOST_LATE: u32 = 3;

/// What is asked for. Every value has been checked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    pub(crate) keys: Arc<Keys>,
    /// Units, or tokens to reserve.
    pub(crate) amount: u32,
    /// Whether to wait while others hold it.
    pub(crate) wait: bool,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) max_waiters: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) holder: Option<(Holder, Arc<Reentry<Owned>>)>,
}

impl Request {
    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation).with_name(&self.keys.name)
    }
}

/// Acquires within the request's timeout. `None`: the lock is taken, and the request does not wait; or it was for a
/// latch, which is open.
///
/// Dropping the future at any point leaves nothing: what Redis has or is about to have of it is cancelled in the
/// background.
pub(crate) async fn acquire(context: &Arc<Context>, request: &Request) -> Result<Option<Arc<Owned>>> {
    // Past any clock's range is no limit.
    let until = request.timeout.and_then(|limit| context.now().checked_add(limit));
    match request.timeout.filter(|_| until.is_some() && !mutant::on(Mutant::TimeoutIgnored)) {
        None => enter(context, request, None).await,
        Some(limit) => match timeout(&context.executor, limit, enter(context, request, until)).await {
            Some(acquired) => acquired,
            None => Err(request.error(ErrorKind::TimedOut)),
        },
    }
}

/// Re-enters a hold of the request's holder, or acquires.
async fn enter(context: &Arc<Context>, request: &Request, until: Option<Instant>) -> Result<Option<Arc<Owned>>> {
    let Some((holder, reentry)) = &request.holder else {
        let hold = attempts(context, request, until).await?;
        return Ok(hold.map(|hold| Arc::new(Owned::new(context.clone(), hold, None))));
    };
    loop {
        let valid = |owned: &Owned| owned.hold.loss(context.now()).is_none() || mutant::on(Mutant::LostHoldEntered);
        match reentry.enter(*holder, &request.keys, valid) {
            // It would wait for itself.
            Entry::Held(owned) if owned.hold.amount < request.amount => {
                return Err(request.error(ErrorKind::WouldDeadlock));
            }
            Entry::Held(owned) => return Ok(Some(owned)),
            // Not now: what another task of the holder waits for, a try does not wait for.
            Entry::Acquiring(_) if !request.wait => return Ok(None),
            Entry::Acquiring(listener) => listener.await,
            Entry::Vacant(vacant) => {
                let Some(hold) = attempts(context, request, until).await? else { return Ok(None) };
                let owned = Arc::new(Owned::new(context.clone(), hold, Some((*holder, reentry.clone()))));
                vacant.fill(&owned);
                return Ok(Some(owned));
            }
        }
    }
}

async fn attempts(context: &Arc<Context>, request: &Request, until: Option<Instant>) -> Result<Option<Arc<Hold>>> {
    let mut tries = context.tries(request.operation, &request.keys.name);
    let mut late = 0;
    loop {
        let attempt = Attempt::begin(context, request, until)?;
        match attempt.run(&mut tries).await? {
            Decision::Held(hold) => return Ok(Some(hold)),
            Decision::Busy | Decision::Open => return Ok(None),
            Decision::Again => {}
            Decision::Late if !request.wait => return Ok(None),
            Decision::Late => late += 1,
        }
        if late == MOST_LATE {
            let reason = format!("the answers take longer than the lease of {:?}", request.lease);
            return Err(Error::because(ErrorKind::Unavailable, request.operation, reason).with_name(&request.keys.name));
        }
    }
}

enum Decision {
    Held(Arc<Hold>),
    Busy,
    /// The latch is open: there is nothing to hold.
    Open,
    /// This wire id came to nothing; another one may.
    Again,
    /// When the grant was known, nothing was left of its lease: it is given back.
    Late,
}

/// What the server said about a request for the lock.
enum Answer {
    Granted { token: Token, counted_from: Instant },
    Queued,
    Busy,
    Full,
    Over { limit: u32 },
}

/// One wire id from its first request until it is decided. Dropped undecided, it is abandoned.
struct Attempt<'a> {
    context: &'a Arc<Context>,
    request: &'a Request,
    until: Option<Instant>,
    undecided: Undecided<'a>,
    wire_id: String,
    /// How often the request was sent.
    asked: u32,
}

impl<'a> Attempt<'a> {
    fn begin(context: &'a Arc<Context>, request: &'a Request, until: Option<Instant>) -> Result<Self> {
        let opened = Undecided::open(context, &request.keys, request.amount, request.lease);
        let undecided = opened.map_err(|_| request.error(ErrorKind::Closed))?;
        Ok(Self { context, request, until, wire_id: undecided.id.text(), undecided, asked: 0 })
    }

    async fn run(mut self, tries: &mut Tries<'_>) -> Result<Decision> {
        loop {
            match self.ask(tries).await? {
                Answer::Granted { .. } if self.request.keys.kind == Kind::Latch => return Ok(self.open()),
                Answer::Granted { token, counted_from } => return Ok(self.hold(token, counted_from)),
                Answer::Busy => {
                    self.undecided.forget();
                    return Ok(Decision::Busy);
                }
                Answer::Full => {
                    self.undecided.forget();
                    return Err(self.request.error(ErrorKind::QueueFull));
                }
                Answer::Over { limit } => {
                    self.undecided.forget();
                    let reason = format!("{} permits of {limit}", self.request.amount);
                    let error = Error::because(ErrorKind::OverLimit, self.request.operation, reason);
                    return Err(error.with_name(&self.request.keys.name));
                }
                Answer::Queued => {}
            }
            match poll_fn(|context| self.context.ledger.poll_outcome(self.undecided.id, context)).await {
                Outcome::Granted { token, mut counted_from } => {
                    if mutant::on(Mutant::LeaseFromMessage) {
                        counted_from = self.context.now();
                    }
                    if self.request.keys.kind == Kind::Latch {
                        return Ok(self.open());
                    }
                    let left = deadline(counted_from, self.request.lease).saturating_duration_since(self.context.now());
                    // If the request was sent twice, the second copy may have queued up anew after the first one's grant
                    // had expired, and this may be that grant: too old to be counted from the second copy.
                    let asked_once = self.asked == 1 || mutant::on(Mutant::GrantTrustedAfterResend);
                    if left >= self.request.lease / 2 && asked_once {
                        return Ok(self.hold(token, counted_from));
                    }
                    // Ask again: the answer is up to date, and starts the lease anew.
                }
                // Asked again, a latch that is not there any more would look like an open one. The ticket may be there
                // still: dropped undecided, it is cancelled.
                Outcome::Gone if self.request.keys.kind == Kind::Latch => {
                    let reason = "the latch ended before it was counted down, or nobody knows";
                    let error = Error::because(ErrorKind::Lost, self.request.operation, reason);
                    return Err(error.with_name(&self.request.keys.name));
                }
                Outcome::Gone => {
                    // If the request was sent twice, a touch may have been answered between the two, and the second copy
                    // has queued up: dropped undecided, it is cancelled.
                    if self.asked == 1 || mutant::on(Mutant::GoneTrustedAfterResend) {
                        self.undecided.forget();
                    }
                    return Ok(Decision::Again);
                }
                Outcome::Failed(failure) => return Err(tries.error(failure)),
                Outcome::Closed => return Err(self.request.error(ErrorKind::Closed)),
            }
        }
    }

    /// Sends the request until there is an answer, or no sense in sending it again.
    async fn ask(&mut self, tries: &mut Tries<'_>) -> Result<Answer> {
        tries.start();
        loop {
            // Closing has cancelled this wire id: sent after that, the request would acquire for nobody.
            if self.context.ledger.is_closed() {
                return Err(self.request.error(ErrorKind::Closed));
            }
            let sent = self.context.now();
            self.asked += 1;
            let args = AcquireArgs {
                wire_id: &self.wire_id,
                wait: self.request.wait,
                lease: self.request.lease,
                amount: self.request.amount,
                ticket_ttl: ticket_ttl(self.request.lease),
                max_waiters: self.request.max_waiters,
                not_after: self.not_after(sent),
            };
            let answer = self.context.scripts().acquire(&self.request.keys, args).await;
            match answer {
                Ok(Acquired::Granted { token, now }) => {
                    self.context.observe(now);
                    let counted_from = if mutant::on(Mutant::LeaseFromReply) { self.context.now() } else { sent };
                    return Ok(Answer::Granted { token, counted_from });
                }
                Ok(Acquired::Queued { holder_left, length: _, more, now }) => {
                    self.context.observe(now);
                    self.context.ledger.queued(self.undecided.id, sent, self.context.now(), holder_left, more);
                    return Ok(Answer::Queued);
                }
                Ok(Acquired::Busy { more: false, now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Busy);
                }
                // Expired tickets are left to drop; or the request took longer than the server's clock allowed, and
                // its answer has set our idea of that clock right.
                Ok(Acquired::Stale { .. }) if mutant::on(Mutant::StaleNotLearned) => {}
                Ok(Acquired::Busy { more: true, now } | Acquired::Stale { now }) => self.context.observe(now),
                Ok(Acquired::Over { limit, now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Over { limit });
                }
                Ok(Acquired::Full { now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Full);
                }
                Err(failure) => tries.again_after(failure).await?,
            }
        }
    }

    /// When the server must not execute the request any more, because nobody will be there for its answer.
    fn not_after(&self, sent: Instant) -> u64 {
        if mutant::on(Mutant::NoNotAfter) {
            return 0;
        }
        self.context.not_after(sent, self.until.map(|until| until.saturating_duration_since(sent)))
    }

    /// The latch is open. If the request was sent twice, the second copy may have queued up for the next latch: dropped
    /// undecided, it is cancelled.
    fn open(self) -> Decision {
        if self.asked == 1 {
            self.undecided.forget();
        }
        Decision::Open
    }

    fn hold(self, token: Token, counted_from: Instant) -> Decision {
        let Request { amount, renewed, lease, .. } = *self.request;
        match self.undecided.hold(amount, token, renewed, lease, counted_from) {
            Ok(Some(hold)) => Decision::Held(hold),
            Ok(None) => Decision::Again,
            Err(Late) => Decision::Late,
        }
    }
}
