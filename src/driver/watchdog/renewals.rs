//! Renewals, and grants that wait for replicas.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::connection::ConnectionError;
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::Hold;
use crate::engine::schedule::answer_within;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::dispatch::{Failure, RenewArgs, Scripts};
use crate::protocol::reply::{HoldState, Renewed};
use crate::runtime::Executor;
use crate::trace;

/// The most grants that one call confirms.
const BATCH: usize = 256;

/// What the holds of one call have in common: the script that renews them, the server, and how many replicas they wait for.
pub(super) type Group = (Option<&'static str>, u64, u32);

/// Grants that wait for the call of their group. Each group has one call under way, and one `WAIT` confirms all grants that came
/// in the meantime.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed(Mutex<BTreeMap<Group, Vec<Arc<Hold>>>>);

impl Unconfirmed {
    /// `true`: the group has no call under way yet.
    pub(super) fn push(&self, group: Group, hold: Arc<Hold>) -> bool {
        let mut groups = lock(&self.0);
        let is_new = !groups.contains_key(&group);
        groups.entry(group).or_default().push(hold);
        is_new
    }

    /// The next batch. `None`: no grant waits, and the group has no call under way any more.
    fn next(&self, group: Group) -> Option<Vec<Arc<Hold>>> {
        let mut groups = lock(&self.0);
        let waiting = groups.get_mut(&group)?;
        if waiting.is_empty() {
            groups.remove(&group);
            return None;
        }
        let first = waiting.len().min(BATCH);
        Some(waiting.drain(..first).collect())
    }
}

/// What renewals are sent with, and where the answers go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewals<'a> {
    pub(super) engine: &'a Engine,
    pub(super) executor: &'a dyn Executor,
    pub(super) clock: &'a ServerClock,
    pub(super) scripts: Scripts<'a>,
    pub(super) command_timeout: Duration,
}

