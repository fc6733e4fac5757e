//! Scenes about locks that Java shares: a simulated Redisson executes its own scripts, as `MONITOR` shows them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Reply;
use bowline::embedded::Server;
use futures::future::join_all;

use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

pub use timed::timed_permits_with_java;

mod timed;

const ACQUIRE: &str = "if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then \
    local token = redis.call('INCRBY', KEYS[2], 1) \
    local n = redis.call('HGET', KEYS[1], ARGV[2]) or 0 \
    redis.call('HSET', KEYS[1], ARGV[2], n + 1) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return token end \
    return -redis.call('PTTL', KEYS[1])";

const RELEASE: &str = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end \
    redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], '0') return 1";

const COUNT_DOWN: &str = "local v = redis.call('INCRBY', KEYS[1], '-1') \
    if v <= 0 then redis.call('DEL', KEYS[1]) end \
    if v == 0 then redis.call('PUBLISH', ARGV[1], '0') end return v";

const TAKE: &str = "local value = redis.call('GET', KEYS[1]) \
    if value ~= false and tonumber(value) >= tonumber(ARGV[1]) then \
    redis.call('INCRBY', KEYS[1], '-' .. ARGV[1]) return 1 end return 0";

const GIVE: &str = "local value = redis.call('INCRBY', KEYS[1], ARGV[1]) \
    redis.call('PUBLISH', ARGV[2], value) return value";

/// A thread of a Redisson client.
#[derive(Clone)]
struct Java {
    server: Server,
    owner: String,
}

impl Java {
    fn thread(stage: &Stage, n: u32) -> Self {
        Self { server: stage.server.nodes.server(), owner: format!("87fd5d7c-3e4f-4a51-8a5c-5a2d4ee0cbb1:{n}") }
    }

    /// Counts a latch down.
    fn count_down(&self) -> i64 {
        self.eval(COUNT_DOWN, &[&format!("redisson_countdownlatch__channel__{{{NAME}}}")])
    }

    /// Takes permits, if there are enough.
    fn take(&self, permits: u32) -> bool {
        self.eval(TAKE, &[&permits.to_string()]) == 1
    }

    fn give(&self, permits: u32) {
        self.eval(GIVE, &[&permits.to_string(), &format!("redisson_sc:{{{NAME}}}")]);
    }

    fn eval(&self, source: &str, args: &[&str]) -> i64 {
        let counter = format!("redisson_lock_token:{{{NAME}}}");
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        self.eval_with(source, &[NAME.as_bytes(), counter.as_bytes()], &args)
    }

