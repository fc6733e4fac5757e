//! Grants that wait for acknowledgements of replicas, in groups.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::engine::lease::Hold;
use crate::mutex::lock;
use crate::tuning::BATCH;

/// What the holds in one call have in common: the script that renews them, the server, and the number of replicas they
/// wait for.
pub(super) type Group = (Option<&'static str>, u64, u32);

/// Grants that wait for the next call of their group. A group has at most one call under way, and one `WAIT` confirms
/// all grants that arrived in the meantime.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed(Mutex<BTreeMap<Group, Vec<Arc<Hold>>>>);

impl Unconfirmed {
    /// Adds a grant. `true`: the group has no call under way, so the caller must start one.
    pub(super) fn push(&self, group: Group, hold: Arc<Hold>) -> bool {
        let mut groups = lock(&self.0);
        let is_new = !groups.contains_key(&group);
        groups.entry(group).or_default().push(hold);
        is_new
    }

    /// Takes the next batch. `None`: no grant waits, and the group's call is over.
    pub(super) fn next(&self, group: Group) -> Option<Vec<Arc<Hold>>> {
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
        // The group's call is over, so the next hold needs a new one.
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