impl Renewals<'_> {
    pub(super) fn group(self, hold: &Hold) -> Group {
        (hold.keys.kind.renewal(), self.scripts.connection.node_of(hold.keys.main()), hold.replicas)
    }

    pub(super) fn grouped(self, holds: Vec<Arc<Hold>>) -> BTreeMap<Group, Vec<Arc<Hold>>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for hold in holds {
            groups.entry(self.group(&hold)).or_default().push(hold);
        }
        groups
    }

    /// Renews the holds of one group.
    pub(super) async fn renew(self, replicas: u32, holds: Vec<Arc<Hold>>) {
        let sent = self.executor.now();
        let states = self.send_renewal(replicas, &holds).await;
        let now = self.executor.now();
        let states = match states {
            Ok(renewed) => renewed.holds,
            Err(failure) => {
                let refused = matches!(failure, Failure::Connection(ConnectionError::Refused { .. }));
                if refused && mutant::on(Mutant::RefusalTakenForLoss) {
                    self.engine.renewed(sent, now, &[], &holds);
                }
                // Whatever the reason, also a refusal: the leases run on, and their deadlines decide.
                self.engine.not_renewed(&holds, now);
                return;
            }
        };
        let (mut held, mut gone, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (hold, state) in holds.into_iter().zip(states) {
            match state {
                HoldState::Held => held.push(hold),
                HoldState::NotHeld | HoldState::Unusable => gone.push(hold),
                HoldState::Unacknowledged(_) | HoldState::Unanswered => others.push(hold),
            }
        }
        self.engine.renewed(sent, now, &held, &gone);
        if !others.is_empty() {
            self.engine.not_renewed(&others, now);
        }
    }

    /// Confirms the grants of the group, one batch after the other, until none waits.
    pub(super) async fn confirm(self, group: Group, unconfirmed: &Unconfirmed) {
        while let Some(holds) = unconfirmed.next(group) {
            let now = self.executor.now();
            let (held, over): (Vec<_>, Vec<_>) = holds.into_iter().partition(|hold| !hold.remaining(now).is_zero());
            // Their callers know better, or are gone. A call with no time left would end the connection for the others.
            over.iter().for_each(|hold| self.engine.confirmed(hold, Confirmation::TooFew(0)));
            if !held.is_empty() {
                self.confirm_batch(group.2, &held).await;
            }
        }
    }

    async fn confirm_batch(self, replicas: u32, holds: &[Arc<Hold>]) {
        let sent = self.executor.now();
        let renewed = self.send_renewal(replicas, holds).await;
        let now = self.executor.now();
        let Renewed { holds: states, failure, .. } = match renewed {
            Ok(renewed) => renewed,
            Err(failure) => {
                for hold in holds {
                    self.engine.confirmed(hold, Confirmation::Failed(failure.clone()));
                }
                return;
            }
        };
        for (hold, state) in holds.iter().zip(states) {
            let confirmation = match state {
                HoldState::Held => {
                    let lease = hold.renewal(sent);
                    if !lease.is_zero() {
                        self.engine.extended(hold, lease, sent, now);
                    }
                    Confirmation::Acknowledged
                }
                HoldState::Unacknowledged(replicas) => Confirmation::TooFew(replicas),
                HoldState::NotHeld | HoldState::Unusable => {
                    self.engine.renewed(sent, now, &[], std::slice::from_ref(hold));
                    Confirmation::Gone
                }
                HoldState::Unanswered => failure.clone().map_or(Confirmation::TooFew(0), Confirmation::Failed),
            };
            self.engine.confirmed(hold, confirmation);
        }
    }

    /// Renews holds by one call, and waits for the replicas, if there are to be any.
    async fn send_renewal(self, replicas: u32, holds: &[Arc<Hold>]) -> Result<Renewed, Failure> {
        let sent = self.executor.now();
        let args: Vec<RenewArgs<'_>> = holds.iter().map(|hold| (&*hold.keys, hold.id, hold.asked(sent))).collect();
        // A fixed lease is looked at, and there is nothing to save.
        let left = holds.iter().filter(|hold| hold.interval().is_some()).map(|hold| hold.remaining(sent)).min();
        let within = left.map_or(self.command_timeout, |left| answer_within(left, self.command_timeout));
        let renewed = match replicas {
            0 => self.scripts.renew(&args, within).await,
            _ => self.scripts.renew_acknowledged(&args, replicas, within).await,
        };
        let renewed = renewed.inspect_err(|failure| trace::not_renewed(holds.len(), failure))?;
        self.clock.observe(self.executor.now(), renewed.now);
        if let Some(failure) = &renewed.failure {
            let unanswered = renewed.holds.iter().filter(|hold| **hold == HoldState::Unanswered).count();
            trace::not_renewed(unanswered, failure);
        }
        Ok(renewed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::engine::lease::Term;
    use crate::protocol::attempt_id::AttemptId;
    use crate::protocol::key::Keys;
    use crate::protocol::kind::Kind;
    use crate::protocol::token::Token;
    use crate::runtime::an_instant;

    fn hold(n: u64) -> Arc<Hold> {
        let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
        let (id, lease) = (AttemptId { client: Uuid::nil(), n }, Duration::from_secs(30));
        Arc::new(Hold::new(keys, id, 1, Token::new(1), lease, Term::Renewed, an_instant() + lease))
    }

    fn numbers(batch: Option<Vec<Arc<Hold>>>) -> Option<Vec<u64>> {
        batch.map(|holds| holds.iter().map(|hold| hold.id.n).collect())
    }

    #[test]
    fn a_group_has_one_call_under_way_and_the_next_one_takes_all_that_came_meanwhile() {
        let unconfirmed = Unconfirmed::default();
        let (group, other) = ((Some("lock_renew"), 0, 1), (Some("lock_renew"), 0, 2));
        assert!(unconfirmed.push(group, hold(1)));
        assert_eq!(numbers(unconfirmed.next(group)), Some(vec![1]));
        for n in 2..=4 {
            assert!(!unconfirmed.push(group, hold(n)), "the call of the group takes it along");
        }
        assert!(unconfirmed.push(other, hold(5)), "another number of replicas is another group");
        assert_eq!(numbers(unconfirmed.next(group)), Some(vec![2, 3, 4]));
        assert_eq!(numbers(unconfirmed.next(group)), None);
        // That call has ended, so the next hold needs one.
        assert!(unconfirmed.push(group, hold(6)));
        assert_eq!(numbers(unconfirmed.next(other)), Some(vec![5]));
    }

    #[test]
    fn a_call_is_about_a_limited_number_of_holds() {
        let unconfirmed = Unconfirmed::default();
        let group = (Some("lock_renew"), 0, 1);
        let holds = 2 * BATCH + 1;
        for n in 0..holds {
            assert_eq!(unconfirmed.push(group, hold(n as u64)), n == 0);
        }
        let sizes: Vec<usize> = std::iter::from_fn(|| unconfirmed.next(group)).map(|batch| batch.len()).collect();
        assert_eq!(sizes, [BATCH, BATCH, 1]);
    }
}
