//! Holds that replicas acknowledge.

use async_trait::async_trait;
use event_listener::Event;
use futures::stream::BoxStream;

use super::*;
use crate::connection::{Acknowledged, Topology};
use crate::engine::Grant;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::Hold;

/// The token of the grants in these tests.
const GRANTED: u64 = 7;

/// The reply that the hold has this token in Redis.
fn held(token: u64) -> Reply {
    Reply::Bytes(token.to_string().into_bytes())
}

/// Answers that every hold is in this state, and that `acknowledged` replicas have acknowledged it.
#[derive(Clone, Debug)]
struct Replicas {
    state: Reply,
    acknowledged: u32,
    /// If set, each call waits until it is notified.
    gate: Option<Arc<Event>>,
    /// The number of keys in each call: those of a lock, of which each hold has one.
    calls: Arc<Mutex<Vec<usize>>>,
}

#[async_trait]
impl Connection for Replicas {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        Err(ConnectionError::Unreachable("no".to_owned()))
    }

    async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        Vec::new()
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        _: u32,
        _: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        lock(&self.calls).push(calls[0].keys.len());
        if let Some(gate) = &self.gate {
            gate.listen().await;
        }
        let mut states = vec![self.state.clone(); calls[0].args.len() / 4];
        if calls[0].script.name() == "permit_renew_short" {
            // It is stored in full.
            states.pop();
            states.push(Reply::Integer(-2));
        }
        let reply = Reply::Array([Reply::Integer(5)].into_iter().chain(states).collect());
        vec![Ok(Acknowledged::new(reply, self.acknowledged))]
    }

    async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn close(&self) {}
}

/// The watchdog of a client whose holds need two replicas.
fn with_replicas(state: Reply, acknowledged: u32, gate: Option<Arc<Event>>) -> (Setup, Arc<Mutex<Vec<usize>>>) {
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let connection = Replicas { state, acknowledged, gate, calls: Arc::default() };
    let calls = connection.calls.clone();
    let watchdog = watchdog(&executor, Arc::new(connection));
    let engine = watchdog.engine.clone();
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    let task = Box::pin(watchdog.run());
    (Setup { engine, executor, calls: Calls::default(), task, keys, polls: 0 }, calls)
}

impl Setup {
    fn hold(&self) -> Arc<Hold> {
        let (id, now) = (self.open(), self.executor.now());
        let grant = Grant {
            amount: 1,
            token: Token::new(GRANTED),
            term: Term::Renewed,
            deadline: now + LEASE,
            replicas: 2,
            at_first: true,
        };
        self.engine.grant(id, grant, now).unwrap()
    }
}

#[test]
fn one_call_confirms_all_grants_that_came_during_the_last_one() {
    let gate = Arc::new(Event::new());
    let (mut setup, calls) = with_replicas(held(GRANTED), 2, Some(gate.clone()));
    let engine = setup.engine.clone();
    let holds = [setup.hold(), setup.hold(), setup.hold(), setup.hold()];
    let mut open = |confirmed: &mut Vec<_>, from: usize, to: usize| {
        confirmed.extend(holds[from..to].iter().map(|hold| engine.confirm(hold)));
        setup.run(Duration::ZERO);
    };
    let mut confirmed = Vec::new();
    open(&mut confirmed, 0, 1);
    open(&mut confirmed, 1, 3);
    assert_eq!(*lock(&calls), [1]);
    gate.notify(usize::MAX);
    open(&mut confirmed, 3, 3);
    assert_eq!(*lock(&calls), [1, 2]);
    gate.notify(usize::MAX);
    open(&mut confirmed, 3, 3);
    open(&mut confirmed, 3, 4);
    assert_eq!(*lock(&calls), [1, 2, 1]);
    gate.notify(usize::MAX);
    open(&mut confirmed, 4, 4);
    assert!(
        confirmed.into_iter().all(|confirming| confirming.done().now_or_never() == Some(Confirmation::Acknowledged))
    );
}

/// A grant that was confirmed does not wait for the call about another one.
#[test]
fn permits_that_are_stored_in_full_are_confirmed_by_a_second_call() {
    let gate = Arc::new(Event::new());
    let (mut setup, calls) = with_replicas(held(GRANTED), 2, Some(gate.clone()));
    setup.keys = Arc::new(Keys::new("p", Kind::Semaphore { limit: 3 }, "n").unwrap());
    let engine = setup.engine.clone();
    let holds = [setup.hold(), setup.hold()];
    let [first, second] = holds.each_ref().map(|hold| engine.confirm(hold));
    setup.run(Duration::ZERO);
    gate.notify(usize::MAX);
    setup.run(Duration::ZERO);
    assert_eq!(*lock(&calls), [2, 2], "two main keys, and both keys of one hold");
    assert_eq!(first.done().now_or_never(), Some(Confirmation::Acknowledged));
    gate.notify(usize::MAX);
    setup.run(Duration::ZERO);
    assert_eq!(second.done().now_or_never(), Some(Confirmation::Acknowledged));
}

#[test]
fn a_confirmation_says_what_the_server_and_the_replicas_have() {
    let passed = Duration::from_secs(5);
    for (state, acknowledged, expected, extended) in [
        (held(GRANTED), 2, Confirmation::Acknowledged, true),
        (held(GRANTED), 1, Confirmation::TooFew(1), false),
        (Reply::Integer(0), 2, Confirmation::Gone, false),
        // A failover lost the grant but not the ticket, which was then granted again.
        (held(GRANTED + 1), 2, Confirmation::Gone, false),
        (held(GRANTED - 1), 2, Confirmation::Gone, false),
    ] {
        let is_gone = expected == Confirmation::Gone;
        let (mut setup, _) = with_replicas(state.clone(), acknowledged, None);
        let hold = setup.hold();
        let engine = setup.engine.clone();
        setup.run(passed);
        let confirming = engine.confirm(&hold);
        setup.run(Duration::ZERO);
        assert_eq!(confirming.done().now_or_never(), Some(expected));
        let now = setup.executor.now();
        assert_eq!(hold.remaining(now) > LEASE - passed, extended, "{state:?} {acknowledged}");
        assert_eq!(hold.loss(now), is_gone.then_some(Loss::Gone), "{state:?}");
    }
}

#[test]
fn a_renewal_that_too_few_replicas_acknowledge_is_repeated() {
    let (mut setup, calls) = with_replicas(held(GRANTED), 1, None);
    let hold = setup.hold();
    setup.run(LEASE - Duration::from_secs(1));
    assert!(lock(&calls).len() > 3, "{:?}", lock(&calls));
    setup.run(Duration::from_secs(1));
    assert_eq!(hold.loss(setup.executor.now()), Some(Loss::Expired));
}

#[test]
fn a_hold_that_the_server_has_granted_once_more_is_lost() {
    let (mut setup, _) = with_replicas(held(GRANTED + 1), 2, None);
    let hold = setup.hold();
    setup.run(LEASE / 2);
    assert_eq!(hold.loss(setup.executor.now()), Some(Loss::Gone));
}
