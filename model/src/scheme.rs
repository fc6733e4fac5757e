//! The model and its properties.

use stateright::{Model, Property};

use crate::client::{Client, Phase};
use crate::flaw::Flaw;
use crate::master::Master;
use crate::rollout::{Order, Rollout};
use crate::state::State;
use crate::steps::{Step, TOKENS};
use crate::{EXCLUSION, GROWTH, ORDER, REGISTER};

/// How much can happen. Every state within these bounds is visited.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A lease, in ticks. It is the longest lease, too.
    pub lease: u8,
    /// For how many ticks the rounds of one turn go on.
    pub patience: u8,
    /// By how many ticks the clocks of the masters differ.
    pub skew: u8,
    /// The clock of the model ends there. It begins at 1.
    pub ticks: u8,
    /// How many acquisitions each client begins.
    pub acquisitions: u8,
    /// How often each client renews.
    pub renewals: u8,
    /// How many restarts without data there are.
    pub restarts: u8,
    /// How often a lease ends on a master before it ends on its client. More than none breaks the timing assumption.
    pub jumps: u8,
    /// Whether requests are executed after the client has given up.
    pub late_requests: bool,
    /// What is lost.
    pub losses: Losses,
}

/// What the network loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// Nothing: each round is counted when all masters have answered.
    Nothing,
    /// Requests. A client counts whenever it likes, but hears of what was executed.
    Requests,
    /// Requests and answers.
    Answers,
}

/// The scheme within bounds, perhaps with a flaw.
#[derive(Clone, Copy, Debug)]
pub struct Scheme<const M: usize> {
    /// How much can happen.
    pub bounds: Bounds,
    /// What is wrong with it.
    pub flaw: Option<Flaw>,
    /// Which masters the clients know.
    pub rollout: Rollout<M>,
}

impl<const M: usize> Model for Scheme<M> {
    type State = State<M>;
    type Action = Step;

    fn init_states(&self) -> Vec<State<M>> {
        vec![State::new()]
    }

    fn actions(&self, state: &State<M>, steps: &mut Vec<Step>) {
        self.steps(state, steps);
    }

    fn next_state(&self, last: &State<M>, step: Step) -> Option<State<M>> {
        let mut state = last.clone();
        self.take(&mut state, step);
        Some(state.canonical(&self.rollout)).filter(|state| state != last)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::<Self>::always(GROWTH, |_, state| !state.broken.growth),
            Property::<Self>::always(REGISTER, |_, state| !state.broken.register),
            Property::<Self>::sometimes("a guard is valid", |_, state| holders(state) > 0),
            Property::<Self>::sometimes("both clients have written, one after the other", have_both_written),
            Property::<Self>::sometimes("a second round wins", |_, state| {
                state.clients.iter().any(|client| matches!(client.phase, Phase::Holding { is_second: true, .. }))
            }),
            Property::<Self>::sometimes("a late write is refused", |_, state| {
                let written = state.register.map_or(0, |written| written.token);
                state.clients.iter().any(|client| client.late.is_some_and(|late| late.token < written))
            }),
        ];
        if self.bounds.jumps == 0 {
            // Only these properties rest on the assumption about timing.
            properties.push(Property::<Self>::always(EXCLUSION, |_, state| holders(state) < 2));
            properties.push(Property::<Self>::always(ORDER, |_, state| !state.broken.order));
        } else {
            properties.push(Property::<Self>::sometimes("two guards are valid", |_, state| holders(state) == 2));
        }
        if self.rollout.sets.len() > 1 {
            properties
                .push(Property::<Self>::sometimes("a client asks for votes beside a hold of another set", is_beside));
            properties.push(Property::<Self>::sometimes("a client with the last set holds", has_rolled_out));
        }
        if self.rollout.order == Order::TooFar && self.flaw != Some(Flaw::SetNotChecked) {
            properties.push(Property::<Self>::sometimes("a client is told of other masters", |_, state| {
                state.clients.iter().any(|client| client.told)
            }));
        }
        if self.bounds.restarts > 0 {
            properties.push(Property::<Self>::sometimes("a majority is not enough: a vote is too young", is_too_young));
        }
        if self.bounds.renewals > 0 {
            properties.push(Property::<Self>::sometimes("a renewed guard outlives its first lease", outlives));
        }
        if self.bounds.renewals > 0 {
            let barred = "a master with a larger counter votes for a guard again";
            properties.push(Property::<Self>::sometimes(barred, is_regained_below_the_counter));
        }
        if self.bounds.renewals > 0 && self.bounds.restarts > 0 {
            properties.push(Property::<Self>::sometimes("a restarted master votes for a guard again", is_regained));
        }
        properties
    }
}

fn holders<const M: usize>(state: &State<M>) -> usize {
    state.clients.iter().filter(|client| client.is_holding()).count()
}

fn is_beside<const M: usize>(_: &Scheme<M>, state: &State<M>) -> bool {
    let [a, b] = &state.clients;
    let asks = |client: &Client| matches!(client.phase, Phase::Voting { .. });
    a.version != b.version && ((a.is_holding() && asks(b)) || (asks(a) && b.is_holding()))
}

fn has_rolled_out<const M: usize>(scheme: &Scheme<M>, state: &State<M>) -> bool {
    state.clients.iter().any(|client| client.is_holding() && scheme.rollout.is_last(client.version))
}

fn have_both_written<const M: usize>(_: &Scheme<M>, state: &State<M>) -> bool {
    state.register.is_some_and(|written| {
        let other = &state.clients[usize::from(1 - written.by.client)];
        other.late.is_some_and(|late| late.token < written.token)
    })
}

fn is_too_young<const M: usize>(scheme: &Scheme<M>, state: &State<M>) -> bool {
    state.clients.iter().enumerate().any(|(n, client)| {
        let accepted = state.votes(n).filter(|vote| vote.left > 0);
        let majority = scheme.rollout.majority(client.version);
        matches!(client.phase, Phase::Voting { .. })
            && accepted.clone().count() >= majority
            && accepted.filter(|vote| vote.counts()).count() < majority
    })
}

fn outlives<const M: usize>(scheme: &Scheme<M>, state: &State<M>) -> bool {
    // The holder did not begin after the tick that its token names.
    let is_old = |client: &Client| state.now >= client.token() / TOKENS + scheme.bounds.lease;
    state.clients.iter().any(|client| client.is_holding() && is_old(client))
}

fn is_regained<const M: usize>(_: &Scheme<M>, state: &State<M>) -> bool {
    let is_young = |n: usize| state.answers(n).any(|vote| vote.young > 0);
    state.clients.iter().enumerate().any(|(n, client)| client.is_holding() && is_young(n))
}

fn is_regained_below_the_counter<const M: usize>(_: &Scheme<M>, state: &State<M>) -> bool {
    state.clients.iter().enumerate().any(|(n, client)| {
        let votes = |master: &Master| master.links[n].answer.is_some_and(|answer| answer.refused.is_none());
        let is_below = |master: &Master| votes(master) && master.counter > client.token();
        client.is_holding() && state.masters.iter().any(is_below)
    })
}
