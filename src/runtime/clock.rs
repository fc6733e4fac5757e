//! The clock of the adapters: monotonic, and it also counts the time for which the machine was suspended, where the
//! system can tell.
//!
//! Leases go on while the client's machine is suspended. `Instant` does not on Linux (`CLOCK_MONOTONIC`), so a guard
//! would look valid for as much longer.

use std::sync::OnceLock;
#[cfg(feature = "tokio")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the clock.
pub(super) fn now() -> Instant {
    system::since_boot().map_or_else(system::instant, |boot| origin().at(boot + pretended()))
}

/// When the clock was read first. All executors count from here, because a hold over several servers compares their
/// times.
fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| Origin {
        #[cfg(feature = "tokio")]
        suspended: since_start(),
        instant: system::instant(),
        boot: system::since_boot().unwrap_or_default(),
    })
}

/// An instant, and how long after the start of the machine it was.
struct Origin {
    /// For how long the machine had been suspended by then.
    #[cfg(feature = "tokio")]
    suspended: Duration,
    instant: Instant,
    boot: Duration,
}

impl Origin {
    fn at(&self, boot: Duration) -> Instant {
        self.instant.checked_add(boot.saturating_sub(self.boot)).unwrap_or(self.instant)
    }

    /// For how long the machine was suspended since then. `seen`: since its start.
    #[cfg(feature = "tokio")]
    fn since(&self, seen: Duration) -> Duration {
        seen.saturating_sub(self.suspended)
    }
}

/// For how long the machine was suspended since the clock was read first. For a runtime whose clock may be another one
/// than the system's.
#[cfg(feature = "tokio")]
pub(super) fn suspended() -> Duration {
    static SUSPENDED: Suspended = Suspended { nanos: AtomicU64::new(0) };
    origin().since(SUSPENDED.learn(since_start())) + pretended()
}

/// For how long the machine was suspended since its start.
#[cfg(feature = "tokio")]
fn since_start() -> Duration {
    // In this order, a thread that is stopped in between sees less than there was, and never more.
    let (boot, awake) = (system::since_boot(), system::awake());
    boot.zip(awake).map_or(Duration::ZERO, |(boot, awake)| boot.saturating_sub(awake))
}

/// The longest time that was seen.
#[cfg(feature = "tokio")]
struct Suspended {
    nanos: AtomicU64,
}

#[cfg(feature = "tokio")]
impl Suspended {
    fn learn(&self, seen: Duration) -> Duration {
        let seen = u64::try_from(seen.as_nanos()).unwrap_or(u64::MAX);
        let known = self.nanos.load(Ordering::Relaxed);
        if seen > known {
            self.nanos.fetch_max(seen, Ordering::Relaxed);
        }
        Duration::from_nanos(seen.max(known))
    }
}

/// For how long the machine was suspended on top of that, in a test.
fn pretended() -> Duration {
    #[cfg(test)]
    return tests::PRETENDED.get();
    #[cfg(not(test))]
    return Duration::ZERO;
}

#[expect(clippy::disallowed_methods, reason = "this is for the adapters")]
mod system {
    use std::time::{Duration, Instant};

    pub(super) fn instant() -> Instant {
        Instant::now()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn read(clock: rustix::time::ClockId) -> Option<Duration> {
        let time = rustix::time::clock_gettime(clock);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }

    /// `None`: the system has no such clock, or `Instant` is one.
    pub(super) fn since_boot() -> Option<Duration> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return read(rustix::time::ClockId::Boottime);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return None;
    }

    /// The same without the time for which the machine was suspended.
    #[cfg(feature = "tokio")]
    pub(super) fn awake() -> Option<Duration> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return read(rustix::time::ClockId::Monotonic);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return None;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::runtime::Executor;

    thread_local! {
        /// For how long the machine was suspended, to this thread.
        pub(super) static PRETENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn counts_suspension(executor: &dyn Executor) {
        let before = executor.now();
        let after = executor.now();
        assert!(before <= after && after - before < HOUR);
        PRETENDED.set(HOUR);
        let resumed = executor.now();
        PRETENDED.set(Duration::ZERO);
        assert!((HOUR..2 * HOUR).contains(&(resumed - after)), "{:?}", resumed - after);
    }

    #[test]
    #[cfg(all(feature = "tokio", any(target_os = "linux", target_os = "android")))]
    fn a_tokio_runtime_counts_the_time_of_a_suspension() {
        use ::tokio::runtime::Builder;

        for mut builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
            let runtime = builder.worker_threads(1).enable_time().build().unwrap();
            counts_suspension(&crate::runtime::tokio::Tokio::new(runtime.handle().clone()));
        }
    }

    #[test]
    #[cfg(all(feature = "smol", any(target_os = "linux", target_os = "android")))]
    fn smol_counts_the_time_of_a_suspension() {
        counts_suspension(&crate::runtime::smol::Smol);
    }

    #[test]
    #[cfg(all(feature = "async-std", any(target_os = "linux", target_os = "android")))]
    fn async_std_counts_the_time_of_a_suspension() {
        counts_suspension(&crate::runtime::async_std::AsyncStd);
    }

    /// A program that starts on a machine that was suspended before.
    #[test]
    #[cfg(feature = "tokio")]
    fn all_executors_count_suspensions_from_the_same_time_on() {
        let instant = system::instant();
        let origin = Origin { suspended: 8 * HOUR, instant, boot: 10 * HOUR };
        for (boot, seen, suspended) in [(10, 8, 0), (13, 8, 0), (13, 10, 2)] {
            let passed = boot - 10;
            assert_eq!(origin.at(boot * HOUR), instant + passed * HOUR);
            let monotonic = instant + (passed - suspended) * HOUR;
            assert_eq!(monotonic + origin.since(seen * HOUR), instant + passed * HOUR, "{boot} {seen}");
        }
    }

    #[test]
    #[cfg(feature = "tokio")]
    fn the_time_of_suspensions_is_never_less_than_before() {
        let suspended = Suspended { nanos: AtomicU64::new(0) };
        for (seen, known) in [(HOUR, HOUR), (Duration::ZERO, HOUR), (HOUR * 2, HOUR * 2), (HOUR, HOUR * 2)] {
            assert_eq!(suspended.learn(seen), known);
        }
    }
}
