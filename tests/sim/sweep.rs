//! The cancellation sweep: every operation, in every situation, dropped after every number of polls. Nothing of it may
//! remain, and the next waiter is served. How to add an operation: `docs/simulation.md`.

use std::fmt::Debug;
use std::ops::Range;

use crate::census::nothing_stays;
use crate::guard::What;
use crate::number;
use operation::{Before, OPERATIONS, Operation};
use polled::{Ended, Then};
use scene::{Contention, Fault, Scene};

mod afterwards;
mod barrier;
mod java;
mod latch;
mod lossy;
mod operation;
mod polled;
mod rivals;
mod scene;

/// The lock's.
const NAME: &str = "swept";

/// An operation that is not done after so many polls never is.
const MOST_POLLS: usize = 300;

#[derive(Default)]
struct Count {
    half_way: u64,
    done: u64,
    most_polls: usize,
}

/// Drops the operation after 0, 1, 2, ... polls, until it is done or has no use for more.
fn sweep<S: Debug>(
    operation: &Operation,
    situation: S,
    seed: u64,
    count: &mut Count,
    drop_after: impl Fn(&mut Scene, &S, usize, Then) -> Ended,
) {
    let mut scene = Scene::new(seed);
    let mut polls = 0;
    loop {
        let mut more = false;
        for then in [Then::Drop, Then::Wait] {
            scene.doing = format!(
                "{}, {situation:?}, {polls} polls, then {then:?}; replay: BOWLINE_SWEEP='{}' BOWLINE_SWEEP_SEED={seed} \
                 cargo test --features embedded --test sim sweep",
                operation.name, operation.name
            );
            let ended = drop_after(&mut scene, &situation, polls, then);
            more |= matches!(ended, Ended::Unpolled | Ended::HalfWay);
            count.half_way += u64::from(matches!(ended, Ended::HalfWay | Ended::Starved));
            count.done += u64::from(matches!(ended, Ended::Done(_)));
        }
        count.most_polls = count.most_polls.max(polls);
        if !more {
            scene.end_client();
            return;
        }
        polls += 1;
        assert!(polls < MOST_POLLS, "it never ends: {}", scene.doing);
    }
}

fn sweep_all(faults: &[Fault], few: u64, many: u64) {
    use Contention::{Free, Held, Idle, Queue, Released};
    const CONTENTIONS: [Contention; 5] = [Free, Held, Queue, Released, Idle];
    let seeds = match number("BOWLINE_SWEEP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BOWLINE_SWEEP_SEEDS").unwrap_or(if cfg!(debug_assertions) { few } else { many }),
    };
    for operation in OPERATIONS.iter().filter(is_asked_for) {
        let mut count = Count::default();
        for &fault in faults {
            // The calls of a client that is connecting get no faults.
            let contentions = match operation.before {
                Before::Nothing => &CONTENTIONS[..1],
                Before::Client if matches!(operation.on, What::Lock | What::Read | What::Write) => &CONTENTIONS,
                Before::Client | Before::Hold => &CONTENTIONS[..4],
            };
            for &contention in contentions {
                for seed in seeds.clone() {
                    nothing_stays(|| {
                        sweep(operation, (contention, fault), seed, &mut count, |scene, situation, polls, then| {
                            scene.drop_after(operation, *situation, polls, then)
                        });
                    });
                }
            }
        }
        count.tell(operation);
    }
    sweep_beside(latch::OPERATIONS, &latch::STANDINGS, faults, &seeds, Scene::drop_beside_latch);
    sweep_beside(barrier::OPERATIONS, &barrier::COMPANIES, faults, &seeds, Scene::drop_at_barrier);
    sweep_beside(java::OPERATIONS, &java::SITUATIONS, faults, &seeds, Scene::drop_beside_java);
    sweep_beside(java::timed::OPERATIONS, &java::SITUATIONS, faults, &seeds, Scene::drop_beside_leases);
}

/// The operations of what nobody holds, beside what others do to it.
fn sweep_beside<S: Copy + Debug>(
    operations: &[Operation],
    situations: &[S],
    faults: &[Fault],
    seeds: &Range<u64>,
    drop_beside: fn(&mut Scene, &Operation, (S, Fault), usize, Then) -> Ended,
) {
    for operation in operations.iter().filter(is_asked_for) {
        let mut count = Count::default();
        for &fault in faults {
            for &situation in situations {
                for seed in seeds.clone() {
                    nothing_stays(|| {
                        sweep(operation, (situation, fault), seed, &mut count, |scene, situation, polls, then| {
                            drop_beside(scene, operation, *situation, polls, then)
                        });
                    });
                }
            }
        }
        count.tell(operation);
    }
}

fn is_asked_for(operation: &&Operation) -> bool {
    std::env::var("BOWLINE_SWEEP").map_or(true, |only| only == operation.name)
}

impl Count {
    fn tell(&self, operation: &Operation) {
        let Self { half_way, done, most_polls } = self;
        println!("{:40} {half_way:6} half way, {done:6} done, {most_polls:2} polls at most", operation.name);
        assert!(*half_way > 0, "{} was never dropped half way", operation.name);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "swept without debug assertions, by scripts/test")]
fn without_faults() {
    sweep_all(&[Fault::None], 1, 8);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "swept without debug assertions, by scripts/test")]
fn with_faults() {
    sweep_all(&[Fault::RequestLost, Fault::ReplyLost, Fault::Cut, Fault::SubscriptionCut], 1, 3);
}
