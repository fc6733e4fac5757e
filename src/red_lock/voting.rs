//! The requests of a round, and their answers as they come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join};

use crate::error::ErrorKind;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::reply::Released;
use crate::red_lock::asking::Returned;
use crate::red_lock::ballot::{Ballot, Proposal};
use crate::red_lock::masters::Masters;
use crate::red_lock::together::{Together, together};

/// Requests for votes that are under way. If this is dropped, those without an answer are cancelled in the background.
///
/// Dropping [`next`](Self::next) loses nothing.
pub(super) struct Voting {
    masters: Arc<Masters>,
    asked: Vec<Asked>,
    running: Together<BoxFuture<'static, (usize, Result<Returned, Failure>)>>,
    /// When the requests were sent, and their time limit.
    times: (Instant, Duration),
}

/// A request to one master.
#[derive(Clone)]
struct Asked {
    master: usize,
    votes: Arc<Keys>,
    vote: AttemptId,
    /// The keys of the turn, if the master is asked for that too.
    turns: Option<Arc<Keys>>,
    is_answered: bool,
    /// The master may have the vote from an earlier round.
    is_asked_again: bool,
}

impl Voting {
    /// Sends the ballots.
    pub(super) fn begin(masters: &Arc<Masters>, ballots: Vec<Ballot>, proposal: Proposal) -> Self {
        let times = (masters.now(), masters.node_timeout(proposal.lease));
        let asked = |ballot: &Ballot| Asked {
            master: ballot.master,
            votes: ballot.keys.clone(),
            vote: ballot.attempt.id(),
            turns: ballot.turn.as_ref().map(|turn| turn.keys.clone()),
            is_answered: false,
            is_asked_again: ballot.is_asked,
        };
        let asked = ballots.iter().map(asked).collect();
        let running = ballots.into_iter().enumerate().map(|(n, mut ballot)| {
            ballot.is_asked = true;
            let answer = masters.clone().ask(ballot, proposal, times.1);
            Box::pin(async move { (n, answer.await) }) as BoxFuture<'static, _>
        });
        let running = Together::new(masters.executor().sleep(times.1), running);
        Self { masters: masters.clone(), asked, running, times }
    }

    /// The next usable answer, with its master. `None`: none is to come, because all have answered, or because the time
    /// is over. A master that gives none in time is not asked again for a while.
    pub(super) async fn next(&mut self) -> Option<(usize, Returned)> {
        while let Some((n, answer)) = self.running.next().await {
            let asked = &mut self.asked[n];
            if let Some(returned) = asked.answered(&self.masters, Some(answer), self.times) {
                return Some((asked.master, returned));
            }
        }
        for silent in self.asked.iter_mut().filter(|asked| !asked.is_answered) {
            silent.answered::<Returned>(&self.masters, None, self.times);
        }
        None
    }

    /// Gives back the votes that are not known yet. Each release is sent right behind the request for the vote, and
    /// does not wait for its answer.
    pub(super) async fn give_back(mut self) {
        let mut open = self.asked.iter().filter(|asked| !asked.is_answered).cloned().collect::<Vec<_>>();
        if mutant::on(Mutant::LateVotesKept) {
            open.clear();
        }
        let masters = self.masters.clone();
        let releases = open.iter().map(|Asked { master, votes, vote, .. }| {
            let context = masters.all[*master].context();
            async move { context.scripts().release(votes, *vote, false).await }
        });
        let releases = together(masters.executor(), self.times.1, releases);
        let casts = async {
            let mut casts = Vec::new();
            while let Some((_, returned)) = self.next().await {
                casts.extend(returned.cast);
            }
            casts
        };
        // Polled in this order, so that a vote that waits for a connection is sent before its release.
        let (casts, released) = join(casts, releases).await;
        for mut cast in casts {
            if mutant::on(Mutant::LateVotesKept) {
                // Dropping the attempt cancels nothing after this.
                cast.ballot.attempt.leave_to_cohort();
            }
            let release = open.iter().zip(&released).find(|(asked, _)| asked.master == cast.ballot.master);
            // Otherwise, the drop cancels the vote. What was released may be a vote of an earlier round.
            if let Some((Asked { is_asked_again: false, .. }, Some(Ok(Released::Released { .. })))) = release {
                cast.ballot.attempt.forget();
            }
        }
    }
}

impl Asked {
    /// The usable answer of the master. Without one, it is not asked again for a while.
    fn answered<T>(
        &mut self,
        masters: &Arc<Masters>,
        answer: Option<Result<T, Failure>>,
        times: (Instant, Duration),
    ) -> Option<T> {
        self.is_answered = true;
        if let Some(turns) = &self.turns {
            match &answer {
                Some(Ok(_)) => masters.all[self.master].served(turns),
                // The answer does not tell which of the two the master does not serve. Requests for one of them will.
                Some(Err(failure)) if !matches!(failure.kind(), ErrorKind::Unavailable | ErrorKind::Refused) => {
                    return None;
                }
                Some(Err(_)) => {}
                None => masters.set_silent(self.master, turns, None, times),
            }
        }
        masters.answered(self.master, &self.votes, answer, times)
    }
}
