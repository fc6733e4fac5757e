//! The end of a hold: its votes are released, then its turn.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::guard::{Share, release, release_with};
use crate::hold::owner::release::With;
use crate::hold::owner::{HoldOwner, check_not_lost, lost_error};
use crate::mutant::{self, Mutant};
use crate::red_lock::count::majority;
use crate::red_lock::masters::Masters;
use crate::red_lock::own::Own;
use crate::red_lock::together::{Together, together};
use crate::runtime::Executor;

/// The turn of a hold, and its place among the acquisitions of this program. The task of the hold and the caller's
/// release both may end the hold. The one that takes this ends it.
pub(super) struct Rest {
    masters: Arc<Masters>,
    /// Released after the votes, because its release lets the next acquisition ask for them.
    turn: Option<Arc<HoldOwner>>,
    #[expect(dead_code, reason = "its life is what counts: the next acquisition of this program begins after it")]
    own: Option<Own>,
}

impl Rest {
    pub(super) fn new(masters: &Arc<Masters>, turn: Option<Arc<HoldOwner>>, own: Option<Own>) -> Self {
        masters.change_stats(|stats| {
            stats.held += 1;
            stats.acquired += 1;
        });
        Self { masters: masters.clone(), turn, own }
    }

    /// Takes the turn out, if it can be released together with one of these votes. A cohort hands it off instead.
    fn turn_with_vote(&mut self, votes: &[Arc<HoldOwner>]) -> Option<Box<HoldOwner>> {
        let is_with = |turn: &HoldOwner| votes.iter().any(|vote| Arc::ptr_eq(vote.context(), turn.context()));
        let turn = self.turn.take_if(|turn| turn.in_cohort.is_none() && is_with(turn))?;
        // No one else has a reference to a turn that is in no cohort.
        Arc::into_inner(turn).map(Box::new)
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.masters.change_stats(|stats| stats.held -= 1);
    }
}

/// A hold that has no guard any more, with its votes by master.
pub(super) struct End {
    pub(super) masters: Arc<Masters>,
    pub(super) hold: Arc<Hold>,
    pub(super) votes: Vec<Option<Arc<HoldOwner>>>,
    pub(super) rest: Rest,
}

/// A release that goes on in the background if it is dropped.
pub(super) struct Leaving {
    work: Option<BoxFuture<'static, Result<()>>>,
    executor: Arc<dyn Executor>,
}

impl Leaving {
    pub(super) fn begin(end: End) -> Self {
        let executor = end.masters.executor().clone();
        let others = executor.clone();
        let work = async move {
            let (told, late) = let_go(end).await;
            late.into_iter().for_each(|late| others.spawn(late));
            told
        };
        Self { work: Some(work.boxed()), executor }
    }
}

impl Future for Leaving {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Result<()>> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let told = work.poll_unpin(context);
        if told.is_ready() {
            self.work = None;
        }
        told
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.executor.spawn(work.map(drop).boxed());
        }
    }
}

/// Sends the releases of all votes at once. If nobody waits for the turn, the request to the master that has it also
/// releases the turn. If somebody waits, the turn is released after the votes, and that hands it to the next
/// acquisition.
///
/// Returns the result for the caller as soon as a majority has answered, and the future of the releases that have no
/// answer yet. A release without an answer within the node timeout continues in the background.
pub(super) async fn let_go(end: End) -> (Result<()>, Option<BoxFuture<'static, ()>>) {
    let End { masters, hold, votes, mut rest } = end;
    let mut count = Released { had: votes.iter().flatten().count(), ..Released::default() };
    let votes = votes.into_iter().enumerate().filter_map(|(n, vote)| vote.filter(|_| masters.all[n].is_up()));
    if mutant::on(Mutant::TurnBeforeVotes) {
        rest.turn = None;
        masters.executor().sleep(masters.node_timeout(hold.lease) / 4).await;
    }
    let limit = masters.node_timeout(hold.lease);
    let votes: Vec<_> = votes.collect();
    let mut with_vote = rest.turn_with_vote(&votes);
    // From the request on, the engine does not count the turn among its holds. If the runtime ends half-way, the
    // good-bye releases it all the same. Declared before the turn, and therefore dropped after it.
    let leaving = with_vote.as_ref().map(|turn| (turn.context().clone(), turn.hold.clone()));
    let _ending = leaving.as_ref().map(|(context, hold)| context.engine.ending(hold, context.now()));
    let mut turn = rest.turn.take();
    let mut awaits_turn = with_vote.is_some();
    let releases = votes.into_iter().map(|vote| {
        let with = with_vote.take_if(|turn| Arc::ptr_eq(turn.context(), vote.context()));
        async move {
            let had_turn = with.is_some();
            let mut with = with.map_or(With::Nothing, With::Turn);
            let released = release_with(vote, &mut with).await;
            (released, had_turn, if let With::Turn(left) = with { Some(left) } else { None })
        }
    });
    let mut releases = Together::new(masters.executor().sleep(limit), releases);
    // The next acquisition only needs a majority.
    while (count.ended < majority(masters.all.len()) || awaits_turn)
        && let Some((released, had_turn, left)) = releases.next().await
    {
        count.add(&released);
        awaits_turn &= !had_turn;
        turn = turn.or(left.map(|left| Arc::new(*left)));
    }
    if let Some(turn) = turn.take_if(|turn| masters.answers_to(turn.context())) {
        together(masters.executor(), limit, [release(Share::new(turn))]).await;
    }
    drop(turn);
    // The caller may acquire again at once.
    drop(rest);
    let late = (!releases.is_done()).then(|| async move { while releases.next().await.is_some() {} }.boxed());
    (outcome(&masters, &hold, count), late)
}

/// What the caller of the release is told.
fn outcome(masters: &Masters, hold: &Hold, count: Released) -> Result<()> {
    let needed = majority(masters.all.len());
    check_not_lost(hold, "release", masters.now())?;
    if count.ended < needed {
        let open = masters.all.iter().filter(|master| !master.context().engine.is_closed()).count();
        if open < needed {
            return Err(Error::new(ErrorKind::Closed, "release").with_name(&hold.keys.name));
        }
        let reason = "too few masters have confirmed the release; it continues in the background";
        return Err(Error::because(ErrorKind::Unavailable, "release", reason).with_name(&hold.keys.name));
    }
    // So many votes were gone that the hold had no majority. It may have had fewer than all.
    if count.had - count.gone < needed {
        masters.count_loss(hold, Loss::Gone);
        return Err(lost_error(hold, "release", Loss::Gone));
    }
    Ok(())
}

/// The votes of a hold.
#[derive(Clone, Copy, Default)]
struct Released {
    /// The number of votes that the hold had, as far as was known.
    had: usize,
    /// The number of votes that were released.
    ended: usize,
    /// The number of these votes that the master no longer had.
    gone: usize,
}

impl Released {
    fn add(&mut self, released: &Result<()>) {
        let gone = matches!(released, Err(error) if error.kind() == ErrorKind::Lost);
        self.gone += usize::from(gone);
        self.ended += usize::from(gone || released.is_ok());
    }
}

#[cfg(test)]
mod tests;
