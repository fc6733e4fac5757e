//! The queue of the turn beside the votes: three acquisitions that claim, queue up, hold and release. Requests are
//! executed in any order, and the one who has the turn may die.
//!
//! The other model has no queue, because exclusion and tokens rest on the votes. This one has no time and no tokens:
//! it shows that a claim passes nobody who waits, and that everybody is served.

use stateright::{Model, Property};

const CLIENTS: usize = 3;
const MASTERS: usize = 3;

/// The property that nobody gets the turn while another one waits that came before.
pub const FIRST_COME: &str = "nobody is passed by";
/// The property that at most one holds.
pub const ONE_HOLDS: &str = "at most one holds";
/// The property that everybody is done in the end.
pub const SERVED: &str = "everybody is served";

/// A mistake that the properties must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFlaw {
    /// A claim looks whether the turn is free, and not whether somebody waits for it.
    QueuePassed,
    /// An acquisition goes by the votes of its claim, whether or not it got the turn.
    TurnNotNeeded,
    /// The release of a vote takes the turn with it, although somebody waits.
    TurnLeftToNobody,
}

/// The queue within bounds, perhaps with a flaw.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// What is wrong with it.
    pub flaw: Option<QueueFlaw>,
    /// Whether the one who has the turn may die.
    pub deaths: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    #[default]
    Idle,
    /// It has asked all masters, and the first one for the turn as well.
    Claiming,
    /// Its request for the turn is under way, or it waits.
    Queued,
    /// It has the turn and has asked for votes, or will.
    Voting,
    Holding,
    /// It has released its votes, and the turn is next unless that went with a vote.
    Leaving,
    Done,
}

/// A request that is under way to a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Request {
    Claim,
    Vote,
    Cancel,
    /// Releases the vote, and the turn with it unless somebody waits.
    Leave,
    QueueUp,
    ReleaseTurn,
}

/// What the first master has answered about the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Turn {
    #[default]
    Unknown,
    Taken,
    Granted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    phase: Phase,
    turn: Turn,
    /// At most two requests to each master are under way, the older one first.
    asked: [Vec<Request>; MASTERS],
}

/// One state of the masters and the acquisitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueState {
    votes: [Option<usize>; MASTERS],
    turn: Option<usize>,
    queue: Vec<usize>,
    clients: [Client; CLIENTS],
    is_passed: bool,
    claimed: bool,
    handed_over: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStep {
    /// An acquisition claims.
    Claim(usize),
    /// An acquisition queues up without a claim: it knows that the name is contended.
    QueueUp(usize),
    /// A master executes the oldest request of a client.
    Execute(usize, usize),
    /// A client goes on, once all its requests are answered.
    Count(usize),
    /// A holder releases.
    Release(usize),
    /// The lease of the turn ends, and the votes with it: its client has died.
    Die(usize),
    /// The first waiter asks whether the turn is free.
    Heartbeat,
}

impl QueueState {
    fn votes_of(&self, n: usize) -> usize {
        self.votes.iter().filter(|vote| **vote == Some(n)).count()
    }

    fn grant_turn(&mut self, n: usize) {
        self.is_passed |= self.queue.first().is_some_and(|first| *first != n);
        self.queue.retain(|waiter| *waiter != n);
        self.turn = Some(n);
        self.clients[n].turn = Turn::Granted;
    }

    fn hold(&mut self, n: usize) {
        self.is_passed |= self.turn != Some(n) && !self.queue.is_empty();
        self.clients[n].phase = Phase::Holding;
    }

    fn promote(&mut self) {
        if self.turn.is_none() && !self.queue.is_empty() {
            self.grant_turn(self.queue[0]);
        }
    }

    fn ask(&mut self, n: usize, of: impl Fn(usize) -> Option<Request>) {
        for (master, asked) in self.clients[n].asked.iter_mut().enumerate() {
            asked.extend(of(master));
        }
    }

    fn is_answered(&self, n: usize) -> bool {
        self.clients[n].asked.iter().all(Vec::is_empty)
    }
}

impl Model for Queue {
    type State = QueueState;
    type Action = QueueStep;

    fn init_states(&self) -> Vec<QueueState> {
        vec![QueueState::default()]
    }

    fn actions(&self, state: &QueueState, steps: &mut Vec<QueueStep>) {
        for (n, client) in state.clients.iter().enumerate() {
            let asked = client.asked.iter().enumerate().filter(|(_, asked)| !asked.is_empty());
            steps.extend(asked.map(|(master, _)| QueueStep::Execute(n, master)));
            match client.phase {
                Phase::Idle => steps.extend([QueueStep::Claim(n), QueueStep::QueueUp(n)]),
                Phase::Holding => steps.push(QueueStep::Release(n)),
                Phase::Queued if client.turn == Turn::Granted => steps.push(QueueStep::Count(n)),
                // What is cancelled is not waited for.
                Phase::Claiming | Phase::Leaving if state.is_answered(n) => steps.push(QueueStep::Count(n)),
                Phase::Voting if state.is_answered(n) => steps.push(QueueStep::Count(n)),
                _ => {}
            }
            let has_turn = state.turn == Some(n) && state.is_answered(n);
            if self.deaths && has_turn && client.phase != Phase::Done {
                steps.push(QueueStep::Die(n));
            }
        }
        // Without deaths, nobody has to ask: a release hands over.
        if self.deaths && state.turn.is_none() && !state.queue.is_empty() {
            steps.push(QueueStep::Heartbeat);
        }
    }

