//! Permits with leases, beside a simulated Redisson.

use bowline::{Client, RedissonPermitSemaphore};

use super::{Java, LONG, MS, NAME, Played, Stage, must};

/// Redisson gives back what is over by its own clock, which is the server's here, and takes one permit.
const TAKE: &str = "local time = redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000) \
    local over = redis.call('ZRANGEBYSCORE', KEYS[1], 0, now, 'LIMIT', 0, 1) \
    if #over > 0 then redis.call('ZREM', KEYS[1], over[1]) \
    local value = redis.call('INCRBY', KEYS[2], 1) \
    if value > 0 then redis.call('PUBLISH', ARGV[3], value) end end \
    local value = redis.call('GET', KEYS[2]) \
    if value and tonumber(value) >= 1 then redis.call('INCRBY', KEYS[2], -1) \
    redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1]) return 1 end return 0";

const GIVE: &str = "if redis.call('ZREM', KEYS[1], ARGV[1]) ~= 1 then return 0 end \
    redis.call('PUBLISH', ARGV[2], redis.call('INCRBY', KEYS[2], 1)) return 1";

const PERMITS: u64 = 2;

struct Permits<'a> {
    java: &'a Java,
    leases: String,
    channel: String,
}

impl<'a> Permits<'a> {
    fn of(java: &'a Java) -> Self {
        Self { java, leases: format!("{{{NAME}}}:timeout"), channel: format!("redisson_sc:{{{NAME}}}") }
    }

    /// Takes a permit for that long, under an id of 16 bytes.
    fn take(&self, id: u8, ms: u64) -> bool {
        self.eval(TAKE, &[&[id; 16], ms.to_string().as_bytes(), self.channel.as_bytes()])
    }

    /// `false`: nobody has it.
    fn give(&self, id: u8) -> bool {
        self.eval(GIVE, &[&[id; 16], self.channel.as_bytes()])
    }

    fn eval(&self, source: &str, args: &[&[u8]]) -> bool {
        self.java.eval_with(source, &[self.leases.as_bytes(), NAME.as_bytes()], args) == 1
    }
}

fn semaphore(client: &Client) -> RedissonPermitSemaphore {
    client.redisson().permit_semaphore(NAME)
}

/// All permits are free when no copy of any request can arrive any more, long before a lease ends.
async fn all_are_back(stage: &Stage, semaphore: &RedissonPermitSemaphore) -> Played {
    stage.sleep(7000 * MS).await;
    let state = semaphore.inspect().await.unwrap();
    must((state.available, state.acquired) == (PERMITS, 0), "I8 a permit is lost, or there is one more")
}

/// Acquisitions of permits are given up, and permits given back, at any moment, also while requests and answers are
/// lost or late: all permits come back. Java's release wakes the one who waits, and so does the end of Java's lease.
pub async fn timed_permits_with_java(mut stage: Stage) -> Played {
    stage.server.unwatched();
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let thread = Java::thread(&stage, 1);
    let java = Permits::of(&thread);
    let of_other = semaphore(&stage.client(other));
    must(of_other.try_set_permits(2).await.unwrap(), "I10 there is a semaphore already")?;
    for n in 0..8 {
        // One that may be given up before it is answered, and one that waits for its answer and gives back at once.
        for gives_up in [true, false] {
            let (semaphore, patience) = (semaphore(&stage.client(process)), stage.hop * n / 4 + MS / 10);
            let acquiring = stage.spawn(process, async move {
                let acquire = semaphore.acquire();
                let acquire = if gives_up { acquire.timeout(patience) } else { acquire };
                acquire.await?.release().await
            });
            stage.sleep(stage.hop * n / 8).await;
            if n % 3 > 0 {
                stage.link(process).cut(true, n % 2 == 0, 10 * MS);
            }
            let ended = acquiring.await;
            must(gives_up || ended.is_ok(), "I1 the permit was lost at once")?;
            all_are_back(&stage, &of_other).await?;
        }
        // Java gives one back, or its lease ends, and the other one is Java's.
        let gives = n % 2 == 0;
        must(java.take(1, if gives { 600_000 } else { 300 }) && java.take(2, 600_000), "I8 Java does not get both")?;
        let waiter = of_other.clone();
        let waiting = stage.spawn(other, async move { waiter.acquire().await });
        stage.sleep(stage.hop * n / 3).await;
        must(!gives || java.give(1), "I1 Java has lost its permit")?;
        let permit = stage.within(40 * stage.hop + 500 * MS, "I3 nobody wakes the one who waits", waiting).await?;
        must(!java.take(3, 600_000), "I1 Java gets a permit that is taken")?;
        must(java.give(2) && !java.give(1), "I1 Java has lost its permit, or has it still")?;
        permit.unwrap().release().await.unwrap();
        all_are_back(&stage, &of_other).await?;
    }
    // A permit of a process that dies is Java's when its lease is over, and not before.
    let taken = semaphore(&stage.client(process)).acquire().await.unwrap();
    must(java.take(1, 600_000) && !java.take(2, 600_000), "I1 Java gets a permit that is taken")?;
    stage.sleep(2 * LONG).await;
    must(taken.is_valid() && !java.take(2, 600_000), "I1 Java gets a permit that is renewed")?;
    stage.kill(process);
    stage.sleep(LONG + 100 * MS).await;
    must(java.take(2, 600_000), "I3 the permit of a process that died is not free")
}
