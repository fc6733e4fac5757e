//! The one acquire loop, and what happens when it is dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::context::{Context, Late, Tries, Undecided};
use crate::error::{Error, ErrorKind, Result};
use crate::executor::timeout;
use crate::holder::Holder;
use crate::key::{Keys, Kind};
use crate::lease::{Hold, deadline};
use crate::ledger::{Begun, Closed, Outcome, Queued};
use crate::line::{First, Place};
use crate::mutant::{self, Mutant};
use crate::owned::Owned;
use crate::reentry::{Entry, Reentry};
use crate::scripts::dispatch::{AcquireArgs, Failure};
use crate::scripts::reply::{Acquired, Requeued};
use crate::ticket::{ticket, ticket_ttl};
use crate::token::Token;
use crate::trace;

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
    /// As it was asked for.
    pub(crate) fair: bool,
    /// Whether it stands in the client's own line for the name.
    pub(crate) lines_up: bool,
}

impl Request {
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation).with_name(&self.keys.name)
    }
}

/// Acquires within the request's timeout. `None`: the lock is taken, and the request does not wait; or it was for a
/// latch, which is open.
///
/// Dropping the future at any point leaves nothing: what Redis has or is about to have of it is cancelled in the
/// background.
pub(crate) async fn acquire(context: &Arc<Context>, request: &Request) -> Result<Option<Arc<Owned>>> {
    let Request { operation, keys, fair, .. } = request;
    trace::acquiring(operation, &keys.name, *fair, || context.now(), in_time(context, request)).await
}

async fn in_time(context: &Arc<Context>, request: &Request) -> Result<Option<Arc<Owned>>> {
    // Past any clock's range is no limit.
    let until = request.timeout.and_then(|limit| context.now().checked_add(limit));
    // Pinned here: handed over by value, it would be stored twice, for as long as somebody waits.
    let mut entered = pin!(enter(context, request, until));
    match request.timeout.filter(|_| until.is_some() && !mutant::on(Mutant::TimeoutIgnored)) {
        None => entered.await,
        Some(limit) => match timeout(&context.executor, limit, entered.as_mut()).await {
            Some(acquired) => acquired,
            None => Err(request.error(ErrorKind::TimedOut)),
        },
    }
}

/// Re-enters a hold of the request's holder, or acquires.
async fn enter(context: &Arc<Context>, request: &Request, until: Option<Instant>) -> Result<Option<Arc<Owned>>> {
    let Some((holder, reentry)) = &request.holder else {
        let owned = own(context, request, until, None).await?;
        return Ok(owned.map(Arc::new));
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
                let holder = Some((*holder, reentry.clone()));
                let Some(owned) = own(context, request, until, holder).await? else { return Ok(None) };
                let owned = Arc::new(owned);
                vacant.fill(&owned);
                return Ok(Some(owned));
            }
        }
    }
}

