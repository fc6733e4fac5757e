//! A single-threaded executor in virtual time. The same seed gives the same run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
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
    state: Mutex<State>,
}

struct State {
    now: Duration,
    random: Random,
    last: u64,
    tasks: HashMap<u64, Task>,
    ready: BTreeSet<u64>,
    timers: BTreeMap<(Duration, u64), Option<Waker>>,
    /// Processes that stand still, and until when.
    frozen: HashMap<Process, Duration>,
    /// Processes that are gone with everything they were doing.
    dead: BTreeSet<Process>,
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

/// More polls than any run needs.
const MOST_POLLS: u64 = 10_000_000;

impl Machine {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            state: Mutex::new(State {
                now: Duration::ZERO,
                random: Random::new(seed),
                last: 0,
                tasks: HashMap::new(),
                ready: BTreeSet::new(),
                timers: BTreeMap::new(),
                frozen: HashMap::new(),
                dead: BTreeSet::new(),
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

    pub fn random<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.lock().random)
    }

    pub fn process(self: &Arc<Self>, process: Process) -> Arc<dyn Executor> {
        Arc::new(Handle { machine: self.clone(), process })
    }

    pub fn freeze(&self, process: Process, duration: Duration) {
        let mut state = self.lock();
        let until = state.now + duration;
        state.frozen.insert(process, until);
        // So that the time does not jump over the end of the freeze.
        state.last += 1;
        let id = state.last;
        state.timers.insert((until, id), None);
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

    /// Tasks and timers that are there.
    pub fn live(&self) -> (usize, usize) {
        let state = self.lock();
        (state.tasks.len(), state.timers.len())
    }

    /// Runs until `done` says so. Picks among the tasks that can run by chance, and lets time pass when none can.
    pub fn run_until(self: &Arc<Self>, limit: Duration, mut done: impl FnMut() -> bool) -> Result<(), Stuck> {
        let mut polls = 0;
        while !done() {
            polls += 1;
            if polls > MOST_POLLS {
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
            } else if !self.pass_time(limit)? {
                return Err(Stuck::Asleep);
            }
        }
        Ok(())
    }

    fn pick(&self) -> Option<(u64, BoxFuture<'static, ()>)> {
        let mut state = self.lock();
        let state = &mut *state;
        let now = state.now;
        state.frozen.retain(|_, until| *until > now);
        let runnable: Vec<u64> = state
            .ready
            .iter()
            .copied()
            .filter(|id| state.tasks.get(id).is_some_and(|task| !state.frozen.contains_key(&task.process)))
            .collect();
        if runnable.is_empty() {
            return None;
        }
        let id = runnable[state.random.below(runnable.len() as u64) as usize];
        state.ready.remove(&id);
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
                wakers.extend(entry.remove());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        Ok(true)
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
        let at = state.now + duration.min(Duration::from_secs(365 * 24 * 3600));
        let key = (at, state.last);
        if duration < Duration::from_secs(365 * 24 * 3600) {
            state.timers.insert(key, None);
        }
        Box::pin(Sleep { machine: self.machine.clone(), key })
    }

    fn now(&self) -> Instant {
        self.machine.start + self.machine.now()
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
            return Poll::Ready(());
        }
        if let Some(waker) = state.timers.get_mut(&self.key) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let waker = self.machine.lock().timers.remove(&self.key);
        drop(waker);
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
