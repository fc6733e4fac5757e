//! Collections with an order of their own: hashes and sorted sets.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::number::Bound;

/// A hash that keeps its fields in the order of insertion, as a small hash of Redis does.
#[derive(Default)]
pub(super) struct Hash {
    fields: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    next: u64,
}

impl Hash {
    /// Returns whether the field is new.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        if let Some((_, old)) = self.fields.get_mut(field) {
            value.clone_into(old);
            return false;
        }
        self.fields.insert(field.to_vec(), (self.next, value.to_vec()));
        self.next += 1;
        true
    }

    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        self.fields.remove(field).is_some()
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
        self.fields.get(field).map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_by_key(|(_, (order, _))| *order);
        fields.into_iter().map(|(field, (_, value))| (field, value))
    }
}

/// Members in the order of their scores. Members with equal scores are in the order of their bytes.
#[derive(Default)]
pub(super) struct SortedSet {
    scores: BTreeMap<Vec<u8>, f64>,
    order: BTreeSet<(Score, Vec<u8>)>,
}

/// A number that is neither NaN nor negative zero, so that it has a total order.
#[derive(Clone, Copy, PartialEq)]
struct Score(f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl SortedSet {
    /// Returns whether the member is new.
    pub(super) fn set(&mut self, member: &[u8], score: f64) -> bool {
        let score = score + 0.0;
        let old = self.scores.insert(member.to_vec(), score);
        if let Some(old) = old {
            self.order.remove(&(Score(old), member.to_vec()));
        }
        self.order.insert((Score(score), member.to_vec()));
        old.is_none()
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        match self.scores.remove(member) {
            Some(score) => self.order.remove(&(Score(score), member.to_vec())),
            None => false,
        }
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, f64)> {
        self.order.iter().map(|(score, member)| (member, score.0))
    }

    pub(super) fn range(&self, min: Bound, max: Bound) -> impl Iterator<Item = (&Vec<u8>, f64)> {
        self.order
            .range((Score(min.value + 0.0), Vec::new())..)
            .skip_while(move |(score, _)| !min.admits_above(score.0))
            .take_while(move |(score, _)| max.admits_below(score.0))
            .map(|(score, member)| (member, score.0))
    }
}
