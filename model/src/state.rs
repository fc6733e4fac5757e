//! One state of the model. Times are in ticks from now; tokens are numbers, 0 for none.

use crate::client::Client;
use crate::master::Master;
use crate::rollout::Rollout;

pub(crate) const MOST_MASTERS: usize = 5;
pub(crate) const CLIENTS: usize = 2;

/// Names an acquisition, and the hold that comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Attempt {
    pub(crate) client: u8,
    /// From 1.
    pub(crate) n: u8,
}

/// The last write that the resource has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Written {
    pub(crate) token: u8,
    pub(crate) by: Attempt,
}

/// What went wrong in the step to this state or before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Broken {
    pub(crate) order: bool,
    pub(crate) growth: bool,
    pub(crate) register: bool,
}

/// One state of the masters, the clients and the resource that the lock protects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<const M: usize> {
    pub(crate) now: u8,
    pub(crate) crashes: u8,
    pub(crate) jumps: u8,
    pub(crate) masters: [Master; M],
    pub(crate) clients: [Client; CLIENTS],
    pub(crate) register: Option<Written>,
    /// The largest token of any hold so far.
    pub(crate) highest: u8,
    pub(crate) broken: Broken,
    /// How much is left of the wait after the last program of a version has ended.
    pub(crate) wait: u8,
}

impl<const M: usize> State<M> {
    pub(crate) fn new() -> Self {
        Self {
            now: 1,
            crashes: 0,
            jumps: 0,
            masters: std::array::from_fn(|_| Master::default()),
            clients: Default::default(),
            register: None,
            highest: 0,
            broken: Broken::default(),
            wait: 0,
        }
    }

    /// Masters of the same sets are alike, and so are clients: of the states that differ by their numbers only, one
    /// stands for all.
    pub(crate) fn canonical(mut self, rollout: &Rollout<M>) -> Self {
        rollout.sort(&mut self.masters);
        let mut swapped = self.clone();
        swapped.clients.swap(0, 1);
        for master in &mut swapped.masters {
            master.swap_clients();
        }
        rollout.sort(&mut swapped.masters);
        if let Some(written) = &mut swapped.register {
            written.by.swap_clients();
        }
        self.min(swapped)
    }

    /// Whether the attempt has been given up, released or lost.
    pub(crate) fn is_ended(&self, attempt: Attempt) -> bool {
        self.clients[usize::from(attempt.client)].attempt() != Some(attempt.n)
    }
}

impl Attempt {
    pub(crate) fn swap_clients(&mut self) {
        self.client = 1 - self.client;
    }
}
