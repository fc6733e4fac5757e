//! What can happen next, and what comes of it.

use crate::client::{LateWrite, Phase, Verdict, deadline, tally};
use crate::flaw::Flaw;
use crate::master::{Answer, Request, Vote};
use crate::rollout::Order;
use crate::scheme::{Losses, Scheme};
use crate::state::{Attempt, CLIENTS, State, Written};

/// Tokens per tick of the clock.
pub(crate) const TOKENS: u8 = 4;

/// One step. Clients and masters are named by their numbers in the state before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An acquisition has its turn, and asks all masters for their votes.
    Begin {
        /// Who.
        client: usize,
        /// The token that it proposes.
        token: u8,
    },
    /// A master executes a request.
    Execute {
        /// Whose request.
        client: usize,
        /// Where.
        master: usize,
        /// Whether the answer arrives.
        heard: bool,
    },
    /// A client counts the answers so far. It holds, or asks for a second round.
    Count(usize),
    /// A client ends its acquisition or its hold.
    End(usize),
    /// The client of a hold renews its votes, and asks again for lost ones.
    Renew(usize),
    /// The client of a valid guard writes.
    Write(usize),
    /// A write of an earlier hold arrives.
    WriteLate(usize),
    /// The lock of a master ends: by its lease, a release, a cancellation or a jump of its clock.
    Free(usize),
    /// A master restarts without its data.
    Restart(usize),
    /// A program ends, and starts with the next set of masters, or with the one before.
    Start {
        /// Which program.
        client: usize,
        /// The version of the set.
        version: u8,
    },
    /// Those who roll the sets out believe that a program has ended.
    Stop(usize),
    /// Time passes.
    Tick,
}

impl<const M: usize> Scheme<M> {
    /// Everything that can happen in this state.
    pub(crate) fn steps(&self, state: &State<M>, steps: &mut Vec<Step>) {
        for client in 0..CLIENTS {
            self.steps_of_client(state, client, steps);
        }
        for (n, master) in state.masters.iter().enumerate() {
            for client in 0..CLIENTS {
                if master.links[client].asked.is_some() {
                    steps.push(Step::Execute { client, master: n, heard: true });
                    if self.bounds.losses == Losses::Answers {
                        steps.push(Step::Execute { client, master: n, heard: false });
                    }
                }
            }
            let may_jump = state.jumps < self.bounds.jumps;
            if master.lock.is_some_and(|lock| lock.left == 0 || state.is_ended(lock.by) || may_jump) {
                steps.push(Step::Free(n));
            }
            if state.crashes < self.bounds.restarts {
                steps.push(Step::Restart(n));
            }
        }
        if state.now < self.bounds.ticks {
            steps.push(Step::Tick);
        }
    }

    fn steps_of_client(&self, state: &State<M>, n: usize, steps: &mut Vec<Step>) {
        let client = &state.clients[n];
        if client.phase == Phase::Idle && !client.stopped && self.rollout.sets.len() > 1 {
            let steps_to = [client.version.checked_sub(1), client.version.checked_add(1)].into_iter().flatten();
            let versions = steps_to.filter(|version| self.may_start(state, n, *version));
            steps.extend(versions.map(|version| Step::Start { client: n, version }));
        }
        if client.phase != Phase::Idle && !client.stopped && !self.rollout.is_last(client.version) {
            steps.push(Step::Stop(n));
        }
        match client.phase {
            Phase::Idle if client.stopped => {}
            // A client without acquisitions left continues with its old token.
            Phase::Idle if client.old > 0 && client.begun == self.bounds.acquisitions => {
                steps.push(Step::Begin { client: n, token: client.old });
            }
            Phase::Idle if client.begun < self.bounds.acquisitions => {
                let tokens = self.proposals(state).into_iter();
                steps.extend(tokens.map(|token| Step::Begin { client: n, token }));
            }
            Phase::Idle => {}
            Phase::Voting { is_second, .. } => {
                let may_count = !client.told && (self.bounds.losses != Losses::Nothing || state.has_answers(n));
                match tally(state.answers(n), self.rollout.majority(client.version), self.flaw) {
                    Verdict::Held(_) if may_count => steps.push(Step::Count(n)),
                    Verdict::Propose(_) if may_count && !is_second && !client.stopped => steps.push(Step::Count(n)),
                    _ => {}
                }
                steps.push(Step::End(n));
            }
            Phase::Holding { .. } => {
                steps.extend([Step::Write(n), Step::End(n)]);
                if client.renewals < self.bounds.renewals && !client.stopped {
                    steps.push(Step::Renew(n));
                }
            }
        }
        if client.late.is_some() {
            steps.push(Step::WriteLate(n));
        }
    }

