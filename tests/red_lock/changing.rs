//! The procedures of docs/quorum.md, "Changing the masters", with real masters and under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{ErrorKind, LockGuard, RedLockBuilder, Token};
use bowline_model::history::{Hold, check};
use futures::future::BoxFuture;

use crate::history::{Watched, assert_linearizable, nanoseconds};
use crate::masters::{Masters, Program, ms};
use crate::support::env::{Env, on_runtime};

on_runtime! {
    run, tokio_multi, TokioMulti,
    a_master_is_replaced_and_three_become_five_under_load,
    a_step_too_far_is_told_before_two_hold,
    without_a_version_the_same_step_lets_two_hold
}

const LEASE: Duration = ms(3000);
const LONG: &str = "long";
/// How long anything may take on a machine that does other work.
const GENEROUS: Duration = ms(30_000);

/// What the lock `a` protects.
#[derive(Default)]
struct Protected {
    inside: Option<Arc<LockGuard>>,
    last: Option<Token>,
    /// How many guards were valid when another one was granted, and how many tokens were not larger than the one
    /// before.
    overlaps: usize,
    stale: usize,
    past: Vec<Hold>,
}

impl Protected {
    /// A guard that was given out.
    fn enter(&mut self, guard: &Arc<LockGuard>) {
        // A guard whose lease ended before its task ran holds nothing.
        if guard.is_valid() {
            let other = self.inside.replace(guard.clone());
            self.overlaps += usize::from(other.is_some_and(|other| other.is_valid() && guard.is_valid()));
            self.stale += usize::from(self.last.replace(guard.token()).is_some_and(|last| last >= guard.token()));
        }
    }

    fn leave(&mut self, guard: &Arc<LockGuard>) {
        self.inside.take_if(|inside| Arc::ptr_eq(inside, guard));
    }
}

/// A program whose tasks acquire `a` again and again.
struct Running {
    program: Program,
    load: Arc<Load>,
    tasks: Vec<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    grants: AtomicUsize,
    /// How many acquisitions failed because of another set of masters.
    told: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

impl Running {
    async fn start(
        masters: &Masters,
        known: &[usize],
        build: impl FnOnce(RedLockBuilder) -> RedLockBuilder,
        protected: &Arc<Mutex<Protected>>,
    ) -> Self {
        let patient = |config: bowline::ConfigBuilder| config.lease(LEASE).retry_timeout(GENEROUS);
        let program = masters.program_of(known.iter().copied(), patient, build).await;
        Self { program, load: Arc::default(), tasks: Vec::new() }.loaded(&masters.env, protected)
    }

    fn loaded(mut self, env: &Env, protected: &Arc<Mutex<Protected>>) -> Self {
        for _ in 0..3 {
            let task = work(env.clone(), self.program.locks.clone(), self.load.clone(), protected.clone());
            self.tasks.push(env.spawn(task));
        }
        self
    }

    fn grants(&self) -> usize {
        self.load.grants.load(Ordering::SeqCst)
    }

    fn told(&self) -> usize {
        self.load.told.load(Ordering::SeqCst)
    }

    /// Ends the program. Returns why acquisitions failed.
    async fn stop(self) -> Vec<String> {
        self.load.is_over.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await;
        }
        for client in &self.program.clients {
            client.close().await;
        }
        std::mem::take(&mut self.load.failed.lock().unwrap())
    }
}

async fn work(env: Env, locks: bowline::RedLock, load: Arc<Load>, protected: Arc<Mutex<Protected>>) {
    while !load.is_over.load(Ordering::SeqCst) {
        let asked = nanoseconds();
        let guard = match locks.lock("a").timeout(GENEROUS).await {
            Ok(guard) => Arc::new(guard),
            Err(error) => {
                if error.kind() == ErrorKind::OtherMasters {
                    load.told.fetch_add(1, Ordering::SeqCst);
                }
                load.failed.lock().unwrap().push(format!("{error:#}"));
                env.sleep(ms(5)).await;
                continue;
            }
        };
        protected.lock().unwrap().enter(&guard);
        let mut watched = Watched::granted(&guard, asked);
        load.grants.fetch_add(1, Ordering::SeqCst);
        env.sleep(ms(2)).await;
        watched.iter_mut().for_each(|watched| watched.look(&guard));
        {
            let mut protected = protected.lock().unwrap();
            protected.leave(&guard);
            protected.past.extend(watched.map(|watched| watched.released(&guard)));
        }
        let guard = Arc::into_inner(guard).expect("no one else keeps it");
        // A master is frozen now and then, so it may be lost or be released later.
        let _ = guard.release().await;
    }
}

fn orders(version: u32) -> impl Fn(RedLockBuilder) -> RedLockBuilder {
    move |builder| builder.masters_version("orders", version)
}

/// Until all of the programs have been granted the lock some more times.
async fn all_work(env: &Env, programs: &[&Running]) {
    let before: Vec<usize> = programs.iter().map(|program| program.grants()).collect();
    env.eventually_within(GENEROUS, "all work", async || {
        programs.iter().zip(&before).all(|(program, before)| program.grants() >= before + 3)
    })
    .await;
}

fn waits_for_long(env: &Env, program: &Program) -> BoxFuture<'static, LockGuard> {
    let locks = program.locks.clone();
    env.spawn(async move { locks.lock(LONG).timeout(ms(50_000)).await.unwrap() })
}

