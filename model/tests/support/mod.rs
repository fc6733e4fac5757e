//! What all tests of models do.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// The broken variant violates one of these properties.
pub(crate) fn is_found<M>(model: M, what: impl Debug, properties: &[&str])
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Debug + Clone + PartialEq + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries();
    let found: Vec<_> = found.iter().filter(|(name, _)| properties.contains(*name)).collect();
    let states = checker.unique_state_count();
    assert!(!found.is_empty(), "{what:?} was not found in {states} states");
    for (name, path) in found {
        let steps = path.clone().into_actions();
        println!("{what:?}, {states} states: not \"{name}\", {} steps: {steps:?}", steps.len());
    }
}
