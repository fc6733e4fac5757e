use futures::FutureExt;

use super::*;
use crate::runtime::an_instant;
use crate::protocol::key::Kind;
use crate::protocol::reply::{TicketState, Touched};
use crate::protocol::ticket::ticket;

mod counts;
mod endings;
mod storm;
mod terms;
mod touched;

const LEASE: Duration = Duration::from_secs(30);

struct Setup {
    ledger: Ledger,
    now: Instant,
}

fn setup() -> Setup {
    Setup { ledger: Ledger::new(Uuid::from_u128(1)), now: an_instant() }
}

fn keys(name: &str) -> Arc<Keys> {
    Arc::new(Keys::new("p", Kind::Lock, name).unwrap())
}

impl Setup {
    fn open(&self, keys: &Arc<Keys>) -> WireId {
        self.ledger.open(keys, 1, LEASE, self.now).unwrap()
    }

    fn queue(&self, id: WireId) {
        let queued = Queued { sent: self.now, asked: 1, holder_left: Some(LEASE), more: false };
        assert!(!self.ledger.queued(id, queued, self.now));
    }

    fn waits(&self, keys: &Arc<Keys>) -> WireId {
        let id = self.open(keys);
        self.queue(id);
        id
    }

    fn grant(&self, id: WireId, renewed: bool) -> Arc<Hold> {
        let term = if renewed { Term::Renewed } else { Term::Fixed };
        self.ledger.hold(id, 1, Token::new(7), term, self.now + LEASE, self.now).unwrap()
    }

    fn holds(&self, keys: &Arc<Keys>) -> Arc<Hold> {
        self.grant(self.open(keys), true)
    }

    /// The server said so of all of them, when its clock showed that.
    fn touched(&self, keys: &Arc<Keys>, ids: &[u64], server: u64, state: TicketState) {
        let answer = Touched { now: server, holder_left: Some(LEASE), more: false, tickets: vec![state; ids.len()] };
        self.ledger.touched(keys, ids, self.now, self.now, answer);
    }

    /// Ends what is under way of these, as if the server had answered.
    fn answer(&self, work: &Work) {
        for touch in &work.touch {
            let ids: Vec<u64> = touch.tickets.iter().map(|(id, ..)| *id).collect();
            self.touched(&touch.keys, &ids, 0, TicketState::Waiting);
        }
        for (n, _) in &work.cleanups {
            self.ledger.cleanup_done(*n);
        }
    }

    /// Nothing is left to do for anything that has ended.
    fn clean_up(&self) {
        loop {
            let work = self.ledger.work(self.now);
            if work.cleanups.is_empty() {
                return;
            }
            self.answer(&work);
        }
    }

    /// Everything that has begun has ended, without a trace.
    #[track_caller]
    fn assert_empty(&self) {
        self.clean_up();
        let state = lock(&self.ledger.state);
        assert!(state.open.is_empty() && state.holds.is_empty() && state.ending_holds.is_empty(), "{state:?}");
        assert!(state.touches.is_empty() && state.schedule.is_empty() && state.lines.is_empty(), "{state:?}");
        assert!(state.cleanups.is_empty() && state.is_idle() && state.next().is_none(), "{state:?}");
        drop(state);
        let Stats { held, waiting, .. } = self.ledger.stats();
        assert_eq!((held, waiting), (0, 0));
    }
}