    fn next_state(&self, last: &QueueState, step: QueueStep) -> Option<QueueState> {
        let mut state = last.clone();
        match step {
            QueueStep::Claim(n) => {
                state.clients[n].phase = Phase::Claiming;
                state.ask(n, |master| Some(if master == 0 { Request::Claim } else { Request::Vote }));
            }
            QueueStep::QueueUp(n) => {
                state.clients[n].phase = Phase::Queued;
                state.ask(n, |master| (master == 0).then_some(Request::QueueUp));
            }
            QueueStep::Execute(n, master) => self.execute(&mut state, n, master),
            QueueStep::Count(n) => self.count(&mut state, n),
            QueueStep::Release(n) => {
                state.clients[n].phase = Phase::Leaving;
                state.ask(n, |master| Some(if master == 0 { Request::Leave } else { Request::Cancel }));
            }
            QueueStep::Die(n) => {
                state.votes.iter_mut().for_each(|vote| *vote = vote.filter(|by| *by != n));
                state.turn = None;
                state.clients[n] = Client { phase: Phase::Done, ..Client::default() };
            }
            QueueStep::Heartbeat => state.promote(),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always(FIRST_COME, |_, state| !state.is_passed),
            Property::<Self>::always(ONE_HOLDS, |_, state| {
                state.clients.iter().filter(|client| client.phase == Phase::Holding).count() < 2
            }),
            Property::<Self>::eventually(SERVED, |_, state| {
                state.clients.iter().all(|client| client.phase == Phase::Done)
            }),
            Property::<Self>::sometimes("a claim is a hold", |_, state| state.claimed),
            Property::<Self>::sometimes("a release hands over", |_, state| state.handed_over),
        ]
    }
}

impl Queue {
    fn execute(&self, state: &mut QueueState, n: usize, master: usize) {
        let request = state.clients[n].asked[master].remove(0);
        let vote = |state: &mut QueueState| state.votes[master] = state.votes[master].or(Some(n));
        let give_back = |state: &mut QueueState| state.votes[master] = state.votes[master].filter(|by| *by != n);
        match request {
            Request::Claim => {
                let waits = !state.queue.is_empty() && self.flaw != Some(QueueFlaw::QueuePassed);
                if state.turn.is_some() || waits {
                    state.clients[n].turn = Turn::Taken;
                } else {
                    state.grant_turn(n);
                    vote(state);
                }
            }
            Request::Vote => vote(state),
            Request::Cancel => give_back(state),
            Request::Leave => {
                give_back(state);
                if state.queue.is_empty() || self.flaw == Some(QueueFlaw::TurnLeftToNobody) {
                    state.turn = state.turn.filter(|by| *by != n);
                    state.clients[n].turn = Turn::Unknown;
                }
            }
            Request::QueueUp => {
                state.queue.push(n);
                state.promote();
            }
            Request::ReleaseTurn => {
                state.turn = state.turn.filter(|by| *by != n);
                state.clients[n].turn = Turn::Unknown;
                state.handed_over |= !state.queue.is_empty();
                state.promote();
            }
        }
    }

    fn count(&self, state: &mut QueueState, n: usize) {
        let has_majority = state.votes_of(n) > MASTERS / 2;
        let client = &mut state.clients[n];
        match (client.phase, client.turn) {
            (Phase::Claiming, Turn::Granted) if has_majority => {
                state.claimed = true;
                state.hold(n);
            }
            (Phase::Claiming, Turn::Taken) if has_majority && self.flaw == Some(QueueFlaw::TurnNotNeeded) => {
                state.hold(n);
            }
            (Phase::Claiming, Turn::Granted) => {
                client.phase = Phase::Voting;
                state.ask(n, |_| Some(Request::Cancel));
            }
            (Phase::Claiming, _) => {
                (client.phase, client.turn) = (Phase::Queued, Turn::Unknown);
                state.ask(n, |_| Some(Request::Cancel));
                state.ask(n, |master| (master == 0).then_some(Request::QueueUp));
            }
            (Phase::Queued, _) => client.phase = Phase::Voting,
            (Phase::Voting, _) if has_majority => state.hold(n),
            // Looks at the masters first, so that it does not ask in vain.
            (Phase::Voting, _) => {
                let free = state.votes.iter().filter(|vote| vote.is_none_or(|by| by == n)).count();
                if free > MASTERS / 2 {
                    state.ask(n, |_| Some(Request::Vote));
                }
            }
            (Phase::Leaving, Turn::Granted) => {
                state.ask(n, |master| (master == 0).then_some(Request::ReleaseTurn));
            }
            (Phase::Leaving, _) => client.phase = Phase::Done,
            (Phase::Idle | Phase::Holding | Phase::Done, _) => {}
        }
    }
}