    /// Whether the program may start anew with that version: those of all others are next to it or the same.
    fn may_start(&self, state: &State<M>, n: usize, version: u8) -> bool {
        let others = state.clients.iter().enumerate().filter(|(other, client)| *other != n && !client.stopped);
        let are_near = others.clone().all(|(_, client)| client.version.abs_diff(version) < 2);
        usize::from(version) < self.rollout.sets.len()
            && match self.rollout.order {
                Order::Kept => are_near && state.wait == 0,
                Order::WithoutWaiting => are_near,
                Order::TooFar => version > state.clients[n].version,
            }
    }

    /// What a turn may propose: any clock of a master, or with the flaw, the next of any counter.
    fn proposals(&self, state: &State<M>) -> Vec<u8> {
        let mut tokens: Vec<u8> = if self.flaw == Some(Flaw::NoClock) {
            state.masters.iter().map(|master| master.counter + 1).collect()
        } else {
            (0..=self.bounds.skew).map(|behind| TOKENS * (state.now + self.bounds.skew - behind)).collect()
        };
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    pub(crate) fn take(&self, state: &mut State<M>, step: Step) {
        match step {
            Step::Begin { client, token } => self.begin(state, client, token),
            Step::Execute { client, master, heard } => self.execute(state, client, master, heard),
            Step::Count(client) => self.count(state, client),
            Step::End(client) => self.end(state, client),
            Step::Renew(client) => {
                state.clients[client].renewals += 1;
                self.ask(state, client, |_| true);
            }
            Step::Write(n) => {
                let client = &state.clients[n];
                self.write(state, n, LateWrite { token: client.token(), n: client.begun }, true);
            }
            Step::WriteLate(n) => {
                if let Some(late) = state.clients[n].late.take() {
                    self.write(state, n, late, false);
                }
            }
            Step::Free(n) => {
                let ended = state.masters[n].free();
                let is_jump = ended.is_some_and(|lock| lock.left > 0 && !state.is_ended(lock.by));
                state.jumps += u8::from(is_jump);
            }
            Step::Restart(n) => {
                state.crashes += 1;
                state.masters[n].restart(self.bounds.lease);
            }
            Step::Start { client, version } => {
                let before = std::mem::replace(&mut state.clients[client].version, version);
                self.has_ended(state, before);
            }
            Step::Stop(n) => {
                state.clients[n].stopped = true;
                self.has_ended(state, state.clients[n].version);
            }
            Step::Tick => self.tick(state),
        }
    }

    /// A program of that version has ended. If it was the last one, the longest lease begins that it may have had.
    fn has_ended(&self, state: &mut State<M>, version: u8) {
        let is_last = !state.clients.iter().any(|client| client.version == version && !client.stopped);
        if is_last && self.rollout.order == Order::Kept {
            state.wait = self.bounds.lease;
        }
    }

    fn begin(&self, state: &mut State<M>, n: usize, token: u8) {
        // Without jumps of the clock, a stronger property covers this one.
        let floor = if self.bounds.jumps > 0 { state.highest } else { 0 };
        let client = &mut state.clients[n];
        client.begun += 1;
        client.phase = Phase::Voting { token, is_second: false, age: 0, floor };
        if self.flaw == Some(Flaw::OldProposal) {
            client.old = token;
        }
        self.ask(state, n, |_| true);
    }

    /// Asks the masters with such answers for their votes.
    fn ask(&self, state: &mut State<M>, n: usize, of: impl Fn(Option<Answer>) -> bool) {
        let client = &state.clients[n];
        let set = self.rollout.set(client.version);
        let request = {
            // A hold that has no majority any more does not claim one.
            let majority = self.rollout.majority(client.version);
            let has_majority = client.is_holding() && deadline(state.votes(n), majority).is_some();
            let granted = has_majority || self.flaw == Some(Flaw::ClaimedTooEarly);
            let version = self.rollout.named(client.version);
            Request { n: client.begun, token: client.token(), left: self.bounds.lease, granted, version }
        };
        for (master, knows) in state.masters.iter_mut().zip(set) {
            let link = &mut master.links[n];
            if *knows && of(link.answer) {
                link.asked = Some(request);
            }
        }
    }

    fn execute(&self, state: &mut State<M>, n: usize, master: usize, heard: bool) {
        let Some(request) = state.masters[master].links[n].asked.take() else { return };
        let by = Attempt { client: u8::from(n == 1), n: request.n };
        let vote = state.masters[master].vote(by, request, self.bounds.lease, self.flaw);
        let client = &mut state.clients[n];
        if !heard || client.attempt() != Some(request.n) || client.token() != request.token {
            return;
        }
        client.told |= matches!(vote, Vote::Other) && !client.is_holding();
        state.masters[master].links[n].answer = if let Vote::Answer(answer) = vote { Some(answer) } else { None };
        self.prolong(state, n);
    }

    fn count(&self, state: &mut State<M>, n: usize) {
        let Phase::Voting { token, is_second, age, floor } = state.clients[n].phase else { return };
        match tally(state.answers(n), self.rollout.majority(state.clients[n].version), self.flaw) {
            Verdict::Held(left) => {
                let left = if self.flaw == Some(Flaw::LeaseFromAnswer) { self.bounds.lease } else { left };
                state.clients[n].phase = Phase::Holding { token, is_second, left };
                state.clients[n].old = 0;
                state.broken.order |= token <= state.highest;
                state.broken.growth |= token <= floor;
                state.highest = state.highest.max(token);
            }
            Verdict::Propose(token) => {
                state.clients[n].phase = Phase::Voting { token, is_second: true, age, floor };
                self.ask(state, n, |answer| answer.is_some());
                for master in &mut state.masters {
                    master.links[n].answer = None;
                }
            }
            Verdict::TooFew => {}
        }
    }

    fn end(&self, state: &mut State<M>, n: usize) {
        let client = &mut state.clients[n];
        if let Phase::Holding { token, .. } = client.phase {
            client.late = Some(LateWrite { token, n: client.begun });
        }
        client.phase = Phase::Idle;
        client.told = false;
        for master in &mut state.masters {
            let link = &mut master.links[n];
            link.answer = None;
            match &mut link.asked {
                // The request may still be executed late, but its answer is not used.
                Some(asked) if self.bounds.late_requests => asked.left = 0,
                asked => *asked = None,
            }
        }
    }

    fn write(&self, state: &mut State<M>, n: usize, write: LateWrite, is_valid: bool) {
        let by = Attempt { client: u8::from(n == 1), n: write.n };
        let written = Written { token: write.token, by };
        match state.register {
            Some(last) if last.token > write.token => state.broken.register |= is_valid && self.bounds.jumps == 0,
            Some(last) if last.token == write.token => state.broken.register |= last.by != by,
            _ => state.register = Some(written),
        }
    }

    fn tick(&self, state: &mut State<M>) {
        state.now += 1;
        state.wait = state.wait.saturating_sub(1);
        for master in &mut state.masters {
            master.tick();
        }
        for n in 0..CLIENTS {
            match &mut state.clients[n].phase {
                Phase::Idle => {}
                Phase::Voting { age, .. } => {
                    *age += 1;
                    if *age > self.bounds.patience {
                        self.end(state, n);
                    }
                }
                Phase::Holding { left, .. } => {
                    *left -= 1;
                    self.prolong(state, n);
                    if matches!(state.clients[n].phase, Phase::Holding { left: 0, .. }) {
                        self.end(state, n);
                    }
                }
            }
        }
    }

    /// A hold lasts for as long as a majority of votes says.
    fn prolong(&self, state: &mut State<M>, n: usize) {
        if !state.clients[n].is_holding() {
            return;
        }
        let until = deadline(state.votes(n), self.rollout.majority(state.clients[n].version));
        if let Phase::Holding { left, .. } = &mut state.clients[n].phase {
            *left = until.map_or(*left, |until| until.max(*left));
        }
    }
}

impl<const M: usize> State<M> {
    pub(crate) fn answers(&self, client: usize) -> impl Iterator<Item = Answer> + Clone {
        self.masters.iter().filter_map(move |master| master.links[client].answer)
    }

    /// The answers that accept.
    pub(crate) fn votes(&self, client: usize) -> impl Iterator<Item = Answer> + Clone {
        self.answers(client).filter(|answer| answer.refused.is_none())
    }

    /// Whether nothing that the client has asked is under way.
    fn has_answers(&self, client: usize) -> bool {
        self.masters.iter().all(|master| master.links[client].asked.is_none())
    }
}
