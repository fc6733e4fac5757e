//! A cohort of which one member holds, while the others wait.

use super::*;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) struct Cohort {
    pub(super) setup: Setup,
    pub(super) id: CohortId,
    pub(super) others: Vec<u64>,
    pub(super) hold: Arc<Hold>,
}

/// The hold has that amount of tokens or units.
pub(super) fn cohort(kind: Kind, amount: u32, others: usize) -> Cohort {
    let setup = setup();
    let keys = Arc::new(Keys::new("p", kind, "a").unwrap());
    let id = CohortId::of(&keys, amount);
    let first = setup.engine.join_asleep(&id, 0).ok().unwrap();
    let handoff = setup.engine.open_in_cohort(&keys, first, (amount, false), LEASE, setup.now).unwrap();
    let until = setup.now + LEASE;
    let hold = setup.engine.hold(handoff.id, amount, Token::new(1), Term::Renewed, until, setup.now).unwrap();
    let others = (0..others).map(|_| setup.engine.join_asleep(&id, 0).ok().unwrap()).collect();
    Cohort { setup, id, others, hold }
}

impl Cohort {
    pub(super) fn poll(&self, other: usize) -> Option<Turn> {
        let context = Context::from_waker(Waker::noop());
        match self.setup.engine.poll_turn(&self.id, self.others[other], self.setup.now, &context) {
            Poll::Ready(Ok((Ok(turn), _))) => Some(turn),
            Poll::Pending => None,
            turn => panic!("{turn:?}"),
        }
    }

    #[track_caller]
    pub(super) fn held(&self, other: usize) -> (Arc<Hold>, HandoffBudget) {
        match self.poll(other) {
            Some(Turn::Held { hold, budget, .. }) => (hold, budget),
            turn => panic!("{turn:?}"),
        }
    }

    /// The budget of the first hold.
    pub(super) fn budget(&self) -> HandoffBudget {
        HandoffBudget::of(self.hold.keys.kind.claim(self.hold.amount), self.hold.token(), self.setup.now, SECOND)
    }

    /// Hands off the first hold, which is watched here.
    pub(super) fn hand_off_first(&self, budget: HandoffBudget) -> bool {
        self.hand_off(&mut self.hold.clone(), budget)
    }

    pub(super) fn hand_off(&self, hold: &mut Arc<Hold>, budget: HandoffBudget) -> bool {
        self.setup.engine.hand_off(&self.id, hold, budget, None, self.setup.now)
    }
}
