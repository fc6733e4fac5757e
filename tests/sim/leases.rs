//! What the tasks of a process do with leases of their own: fixed ones that they extend, renewed ones up to a limit;
//! and with sections and scopes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bowline::{Acquire, ErrorKind, Held, Holder, Result};

use crate::actor::Actor;
use crate::guard::{Guard, How, Waits, What};
use crate::judge::view::permits;
use crate::world::{Got, MS};

/// What a hold may last for at most, and from when on.
struct Promise {
    from: Instant,
    lasts: Duration,
}

/// The guard that a section was given, until it is done.
type Slot = Mutex<Option<Arc<Guard>>>;

impl Actor {
    pub async fn use_lease(&mut self) {
        // One thread polls all tasks of all processes. No task may see the scope of another one.
        self.world.must(Holder::current().is_none(), || format!("{} is in the scope of another task", self.name));
        let name = self.random.pick(&self.names).clone();
        let what = if self.random.one_in(2) { What::Lock } else { self.what(&name) };
        match self.random.below(4) {
            0 => self.extends(&name, what).await,
            1 => self.holds_at_most(&name, what).await,
            2 => self.runs(&name, what).await,
            _ => self.enters_a_scope(&name, what).await,
        }
    }

    /// A fixed lease, which the task extends a few times.
    async fn extends(&mut self, name: &str, what: What) {
        let lease = self.lease();
        let how = How { lease: Some(lease), waits: self.waits(), ..How::default() };
        let Some((guard, started)) = self.gets(name, what, &how).await else { return };
        let mut promise = Promise { from: self.executor.now(), lasts: lease };
        self.world.acquired(self, name, started, &guard, Got::Granted);
        for _ in 0..self.random.below(4) {
            self.ends_in_time(name, &guard, &promise);
            let work = self.random.between(Duration::ZERO, promise.lasts / 2);
            if !self.work(name, &guard, work).await {
                break;
            }
            self.ends_in_time(name, &guard, &promise);
            promise = self.extend(name, &guard, promise).await;
        }
        self.ends_in_time(name, &guard, &promise);
        self.let_go(name, guard).await;
    }

    /// I14: an extended hold lasts for the lease from when it was asked, and for no less than it would have.
    async fn extend(&mut self, name: &str, guard: &Arc<Guard>, promise: Promise) -> Promise {
        let (lease, gives_up) = (self.lease(), self.maybe_gives_up(6, 20 * MS));
        let (asked, before) = (self.executor.now(), guard.remaining());
        let awake = self.world.machine.awake(self.process);
        let extended = self.or_give_up(guard.extend(lease), gives_up).await;
        self.in_time(name, awake, Some(self.world.longest_try()));
        let took = self.executor.now() - asked;
        match extended {
            Some(Ok(())) => {
                self.log(name, guard, &format!("extended by {lease:?}"));
                let least = (lease - drift(lease)).max(before).saturating_sub(took + MS);
                let left = guard.remaining();
                self.world.must(left >= least, || format!("I14 {name}: extended by {lease:?}, {left:?} are left"));
                self.world.keeps(name, guard);
                let longer = asked + took + lease > promise.from + promise.lasts;
                if longer { Promise { from: asked + took, lasts: lease } } else { promise }
            }
            Some(Err(error)) => {
                let over = error.kind() == ErrorKind::Lost;
                self.world.must(!over || !guard.is_valid(), || format!("I14 {name}: {error}, and the guard is valid"));
                self.failed(name, &error);
                promise
            }
            None => {
                self.world.log(format!("{} {name} extend dropped", self.name));
                promise
            }
        }
    }

    /// A lease that is renewed, but not for ever.
    async fn holds_at_most(&mut self, name: &str, what: What) {
        let (lease, limit) = (self.lease(), self.lease());
        let how = How { renewed: Some(lease), at_most: Some(limit), waits: self.waits(), ..How::default() };
        let Some((guard, started)) = self.gets(name, what, &how).await else { return };
        let promise = Promise { from: self.executor.now(), lasts: limit };
        self.world.acquired(self, name, started, &guard, Got::Granted);
        self.ends_in_time(name, &guard, &promise);
        let work = self.random.between(Duration::ZERO, 2 * limit);
        let kept = self.work(name, &guard, work).await;
        self.ends_in_time(name, &guard, &promise);
        let held = self.executor.now() - promise.from;
        if self.world.calm {
            // A request that is granted at once counts from before it was sent.
            let least = (limit - drift(limit)).saturating_sub(8 * self.world.longest_delay + 2 * MS);
            self.world.must(kept || held >= least, || format!("I14 {name}: lost after {held:?} of {limit:?}"));
        }
        // Another permit or reader of the client may have exactly the same lease.
        if !self.world.faults.any() && matches!(what, What::Lock | What::Write) {
            // The same applies in Redis: the last renewal has asked for the rest of the time, and was under way for a
            // while.
            let most = limit.saturating_sub(held) + self.world.longest_delay + drift(limit) + MS;
            let left = self.world.left(self, name, &guard);
            self.world.must(left <= most, || format!("I14 {name}: {held:?} of {limit:?}, and {left:?} left in Redis"));
        }
        self.let_go(name, guard).await;
    }

    /// I14: a fixed lease is not renewed, nor one beyond its limit.
    fn ends_in_time(&self, name: &str, guard: &Guard, promise: &Promise) {
        let left = guard.remaining();
        let most = promise.lasts.saturating_sub(self.executor.now() - promise.from);
        self.world.must(left <= most, || format!("I14 {name}: {left:?} are left, and it ends within {most:?}"));
    }

