//! A single-threaded executor in virtual time. The same seed gives the same run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::future::BoxFuture;

use crate::census::{Counted, nothing_stays};
use crate::random::Random;
use handle::{Handle, TaskWaker};

mod handle;
mod processes;

/// The machine: tasks of all processes, one clock.
pub struct Machine {
    start: Instant,
    history: Mutex<String>,
    /// One seed was asked for, so its history will be read.
    verbose: bool,
    state: Mutex<State>,
    _counted: Counted,
}

struct State {
    now: Duration,
    random: Random,
    last: u64,
    tasks: HashMap<u64, Task>,
    ready: BTreeSet<u64>,
    timers: BTreeMap<(Duration, u64), Timer>,
    /// When each process stood or stands still: from, until.
    freezes: HashMap<Process, Vec<(Duration, Duration)>>,
    /// Processes that are gone with everything they were doing.
    dead: BTreeSet<Process>,
    /// What the dead were doing: not another line of it may run before the end, drops included.
    buried: Vec<BoxFuture<'static, ()>>,
    /// By how many millionths the clocks of processes are fast.
    rates: BTreeMap<Process, i64>,
    /// How many sleeps that are over one poll may still see.
    budget: u32,
}

struct Timer {
    process: Process,
    waker: Option<Waker>,
}

/// Tasks belong to processes, which can be frozen and killed. The first is the world itself, which cannot.
pub type Process = usize;

pub const WORLD: Process = 0;

struct Task {
    process: Process,
    /// `None` while it is polled.
    future: Option<BoxFuture<'static, ()>>,
}

/// Why a run ended before its time.
#[derive(Debug)]
pub enum Stuck {
    /// Tasks sleep, and no timer will wake them.
    Asleep,
    /// The limit of the virtual time was reached.
    OutOfTime,
    /// Tasks are polled without end.
    Restless,
}

/// Ten times the polls that a run has.
const MOST_POLLS: u64 = 3_000_000;

/// So many polls without a moment passing are no progress.
const MOST_POLLS_AT_ONCE: u64 = 50_000;

/// A task that has seen so many sleeps end in one poll lets the others go on, and the run look at what it does. It may
/// be a loop that waits for a moment long past.
const SLEEPS_PER_POLL: u32 = 10;

/// Runs `part` on a machine of its own, and fails if anything of it lives on afterwards.
pub fn on_new_machine<T>(seed: u64, part: impl FnOnce(&Arc<Machine>) -> T) -> T {
    nothing_stays(|| {
        let machine = Machine::new(seed);
        let output = part(&machine);
        machine.end();
        output
    })
}

impl Machine {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            history: Mutex::default(),
            verbose: std::env::var_os("BOWLINE_SIM_SEED").is_some(),
            state: Mutex::new(State {
                now: Duration::ZERO,
                random: Random::new(seed),
                last: 0,
                tasks: HashMap::new(),
                ready: BTreeSet::new(),
                timers: BTreeMap::new(),
                freezes: HashMap::new(),
                dead: BTreeSet::new(),
                buried: Vec::new(),
                rates: BTreeMap::new(),
                budget: SLEEPS_PER_POLL,
            }),
            _counted: Counted::new("machine"),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The virtual time since the start.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    pub fn log(&self, line: impl AsRef<str>) {
        let now = self.now().as_secs_f64() * 1e3;
        let _ = writeln!(self.history.lock().unwrap(), "{now:>12.3} ms  {}", line.as_ref());
    }

    /// What is worth a line only in the search for a bug.
    pub fn log_detail(&self, line: impl FnOnce() -> String) {
        if self.verbose {
            self.log(line());
        }
    }

    pub fn take_history(&self) -> String {
        std::mem::take(&mut self.history.lock().unwrap())
    }

    pub fn random<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.lock().random)
    }

    pub fn process(self: &Arc<Self>, process: Process) -> Arc<dyn Executor> {
        Arc::new(Handle { machine: self.clone(), process })
    }

    /// Tasks of everybody, and timers of the processes that live, that are there.
    pub fn live(&self) -> (usize, usize) {
        let state = self.lock();
        let of_the_living = |timer: &&Timer| timer.process != WORLD && !state.dead.contains(&timer.process);
        (state.tasks.len(), state.timers.values().filter(of_the_living).count())
    }

    /// Runs until `done` says so. Picks among the tasks that can run by chance, and lets time pass when none can.
    pub fn run_until(self: &Arc<Self>, limit: Duration, mut done: impl FnMut() -> bool) -> Result<(), Stuck> {
        let (mut polls, mut at_once) = (0, 0);
        while !done() {
            polls += 1;
            at_once += 1;
            if polls > MOST_POLLS || at_once > MOST_POLLS_AT_ONCE {
                return Err(Stuck::Restless);
            }
            if let Some((id, mut future)) = self.pick() {
                let waker = Waker::from(Arc::new(TaskWaker { machine: Arc::downgrade(self), id }));
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                let mut state = self.lock();
                match state.tasks.get_mut(&id) {
                    Some(task) if polled.is_pending() => task.future = Some(future),
                    Some(_) => {
                        state.tasks.remove(&id);
                        drop(state);
                        drop(future);
                    }
                    // The process has killed itself.
                    None => state.buried.push(future),
                }
            } else if self.pass_time(limit)? {
                at_once = 0;
            } else {
                return Err(Stuck::Asleep);
            }
        }
        Ok(())
    }

    fn pick(&self) -> Option<(u64, BoxFuture<'static, ()>)> {
        let mut state = self.lock();
        let state = &mut *state;
        let now = state.now;
        let frozen =
            |process: Process| state.freezes.get(&process).and_then(|all| all.last()).is_some_and(|f| f.1 > now);
        let runnable: Vec<u64> = state
            .ready
            .iter()
            .copied()
            .filter(|id| state.tasks.get(id).is_some_and(|task| !frozen(task.process)))
            .collect();
        if runnable.is_empty() {
            return None;
        }
        let id = runnable[state.random.below(runnable.len() as u64) as usize];
        state.ready.remove(&id);
        state.budget = SLEEPS_PER_POLL;
        let future = state.tasks.get_mut(&id)?.future.take()?;
        Some((id, future))
    }

    /// To the next timer; false if there is none.
    fn pass_time(&self, limit: Duration) -> Result<bool, Stuck> {
        let mut wakers = Vec::new();
        {
            let mut state = self.lock();
            let Some((&(at, _), _)) = state.timers.first_key_value() else { return Ok(false) };
            if at > limit {
                return Err(Stuck::OutOfTime);
            }
            state.now = at.max(state.now);
            while let Some(entry) = state.timers.first_entry() {
                if entry.key().0 > at {
                    break;
                }
                wakers.extend(entry.remove().waker);
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        Ok(true)
    }
}
