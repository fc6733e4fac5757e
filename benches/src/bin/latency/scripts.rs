//! The server's time for the two scripts of a free lock: bowline's, Redisson's, and scripts that do nothing.

use std::time::Duration;

use bowline::wire::{self, Attempt, PREFIX, Request, Resource};
use bowline_benches::Result;
use bowline_benches::server::{Executed, Probe};
use redis::{Cmd, cmd};

use crate::Metrics;

/// Pairs that are sent at once.
const BLOCK: u32 = 100;
const LEASE: Duration = Duration::from_secs(30);
const NAME: &str = "bench:scripts";
/// All units of a read-write lock.
const WRITER: u32 = 1 << 20;

/// Whose scripts are run.
enum Peer {
    /// `return 1`, with the keys and arguments of a lock.
    Nothing(String),
    Redisson {
        lock: String,
        unlock: String,
    },
    Bowline {
        resource: Resource,
        amount: u32,
    },
}

/// The rows, each with its peer. They take turns, block by block.
pub(crate) fn measure(probe: &mut Probe, pairs: u32) -> Result<Vec<(&'static str, Metrics)>> {
    let bowline = |resource, amount| Peer::Bowline { resource, amount };
    let mut load = |source: &str| probe.ask::<String>(&["SCRIPT", "LOAD", source]);
    let peers = [
        ("scripts-nothing", Peer::Nothing(load("return 1")?)),
        (
            "scripts-redisson",
            Peer::Redisson {
                lock: load(include_str!("redisson/lock.lua"))?,
                unlock: load(include_str!("redisson/unlock.lua"))?,
            },
        ),
        ("scripts-lock", bowline(Resource::lock(PREFIX, NAME)?, 1)),
        ("scripts-semaphore", bowline(Resource::semaphore(PREFIX, NAME, 4)?, 1)),
        ("scripts-read", bowline(Resource::read_write(PREFIX, NAME)?, 1)),
        ("scripts-write", bowline(Resource::read_write(PREFIX, NAME)?, WRITER)),
    ];
    for (_, peer) in &peers {
        peer.load(probe)?;
        peer.run(probe, 0)?;
    }
    let mut executed = peers.each_ref().map(|_| Executed::default());
    let blocks = pairs.div_ceil(BLOCK);
    for block in 1..=blocks {
        for ((_, peer), executed) in peers.iter().zip(&mut executed) {
            let before = probe.executed()?;
            peer.run(probe, block)?;
            *executed += probe.executed()? - before;
        }
    }
    let micros = executed.map(|executed| executed.micros as f64 / f64::from(blocks * BLOCK));
    let redisson = micros[1];
    let rows = peers.iter().zip(micros);
    Ok(rows.map(|((name, _), us)| (*name, vec![("server_us", us), ("to_redisson", us / redisson)])).collect())
}

impl Peer {
    /// The server has bowline's scripts from then on.
    fn load(&self, probe: &mut Probe) -> Result<()> {
        if let Self::Bowline { .. } = self {
            for request in self.pair(0) {
                probe.ask::<String>(&["SCRIPT", "LOAD", request.script.source()])?;
            }
        }
        Ok(())
    }

    fn run(&self, probe: &mut Probe, block: u32) -> Result<()> {
        let numbers = (0..BLOCK).map(|n| u64::from(block * BLOCK + n));
        probe.send(numbers.flat_map(|n| self.commands(n)).collect())
    }

    fn commands(&self, n: u64) -> Vec<Cmd> {
        match self {
            Self::Nothing(sha1) => {
                let lock = Resource::lock(PREFIX, NAME).ok().map(|resource| Self::Bowline { resource, amount: 1 });
                let pair = lock.iter().flat_map(|lock| lock.pair(n));
                pair.map(|request| evalsha(sha1, &request.keys(), &request.words())).collect()
            }
            Self::Redisson { lock, unlock } => {
                // A holder is a client and a thread. Each unlock has an id of its own.
                let (holder, lease) = (format!("{}:77", wire::client(1)), LEASE.as_millis().to_string());
                let channel = format!("redisson_lock__channel:{{{NAME}}}");
                let done = format!("redisson_unlock_latch:{{{NAME}}}:{n:032x}");
                let unlocking = ["0", &lease, &holder, "PUBLISH", "13500"].map(str::to_owned);
                vec![
                    evalsha(lock, &[NAME], &[lease.clone(), holder.clone()]),
                    evalsha(unlock, &[NAME, &channel, &done], &unlocking),
                ]
            }
            Self::Bowline { .. } => {
                let pair = self.pair(n).into_iter();
                pair.map(|request| evalsha(request.script.sha1(), &request.keys(), &request.words())).collect()
            }
        }
    }

    /// What a client sends to acquire and to release.
    fn pair(&self, n: u64) -> Vec<Request> {
        let Self::Bowline { resource, amount } = self else { return Vec::new() };
        // A time that the server's clock does not reach.
        let attempt = Attempt { amount: *amount, not_after: 1 << 42, ..Attempt::new(wire::client(1), n, LEASE) };
        [Some(resource.acquire(attempt, true)), resource.release(attempt, None)].into_iter().flatten().collect()
    }
}

fn evalsha(sha1: &str, keys: &[&str], args: &[String]) -> Cmd {
    let mut command = cmd("EVALSHA");
    command.arg(sha1).arg(keys.len()).arg(keys).arg(args);
    command
}