async fn a_master_is_replaced_and_three_become_five_under_load(env: Env) {
    // With the master that stands still for a while in the step to the set.
    let sets: [(&[usize], usize); 5] =
        [(&[0, 1, 2], 0), (&[0, 1, 2, 3], 3), (&[0, 1, 3], 0), (&[0, 1, 3, 4], 1), (&[0, 1, 3, 4, 5], 0)];
    let masters = Masters::start(&env, 6);
    let protected = Arc::default();
    let mut holding = Running::start(&masters, sets[0].0, orders(1), &protected).await;
    let mut other = Running::start(&masters, sets[0].0, orders(1), &protected).await;
    let mut long = holding.program.locks.lock(LONG).timeout(GENEROUS).await.unwrap();
    for (version, (set, paused)) in (2..).zip(&sets[1..]) {
        // The master that is added counts before it is needed. Here, all of them were started at the beginning.
        let first = Running::start(&masters, set, orders(version), &protected).await;
        env.eventually_within(GENEROUS, "the masters count", async || {
            first.program.locks.inspect("a").await.unwrap().masters.iter().all(|master| master.counts)
        })
        .await;
        // The program that has held from before the last step.
        assert!(first.program.locks.try_lock(LONG).await.unwrap().is_none());
        let next = waits_for_long(&env, &first.program);
        all_work(&env, &[&holding, &other, &first]).await;
        masters.all[*paused].while_paused(all_work(&env, &[&holding, &first])).await;
        // While it is cut off from the first master, its queue is elsewhere. Only the votes exclude then.
        first.program.gates[0].freeze();
        all_work(&env, &[&holding, &first]).await;
        first.program.gates[0].thaw();
        assert!(long.is_valid(), "version {version}: {:?}", holding.program.locks.stats());
        let failed = other.stop().await;
        assert!(failed.is_empty(), "version {}: {failed:?}", version - 1);
        let second = Running::start(&masters, set, orders(version), &protected).await;
        all_work(&env, &[&holding, &first, &second]).await;
        // The last program of the version before ends, and with it its hold.
        assert!(long.is_valid(), "version {version}: {:?}", holding.program.locks.stats());
        let token = long.token();
        long.release().await.unwrap();
        long = next.await;
        assert!(long.token() > token);
        let failed = holding.stop().await;
        assert!(failed.is_empty(), "version {}: {failed:?}", version - 1);
        all_work(&env, &[&first, &second]).await;
        // The procedure itself.
        env.sleep(LEASE).await;
        (holding, other) = (first, second);
    }
    assert!(long.is_valid());
    long.release().await.unwrap();
    for program in [holding, other] {
        assert_eq!(program.stop().await, [""; 0]);
    }
    let protected = std::mem::take(&mut *protected.lock().unwrap());
    println!("{} holds", protected.past.len());
    assert_eq!((protected.overlaps, protected.stale), (0, 0));
    assert_linearizable(protected.past);
    masters.nothing_is_left().await;
}

/// Two programs of three masters each, two of which are the same. One cannot reach the first of these, so their queues
/// are elsewhere.
struct TooFar {
    masters: Masters,
    protected: Arc<Mutex<Protected>>,
}

impl TooFar {
    fn start(env: &Env) -> Self {
        Self { masters: Masters::start(env, 4), protected: Arc::default() }
    }

    async fn program(&self, is_old: bool, build: impl Fn(RedLockBuilder) -> RedLockBuilder) -> Running {
        let known = if is_old { [0, 1, 2] } else { [0, 1, 3] };
        let patient = |config: bowline::ConfigBuilder| config.lease(LEASE).retry_timeout(GENEROUS);
        let program = self.masters.program_of(known, patient, |builder| build(builder).durable(true)).await;
        if !is_old {
            program.gates[0].freeze();
        }
        Running { program, load: Arc::default(), tasks: Vec::new() }.loaded(&self.masters.env, &self.protected)
    }

    fn overlaps(&self) -> usize {
        self.protected.lock().unwrap().overlaps
    }

    async fn end(self, programs: impl IntoIterator<Item = Running>) -> Protected {
        for program in programs {
            program.program.gates[0].thaw();
            program.stop().await;
        }
        self.masters.nothing_is_left().await;
        std::mem::take(&mut *self.protected.lock().unwrap())
    }
}

async fn a_step_too_far_is_told_before_two_hold(env: Env) {
    for is_old in [true, false] {
        let scene = TooFar::start(&env);
        let version = |is_old| if is_old { orders(1) } else { orders(2) };
        let one = scene.program(is_old, version(is_old)).await;
        all_work(&env, &[&one]).await;
        let other = scene.program(!is_old, version(!is_old)).await;
        // Both may be told: a master does not know which of them is right.
        env.eventually_within(GENEROUS, "it is told", async || other.told() >= 20 || scene.overlaps() > 0).await;
        assert_eq!(scene.overlaps(), 0);
        other.program.gates[0].thaw();
        let failed = other.stop().await;
        let told = |error: &String| error.contains("of \"orders\", 3 masters; this program has version");
        assert!(failed.iter().all(told), "{failed:?}");
        // The first program works again when the last vote for the other is over.
        all_work(&env, &[&one]).await;
        println!("{} grants; told: {} times the first program, {} the other", one.grants(), one.told(), failed.len());
        assert!(one.load.failed.lock().unwrap().iter().all(told));
        let protected = scene.end([one]).await;
        assert_eq!((protected.overlaps, protected.stale), (0, 0));
        assert_linearizable(protected.past);
    }
}

/// The mistake that the versions are for, made on purpose: what the tests above look for is there to be found.
async fn without_a_version_the_same_step_lets_two_hold(env: Env) {
    let scene = TooFar::start(&env);
    let programs = [scene.program(true, |builder| builder).await, scene.program(false, |builder| builder).await];
    env.eventually_within(GENEROUS, "two hold", async || {
        let protected = scene.protected.lock().unwrap();
        protected.overlaps > 0 && check(&protected.past).is_err()
    })
    .await;
    scene.end(programs).await;
}