    /// A section, by `run`.
    async fn runs(&mut self, name: &str, what: What) {
        let client = self.client.clone();
        let semaphore = || client.semaphore(name, permits(name));
        match what {
            What::Lock => self.section(name, client.lock(name).lock(), Guard::Lock).await,
            What::Read => self.section(name, client.rw_lock(name).read(), Guard::Read).await,
            What::Upgradable => {
                self.section(name, client.rw_lock(name).upgradable_read(), Guard::Upgradable).await;
            }
            What::Write => self.section(name, client.rw_lock(name).write(), Guard::Write).await,
            What::Permits(count) => self.section(name, semaphore().acquire_many(count), Guard::Permits).await,
        }
    }

    async fn section<G: Held>(&mut self, name: &str, acquire: Acquire<G>, wrap: fn(G) -> Guard) {
        let timeout = (!self.world.calm && self.random.one_in(3)).then(|| self.random.between(MS, 3000 * MS));
        let acquire = if self.random.one_in(2) { acquire.fair() } else { acquire.non_fair() };
        let acquire = if let Some(timeout) = timeout { acquire.timeout(timeout) } else { acquire };
        let work = if !self.world.calm && self.random.one_in(10) { 1500 * MS } else { 10 * MS };
        let work = self.random.between(Duration::ZERO, work);
        let gives_up = self.maybe_gives_up(4, 60 * MS);
        let (started, slot) = (self.world.machine.now(), Slot::default());
        let ended =
            self.or_give_up(acquire.run(|guard| self.inside(name, started, &slot, wrap(guard), work)), gives_up);
        let ended: Option<Result<What>> = ended.await;
        // The work was stopped in the middle.
        let stopped = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(guard) = &stopped {
            let lost = matches!(&ended, Some(Err(error)) if error.kind() == ErrorKind::Lost);
            self.world.must(ended.is_none() || lost, || format!("{name}: the section ended before its work"));
            self.world
                .must(!lost || !guard.is_valid(), || format!("{name}: the work was stopped, and the guard is valid"));
            self.world.gone(name, guard);
        }
        match ended {
            Some(Ok(what)) => self.world.log(format!("{} {name} {what:?} section done", self.name)),
            Some(Err(error)) => self.failed(name, &error),
            None => self.world.log(format!("{} {name} section dropped", self.name)),
        }
    }

    /// What a section does.
    async fn inside(&self, name: &str, started: Duration, slot: &Slot, guard: Guard, work: Duration) -> What {
        let guard = Arc::new(guard);
        let what = guard.what();
        self.log(name, &guard, "held in a section");
        self.world.acquired(self, name, started, &guard, Got::Granted);
        *slot.lock().unwrap() = Some(guard.clone());
        self.executor.sleep(work).await;
        *slot.lock().unwrap() = None;
        self.world.gone(name, &guard);
        drop(guard);
        self.world.handing_over(&what.key(name));
        what
    }

    /// Acquires in a scope, and what is held there once more.
    async fn enters_a_scope(&mut self, name: &str, what: What) {
        let holder = Holder::new();
        holder.scope(self.in_a_scope(name, what, holder)).await;
        self.world.must(Holder::current().is_none(), || format!("{} is still in its scope", self.name));
    }

    async fn in_a_scope(&mut self, name: &str, what: What, holder: Holder) {
        let how = How { waits: self.waits(), ..How::default() };
        let got = self.gets(name, what, &how).await;
        self.world.must(Holder::current() == Some(holder), || format!("{} is not in its scope", self.name));
        let Some((guard, started)) = got else { return };
        self.world.acquired(self, name, started, &guard, Got::Granted);
        if what.is_reentrant() {
            self.enter(name, started, &guard, None).await;
        }
        let work = self.random.between(Duration::ZERO, 10 * MS);
        self.work(name, &guard, work).await;
        self.let_go(name, guard).await;
    }

    /// Acquires, gives up, or fails, and says when it began.
    async fn gets(&mut self, name: &str, what: What, how: &How<'_>) -> Option<(Arc<Guard>, Duration)> {
        let (started, awake) = (self.world.machine.now(), self.world.machine.awake(self.process));
        let gives_up = self.maybe_gives_up(6, 60 * MS);
        let got = self.or_give_up(how.acquire(&self.client, what, name), gives_up).await;
        let deadline = how.waits.as_ref().map_or(Some(self.world.longest_try()), |waits| waits.timeout);
        self.in_time(name, awake, deadline);
        match got {
            Some(Ok(Some(guard))) => {
                self.log(name, &guard, "held");
                return Some((Arc::new(guard), started));
            }
            Some(Ok(None)) => self.world.log(format!("{} {name} {what:?} busy", self.name)),
            Some(Err(error)) => self.failed(name, &error),
            None => self.world.log(format!("{} {name} {what:?} dropped", self.name)),
        }
        None
    }

    fn waits(&mut self) -> Option<Waits> {
        if self.random.one_in(5) {
            return None;
        }
        let timeout = (!self.world.calm && self.random.one_in(3)).then(|| self.random.between(MS, 3000 * MS));
        Some(Waits { fair: self.random.one_in(2), timeout, max_waiters: None })
    }

    fn lease(&mut self) -> Duration {
        self.random.between(100 * MS, 2000 * MS)
    }
}

/// By how much shorter a client counts a lease, as clocks differ.
fn drift(lease: Duration) -> Duration {
    (lease / 500).max(2 * MS)
}
