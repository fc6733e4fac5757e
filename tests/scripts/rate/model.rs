//! The script against a model of GCRA that counts in absolute times, with whole numbers of any size, and against what a
//! quota means: how much is taken in any window of time. The embedded server runs the script, because its clock moves
//! by hand; that it agrees with real ones is what `tests/differential` shows.

use std::time::Duration;

use bowline::Reply;
use bowline::embedded::Server;
use bowline::wire::Request;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{LONGEST, limiter};

const NS_PER_MS: i128 = 1_000_000;

#[derive(Clone, Debug)]
enum Step {
    /// Permits are asked for, by a caller that would wait for so long, in ns.
    Take {
        cost: u64,
        longest: u64,
    },
    Look,
    Reset,
    /// The clock goes on, or is set back, in us.
    Clock(i64),
}

/// All in nanoseconds since the epoch.
#[derive(Debug, Default)]
struct Model {
    tat: i128,
    written: i128,
    /// The last millisecond of the key.
    lives_until: i128,
}

impl Model {
    /// The TAT at that time. If the clock was set back since it was written, it is as far ahead as it was then.
    fn tat(&self, now: i128) -> i128 {
        self.tat - (self.written - now).max(0)
    }

    /// How long to wait, and whether that is too long.
    fn take(&mut self, now: i128, cost: i128, burst: i128, longest: i128) -> (i128, bool) {
        let tat = self.tat(now).max(now);
        let wait = (tat + cost - burst - now).max(0);
        let limited = wait > longest;
        if !limited {
            self.store(now, tat + cost);
        } else if self.written > now {
            // The clock was set back, and time counts from this refusal on.
            self.store(now, tat);
        }
        (wait, limited)
    }

    fn store(&mut self, now: i128, tat: i128) {
        (self.tat, self.written) = (tat, now);
        self.lives_until = now / NS_PER_MS + (tat - now + NS_PER_MS - 1) / NS_PER_MS;
    }

    /// The key ends, and a clock that is set back does not bring it back.
    fn passes(&mut self, now: i128) {
        if now / NS_PER_MS > self.lives_until {
            *self = Self::default();
        }
    }

    fn ahead(&self, now: i128) -> i128 {
        (self.tat(now) - now).max(0)
    }
}

/// What the script replies: the word, if there is one, and the numbers.
fn run(server: &Server, request: &Request) -> (String, Vec<i128>) {
    let (keys, words) = (request.keys(), request.words());
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let Reply::Array(items) = server.eval(request.script.source(), &keys, &words).unwrap() else { panic!() };
    let mut reply = (String::new(), Vec::new());
    for item in items {
        match item {
            Reply::Bytes(word) => reply.0 = String::from_utf8(word).unwrap(),
            Reply::Integer(number) => reply.1.push(i128::from(number)),
            other => panic!("{other:?}"),
        }
    }
    reply
}

fn nanos(server: &Server) -> i128 {
    i128::try_from(server.now().as_nanos()).unwrap()
}

fn advance(server: &Server, micros: i64) {
    let by = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        server.set_clock(server.now().saturating_sub(by));
    } else {
        server.advance(by);
    }
}

fn server() -> Server {
    let server = Server::manual();
    server.set_clock(Duration::from_micros(1_800_000_000_123_457));
    server
}

fn take(cost: u64, burst: u64, longest: u64) -> Request {
    let [cost, burst, longest] = [cost, burst, longest].map(Duration::from_nanos);
    limiter().take(cost, burst, longest, 0)
}

fn steps(back: bool) -> impl Strategy<Value = (u64, u64, Vec<Step>)> {
    // From the highest rate to the lowest one.
    let interval = prop_oneof![100_u64..2_000, 50_000_u64..200_000, 1_000_000_u64..10_000_000_000, Just(LONGEST / 7)];
    (interval, 1_u64..8).prop_flat_map(move |(interval, burst)| {
        let times = i64::try_from(interval * burst / 1000).unwrap() + 2;
        let clock = prop_oneof![8 => 0..2 * times, 1 => 0..100 * times, 2 => if back { -times..0 } else { 0..1 }];
        let take = (1..=burst, prop_oneof![2 => Just(0), 1 => 0..4 * interval, 1 => Just(LONGEST)]);
        let step = prop_oneof![
            8 => take.prop_map(move |(permits, longest)| Step::Take { cost: permits * interval, longest }),
            1 => Just(Step::Look),
            u32::from(back) => Just(Step::Reset),
            4 => clock.prop_map(Step::Clock),
        ];
        vec(step, 1..60).prop_map(move |steps| (interval, burst, steps))
    })
}

fn agrees(interval: u64, burst: u64, steps: &[Step]) -> TestCaseResult {
    let (server, mut model, burst) = (server(), Model::default(), burst * interval);
    for step in steps {
        let now = nanos(&server);
        match *step {
            Step::Take { cost, longest } => {
                let (wait, limited) = model.take(now, cost.into(), burst.into(), longest.into());
                let expected = if limited { "LIMITED" } else { "TAKEN" };
                let (word, numbers) = run(&server, &take(cost, burst, longest));
                prop_assert_eq!((&*word, numbers), (expected, vec![wait, model.ahead(now), now / NS_PER_MS]));
            }
            Step::Look => {
                let (_, numbers) = run(&server, &limiter().inspect());
                prop_assert_eq!(numbers, vec![model.ahead(now), now / NS_PER_MS]);
            }
            Step::Reset => {
                let was_there = !server.dump().is_empty();
                let (word, numbers) = run(&server, &limiter().reset(0));
                prop_assert_eq!((&*word, numbers), ("RESET", vec![i128::from(was_there), now / NS_PER_MS]));
                model = Model::default();
            }
            Step::Clock(micros) => {
                advance(&server, micros);
                model.passes(nanos(&server));
            }
        }
        let dump = server.dump();
        // A key still exists in its last millisecond.
        let last = |at: Duration| at.as_nanos() as i128 + 999_999;
        let lives = dump.values().all(|entry| entry.expires.is_some_and(|at| last(at) >= model.tat));
        prop_assert!(lives, "the key ends before the TAT: {:?} {:?}", dump, model);
    }
    Ok(())
}

/// A permit is used when its wait is over. In any window of time, those used are at most the burst and what comes back.
fn keeps_the_rate(interval: u64, burst: u64, steps: &[Step]) -> TestCaseResult {
    let server = server();
    let mut used: Vec<(i128, i128)> = Vec::new();
    for step in steps {
        match *step {
            Step::Take { cost, longest } => {
                let (word, numbers) = run(&server, &take(cost, burst * interval, longest));
                if word == "TAKEN" {
                    used.push((nanos(&server) + numbers[0], cost.into()));
                }
            }
            Step::Clock(micros) => advance(&server, micros),
            Step::Look | Step::Reset => {}
        }
    }
    prop_assert!(used.is_sorted_by_key(|(at, _)| *at), "not in turn: {:?}", used);
    for (n, (from, _)) in used.iter().enumerate() {
        let mut taken = 0;
        for (to, cost) in &used[n..] {
            taken += cost;
            let most = i128::from(burst * interval) + to - from;
            prop_assert!(taken <= most, "{} ns of {} from {} to {}: {:?}", taken, most, from, to, used);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_script_agrees_with_the_model((interval, burst, steps) in steps(true)) {
        agrees(interval, burst, &steps)?;
    }

    #[test]
    fn no_window_has_more_than_the_quota((interval, burst, steps) in steps(false)) {
        keeps_the_rate(interval, burst, &steps)?;
    }
}