    fn eval_with(&self, source: &str, keys: &[&[u8]], args: &[&[u8]]) -> i64 {
        match self.server.eval(source, keys, args) {
            Ok(Reply::Integer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The token, or what is left of the lease in the way.
    fn acquire(&self) -> Result<u64, Duration> {
        let answer = self.eval(ACQUIRE, &[&LONG.as_millis().to_string(), &self.owner]);
        u64::try_from(answer).map_err(|_| Duration::from_millis(answer.unsigned_abs()))
    }

    /// `false`: it does not hold.
    fn release(&self) -> bool {
        self.eval(RELEASE, &[&self.owner, &format!("redisson_lock__channel:{{{NAME}}}")]) == 1
    }
}

/// Java releases at any moment: before the other side asks, between its first question and its subscription, or while
/// it waits. The lease would last for much longer.
pub async fn woken_by_java(mut stage: Stage) -> Played {
    stage.server.unwatched();
    let process = stage.enter(LONG).await;
    let java = Java::thread(&stage, 1);
    for n in 0..16 {
        must(java.acquire().is_ok(), "I1 it is free, and Java does not get it")?;
        let lock = stage.client(process).redisson().lock(NAME);
        let waiting = stage.spawn(process, async move { lock.lock().await.unwrap() });
        stage.sleep(stage.hop * n / 4).await;
        must(java.release(), "I1 Java has lost its hold")?;
        let guard = stage.within(40 * stage.hop + 100 * MS, "I3 nobody wakes the one who waits", waiting).await?;
        must(java.acquire().is_err(), "I1 Java gets the lock that the other side holds")?;
        guard.release().await.unwrap();
        // The subscription ends, and the next round begins another one.
        stage.sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

/// What happens while the lock is held: at most one is inside, with a larger token than all before.
#[derive(Default)]
struct Inside {
    who: Option<String>,
    last: u64,
    broken: Option<String>,
}

type Shared = Arc<Mutex<Inside>>;

fn enters(inside: &Shared, who: &str, token: u64) {
    let mut inside = inside.lock().unwrap();
    if let Some(other) = inside.who.replace(who.to_owned()) {
        inside.broken.get_or_insert(format!("I1 {who} and {other} hold at the same time"));
    }
    if token <= inside.last {
        let last = inside.last;
        inside.broken.get_or_insert(format!("I2 token {token} of {who} after {last}"));
    }
    inside.last = token;
}

fn leaves(inside: &Shared) {
    inside.lock().unwrap().who = None;
}

/// Two processes with cohorts beside threads of Java, each of which holds for a while.
pub async fn beside_java(mut stage: Stage) -> Played {
    const ROUNDS: usize = 5;
    stage.server.unwatched();
    let processes = [stage.enter(LONG).await, stage.enter(LONG).await];
    let inside = Shared::default();
    let mut tasks = Vec::new();
    for n in 0..6 {
        let (process, inside, hop) = (processes[n % 2], Arc::clone(&inside), stage.hop);
        let lock = stage.client(process).redisson().fenced_lock(NAME);
        let executor = stage.client(process).executor().clone();
        tasks.push(stage.spawn(process, async move {
            for _ in 0..ROUNDS {
                let guard = lock.lock().await.unwrap();
                enters(&inside, &format!("task {n}"), guard.token().get());
                executor.sleep(hop / 2).await;
                leaves(&inside);
                guard.release().await.unwrap();
            }
        }));
    }
    for n in 0..2 {
        let (java, inside, hop) = (Java::thread(&stage, n), Arc::clone(&inside), stage.hop);
        let executor = stage.client(processes[0]).executor().clone();
        tasks.push(stage.spawn(processes[0], async move {
            for _ in 0..ROUNDS {
                let token = loop {
                    match java.acquire() {
                        Ok(token) => break token,
                        Err(_) => executor.sleep(hop).await,
                    }
                };
                enters(&inside, &java.owner, token);
                executor.sleep(hop / 2).await;
                leaves(&inside);
                if !java.release() {
                    inside.lock().unwrap().broken.get_or_insert("I1 Java has lost its hold".to_owned());
                }
                executor.sleep(hop).await;
            }
        }));
    }
    let all = Box::pin(join_all(tasks));
    stage.within(2 * LONG, "I3 not all are served", all).await?;
    let broken = inside.lock().unwrap().broken.take();
    broken.map_or(Ok(()), Err)
}

/// Both sides count a latch down. A call whose answer or request is lost counts once, and Java's last one wakes the one
/// who waits, at any moment.
pub async fn latch_with_java(mut stage: Stage) -> Played {
    stage.server.unwatched();
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let java = Java::thread(&stage, 1);
    for n in 0..8 {
        let (latch, of_other) = (
            stage.client(process).redisson().count_down_latch(NAME),
            stage.client(other).redisson().count_down_latch(NAME),
        );
        must(of_other.try_set_count(3).await.unwrap(), "I10 there is a latch already")?;
        let counting = stage.spawn(process, async move { latch.count_down().await });
        stage.sleep(stage.hop * n / 4).await;
        stage.link(process).cut(true, n % 2 == 0, 10 * MS);
        java.count_down();
        must(matches!(counting.await, Ok(1 | 2)), "I10 it counted twice, or does not know that it counted")?;
        // No copy arrives later than that.
        stage.sleep(7000 * MS).await;
        must(of_other.count().await.unwrap() == 1, "I10 a call counted twice")?;
        let waiting = stage.spawn(other, async move { of_other.wait().await });
        stage.sleep(stage.hop * n / 2).await;
        must(java.count_down() == 0, "I10 the latch is not what it was")?;
        let through = stage.within(40 * stage.hop + 100 * MS, "I3 nobody wakes the one who waits", waiting).await?;
        must(through.is_ok(), "I3 the wait failed")?;
        // The subscription ends, and the next round begins another one.
        stage.sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

/// Acquisitions of permits are given up at any moment, also while requests and answers are lost: all permits come back.
/// Java's release wakes the one who waits.
pub async fn permits_with_java(mut stage: Stage) -> Played {
    const PERMITS: u32 = 2;
    stage.server.unwatched();
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let java = Java::thread(&stage, 1);
    let of_other = stage.client(other).redisson().semaphore(NAME);
    must(of_other.try_set_permits(PERMITS).await.unwrap(), "I10 there is a semaphore already")?;
    for n in 0..12 {
        let semaphore = stage.client(process).redisson().semaphore(NAME);
        let patience = stage.hop * n / 4 + MS / 10;
        let acquiring = stage.spawn(process, async move { semaphore.acquire().timeout(patience).await });
        stage.sleep(stage.hop * n / 8).await;
        if n % 3 > 0 {
            stage.link(process).cut(true, n % 2 == 0, 10 * MS);
        }
        drop(acquiring.await);
        // No copy arrives later than that, and all is given back.
        stage.sleep(7000 * MS).await;
        must(of_other.available().await.unwrap() == u64::from(PERMITS), "I8 a permit is lost, or there is one more")?;
        must(java.take(PERMITS), "I8 Java does not get all permits")?;
        let waiter = of_other.clone();
        let waiting = stage.spawn(other, async move { waiter.acquire().await });
        stage.sleep(stage.hop * n / 3).await;
        java.give(PERMITS);
        let permit = stage.within(40 * stage.hop + 100 * MS, "I3 nobody wakes the one who waits", waiting).await?;
        must(!java.take(PERMITS), "I1 Java gets a permit that is taken")?;
        permit.unwrap().release().await.unwrap();
        stage.sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}