/// Acquires for the holder, if there is one: in the client's line, or for itself. One wire id after the other, until one
/// of them holds.
async fn own(
    context: &Arc<Context>,
    request: &Request,
    until: Option<Instant>,
    holder: Option<(Holder, Arc<Reentry<Owned>>)>,
) -> Result<Option<Owned>> {
    let mut place = request.lines_up.then(|| Place::join(context, request)).transpose()?;
    let mut tries = context.tries(request.operation, &request.keys.name);
    let mut late = 0;
    loop {
        let first = match &mut place {
            Some(place) => place.first(request).await?,
            None => First::Leads(None),
        };
        let begun = match first {
            First::Leads(begun) => begun,
            First::Holds(hold) => {
                let lost = hold.loss(context.now()).is_some();
                let owned = Owned::new(context.clone(), hold, holder.clone());
                if lost {
                    // Nobody looked at it in time: the drop cleans up, and this one asks.
                    continue;
                }
                return Ok(Some(owned.in_line(place)));
            }
        };
        let began = context.now();
        let failed = |error: &Error| place.iter().for_each(|place| place.fail(error, began));
        let attempt = match begun {
            Some(begun) => Attempt::resume(context, request, until, begun),
            None => Attempt::begin(context, request, until, place.as_ref())?,
        };
        match attempt.run(&mut tries).await.inspect_err(failed)? {
            Decision::Held(hold) => {
                if let Some(place) = &mut place {
                    place.holds(&hold);
                }
                return Ok(Some(Owned::new(context.clone(), hold, holder).in_line(place)));
            }
            Decision::Busy | Decision::Open => return Ok(None),
            Decision::Again | Decision::InLine => {}
            Decision::Late if !request.wait => return Ok(None),
            Decision::Late => late += 1,
        }
        if late == MOST_LATE {
            let reason = format!("the answers take longer than the lease of {:?}", request.lease);
            let error = Error::because(ErrorKind::Unavailable, request.operation, reason);
            return Err(error.with_name(&request.keys.name)).inspect_err(failed);
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
    /// Its ticket waits for whoever in the line is first by then.
    InLine,
    /// When the grant was known, nothing was left of its lease: it is given back.
    Late,
}

/// What the server said about a request for the lock.
enum Answer {
    Granted {
        token: Token,
        counted_from: Instant,
    },
    Queued,
    /// For whoever in the line is first by then.
    QueuedInLine,
    Busy,
    Full,
    Over {
        limit: u32,
    },
    /// The answers were lost, and a message or a touch came first.
    Decided(Outcome),
}

/// One wire id from its first request until it is decided. Dropped undecided, it is abandoned.
struct Attempt<'a> {
    context: &'a Arc<Context>,
    request: &'a Request,
    until: Option<Instant>,
    undecided: Undecided<'a>,
    wire_id: String,
    amount: u32,
    /// How often the request was sent.
    asked: u32,
    /// What the request releases, until the server has answered.
    before: Option<Arc<Hold>>,
    /// It has waited, and it is known what became of it.
    decided: bool,
}

impl<'a> Attempt<'a> {
    fn begin(
        context: &'a Arc<Context>,
        request: &'a Request,
        until: Option<Instant>,
        place: Option<&Place>,
    ) -> Result<Self> {
        let closed = |Closed| request.error(ErrorKind::Closed);
        if let Some(place) = place {
            return Ok(Self::resume(context, request, until, place.open(request).map_err(closed)?));
        }
        let undecided = Undecided::open(context, &request.keys, request.amount, request.lease).map_err(closed)?;
        let (wire_id, amount) = (undecided.id.text(), request.amount);
        Ok(Self { context, request, until, undecided, wire_id, amount, asked: 0, before: None, decided: false })
    }

    /// Goes on with what is open.
    fn resume(context: &'a Arc<Context>, request: &'a Request, until: Option<Instant>, begun: Begun) -> Self {
        let Begun { id, amount, before, asked, decided } = begun;
        let undecided = Undecided::resume(context, id);
        Self { context, request, until, undecided, wire_id: id.text(), amount, asked, before, decided }
    }

    async fn run(mut self, tries: &mut Tries<'_>) -> Result<Decision> {
        loop {
            // Boxed, or whoever waits would carry for hours what only a request needs.
            let answer =
                if std::mem::take(&mut self.decided) { Answer::Queued } else { Box::pin(self.ask(tries)).await? };
            let decided = match answer {
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
                Answer::Queued => None,
                Answer::QueuedInLine => {
                    self.undecided.leave();
                    return Ok(Decision::InLine);
                }
                Answer::Decided(outcome) => Some(outcome),
            };
            let outcome = match decided {
                Some(outcome) => outcome,
                None => poll_fn(|context| self.context.ledger.poll_outcome(self.undecided.id, context)).await,
            };
            match outcome {
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
                    // has queued up: it is cancelled.
                    if self.asked == 1 || mutant::on(Mutant::GoneTrustedAfterResend) {
                        self.undecided.forget();
                    } else {
                        self.undecided.abandon();
                    }
                    return Ok(Decision::Again);
                }
                Outcome::Failed(failure) => {
                    self.undecided.alone = true;
                    return Err(tries.error(failure));
                }
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
            if let Some(before) = &self.before {
                let ticket = ticket(self.undecided.id, self.request.lease, self.amount);
                let ticket = (&*ticket, ticket_ttl(self.request.lease));
                match self.context.scripts().requeue(&self.request.keys, &before.id.text(), ticket).await {
                    Ok(Requeued::Granted { token, now }) => {
                        self.context.observe(now);
                        return Ok(Answer::Granted { token, counted_from: sent });
                    }
                    Ok(Requeued::Queued { more, told, now }) => {
                        self.context.observe(now);
                        self.before = None;
                        let queued = self.queued(sent, None, more);
                        let now = self.context.now();
                        told.into_iter().for_each(|message| self.context.ledger.deliver(message, now));
                        return Ok(queued);
                    }
                    // It was lost; or an earlier copy of the request has been executed, and the ticket waits or was
                    // granted. The same wire id finds out.
                    Ok(Requeued::NotHeld { now }) => {
                        self.context.observe(now);
                        self.before = None;
                        self.context.unheard(&self.request.keys);
                    }
                    Err(failure) => {
                        if failure.may_be_done() {
                            self.context.unheard(&self.request.keys);
                        }
                        if let Some(outcome) = self.again_after(tries, failure).await? {
                            return Ok(Answer::Decided(outcome));
                        }
                    }
                }
                continue;
            }
            let args = AcquireArgs {
                wire_id: &self.wire_id,
                wait: self.request.wait,
                lease: self.request.lease,
                amount: self.amount,
                ticket_ttl: ticket_ttl(self.request.lease),
                max_waiters: self.request.max_waiters,
                not_after: self.not_after(sent),
            };
            let answer = {
                let scripts = self.context.scripts();
                let answered = pin!(scripts.acquire(&self.request.keys, args));
                // A message may overtake the answer, or make up for it. If this is the second copy, it may be about the
                // first one, and only the answer tells.
                match select(answered, self.outcome(self.asked == 1)).await {
                    Either::Left((answer, _)) => answer,
                    Either::Right((outcome, _)) => return Ok(Answer::Decided(outcome)),
                }
            };
            match answer {
                Ok(Acquired::Granted { token, now }) => {
                    self.context.observe(now);
                    let counted_from = if mutant::on(Mutant::LeaseFromReply) { self.context.now() } else { sent };
                    return Ok(Answer::Granted { token, counted_from });
                }
                Ok(Acquired::Queued { holder_left, length: _, more, now }) => {
                    self.context.observe(now);
                    return Ok(self.queued(sent, holder_left, more));
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
                Err(failure) => {
                    if let Some(outcome) = self.again_after(tries, failure).await? {
                        return Ok(Answer::Decided(outcome));
                    }
                }
            }
        }
    }

    fn queued(&self, sent: Instant, holder_left: Option<Duration>, more: bool) -> Answer {
        let queued = Queued { sent, asked: self.asked, holder_left, more };
        match self.context.ledger.queued(self.undecided.id, queued, self.context.now()) {
            true => Answer::QueuedInLine,
            false => Answer::Queued,
        }
    }

    /// Pauses before the next try, unless it is known before what became of the earlier ones. If it gives up, so do those
    /// in its line who wait for as long: a new wire id is for those who do not.
    async fn again_after(&mut self, tries: &mut Tries<'_>, failure: Failure) -> Result<Option<Outcome>> {
        let pause = pin!(tries.again_after(failure));
        let again = match select(pause, self.outcome(true)).await {
            Either::Left((again, _)) => again,
            Either::Right((outcome, _)) => return Ok(Some(outcome)),
        };
        self.undecided.alone |= again.is_err();
        again.map(|()| None)
    }

    /// What a message or a touch says has become of it, unless nobody listens.
    fn outcome(&self, listens: bool) -> impl Future<Output = Outcome> + Unpin {
        let listens = listens && !mutant::on(Mutant::DeafWhileAsking);
        poll_fn(move |context| match listens {
            true => self.context.ledger.poll_outcome(self.undecided.id, context),
            false => Poll::Pending,
        })
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
        let Request { renewed, lease, .. } = *self.request;
        match self.undecided.hold(self.amount, token, renewed, lease, counted_from) {
            Ok(Some(hold)) => Decision::Held(hold),
            Ok(None) => Decision::Again,
            Err(Late) => Decision::Late,
        }
    }
}
