//! A single-threaded executor in virtual time. The same seed gives the same run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::future::BoxFuture;

use crate::random::Random;

/// The machine: tasks of all processes, one clock.
pub struct Machine {
    start: Instant,
    history: Mutex<String>,
    /// One seed was asked for: its history is read by somebody.
    verbose: bool,
    state: Mutex<State>,
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
    /// By how many millionths the clocks of processes are fast.
    rates: HashMap<Process, i64>,
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
                rates: HashMap::new(),
                budget: SLEEPS_PER_POLL,
            }),
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

    /// What is worth a line only when somebody looks for a bug.
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

    /// Lets the clock of a process go wrong by that many millionths.
    pub fn set_rate(&self, process: Process, millionths: i64) {
        self.lock().rates.insert(process, millionths);
    }

    /// How long it takes until the clock of the process has moved on by that.
    pub fn takes(&self, process: Process, shown: Duration) -> Duration {
        let state = self.lock();
        state.when(process, state.shows(process) + shown).saturating_sub(state.now)
    }

    pub fn freeze(&self, process: Process, duration: Duration) {
        let mut state = self.lock();
        let (now, until) = (state.now, state.now + duration);
        let freezes = state.freezes.entry(process).or_default();
        if let Some(last) = freezes.last_mut() {
            last.1 = last.1.min(now);
        }
        freezes.push((now, until));
        // So that the time does not jump over the end of the freeze.
        state.last += 1;
        let id = state.last;
        state.timers.insert((until, id), Timer { process: WORLD, waker: None });
    }

    /// Since when the process can run; `None` while it cannot.
    pub fn awake_since(&self, process: Process) -> Option<Duration> {
        let state = self.lock();
        let since =
            state.freezes.get(&process).and_then(|freezes| freezes.last()).map_or(Duration::ZERO, |last| last.1);
        (since <= state.now && !state.dead.contains(&process)).then_some(since)
    }

    /// For how long the process could run until now.
    pub fn awake(&self, process: Process) -> Duration {
        let state = self.lock();
        let freezes = state.freezes.get(&process).map_or(&[][..], Vec::as_slice);
        state.now - freezes.iter().map(|(from, until)| (*until).min(state.now) - *from).sum::<Duration>()
    }

    /// Ends a process: its tasks are forgotten without running another line, drops included.
    pub fn kill(&self, process: Process) {
        let mut state = self.lock();
        state.dead.insert(process);
        let gone: Vec<u64> =
            state.tasks.iter().filter(|(_, task)| task.process == process).map(|(id, _)| *id).collect();
        for id in gone {
            state.ready.remove(&id);
            if let Some(future) = state.tasks.remove(&id).and_then(|task| task.future) {
                std::mem::forget(future);
            }
        }
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
                    // Killed by itself.
                    None => {
                        drop(state);
                        std::mem::forget(future);
                    }
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

const MILLION: u128 = 1_000_000;

impl State {
    /// How many millionths of a second the clock of the process counts in one.
    fn pace(&self, process: Process) -> u128 {
        MILLION.saturating_add_signed(self.rates.get(&process).copied().unwrap_or(0).into())
    }

    /// What the clock of the process shows now.
    fn shows(&self, process: Process) -> Duration {
        Duration::from_nanos((self.now.as_nanos() * self.pace(process) / MILLION) as u64)
    }

    /// When the clock of the process will show that.
    fn when(&self, process: Process, shown: Duration) -> Duration {
        Duration::from_nanos((shown.as_nanos() * MILLION).div_ceil(self.pace(process)) as u64)
    }
}

/// A process's view of the machine.
struct Handle {
    machine: Arc<Machine>,
    process: Process,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)
    }
}

impl Executor for Handle {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.machine.lock();
        if state.dead.contains(&self.process) {
            drop(state);
            std::mem::forget(task);
            return;
        }
        state.last += 1;
        let id = state.last;
        state.tasks.insert(id, Task { process: self.process, future: Some(task) });
        state.ready.insert(id);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.machine.lock();
        state.last += 1;
        // A year is for ever.
        let year = Duration::from_secs(365 * 24 * 3600);
        let at = state.when(self.process, state.shows(self.process) + duration.min(year));
        let key = (at, state.last);
        if duration < year {
            state.timers.insert(key, Timer { process: self.process, waker: None });
        }
        Box::pin(Sleep { machine: self.machine.clone(), key })
    }

    fn now(&self) -> Instant {
        self.machine.start + self.machine.lock().shows(self.process)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> bowline::Result<()> {
        unimplemented!("nothing blocks in a simulation")
    }
}

struct Sleep {
    machine: Arc<Machine>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.machine.lock();
        if state.now >= self.key.0 {
            if state.budget > 0 {
                state.budget -= 1;
                return Poll::Ready(());
            }
            drop(state);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(timer) = state.timers.get_mut(&self.key) {
            timer.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let timer = self.machine.lock().timers.remove(&self.key);
        drop(timer);
    }
}

struct TaskWaker {
    machine: Weak<Machine>,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(machine) = self.machine.upgrade() {
            let mut state = machine.lock();
            if state.tasks.contains_key(&self.id) {
                state.ready.insert(self.id);
            }
        }
    }
}
