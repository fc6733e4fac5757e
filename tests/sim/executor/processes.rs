//! What becomes of processes: clocks that are wrong, freezes, death.

use std::time::Duration;

use super::{Machine, Process, State, Timer, WORLD};

impl Machine {
    /// Lets the clock of a process go wrong by that many millionths.
    pub fn set_rate(&self, process: Process, millionths: i64) {
        self.lock().rates.insert(process, millionths);
    }

    /// A clock of a server, which goes wrong by that many millionths.
    pub fn clock(&self, millionths: i64) -> Process {
        let mut state = self.lock();
        let clock = CLOCKS + state.rates.range(CLOCKS..).count();
        state.rates.insert(clock, millionths);
        clock
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
        // Advanced, so that the time does not jump past the end of the freeze.
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

    /// Ends a process: its tasks stop without running another line, drops included.
    pub fn kill(&self, process: Process) {
        let mut state = self.lock();
        state.dead.insert(process);
        let gone: Vec<u64> =
            state.tasks.iter().filter(|(_, task)| task.process == process).map(|(id, _)| *id).collect();
        for id in gone {
            state.ready.remove(&id);
            let future = state.tasks.remove(&id).and_then(|task| task.future);
            state.buried.extend(future);
        }
    }

    /// The run is over: drops what is left of its tasks, which keep the machine and everything else alive.
    pub fn end(&self) {
        for _ in 0..MOST_GENERATIONS {
            let (tasks, buried) = {
                let mut state = self.lock();
                state.ready.clear();
                (std::mem::take(&mut state.tasks), std::mem::take(&mut state.buried))
            };
            if tasks.is_empty() && buried.is_empty() {
                return;
            }
            // Dropping them may spawn other tasks.
            drop((tasks, buried));
        }
        panic!("tasks that are dropped spawn others without end");
    }
}

/// The clocks of servers are counted from here.
const CLOCKS: Process = 1 << 20;

/// A guard that is dropped spawns its release, whose drop spawns what makes up for it.
const MOST_GENERATIONS: usize = 10;

const MILLION: u128 = 1_000_000;

impl State {
    /// How many millionths of a second the clock of the process counts in one.
    fn pace(&self, process: Process) -> u128 {
        MILLION.saturating_add_signed(self.rates.get(&process).copied().unwrap_or(0).into())
    }

    /// What the clock of the process shows now.
    pub(super) fn shows(&self, process: Process) -> Duration {
        Duration::from_nanos((self.now.as_nanos() * self.pace(process) / MILLION) as u64)
    }

    /// When the clock of the process will show that.
    pub(super) fn when(&self, process: Process, shown: Duration) -> Duration {
        Duration::from_nanos((shown.as_nanos() * MILLION).div_ceil(self.pace(process)) as u64)
    }
}
