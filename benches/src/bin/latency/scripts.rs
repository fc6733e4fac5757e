//! The server's time for the two scripts of a free resource: bowline's, Redisson's, and scripts that do nothing.

use std::time::Duration;

use bowline::wire::{self, Attempt, PREFIX, Request, Resource};
use bowline_benches::Result;
use bowline_benches::bare::ScriptCall;
use bowline_benches::server::{Executed, Probe};

use crate::Metrics;
use crate::redisson::{Kind, Redisson};

/// Pairs that are sent at once.
const BLOCK: u32 = 100;
const LEASE: Duration = Duration::from_secs(30);
const PERMITS: u32 = 4;
/// All units of a read-write lock.
const WRITER: u32 = 1 << 20;
/// Longer than the bench takes.
const FOREVER: Duration = Duration::from_secs(86_400);

/// The kinds of resources, each with the word for it in the names of cases and keys.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Lock, "lock"),
    (Kind::Semaphore { shared: false }, "semaphore"),
    (Kind::Read { shared: false }, "read"),
    (Kind::Write, "write"),
    (Kind::Semaphore { shared: true }, "semaphore-shared"),
    (Kind::Read { shared: true }, "read-shared"),
];

/// Whose scripts are run.
pub(crate) enum Peer {
    /// A script that does nothing, with the keys and arguments of a lock.
    Nothing(String, Bowline),
    Redisson(Redisson),
    Bowline(Bowline),
}

pub(crate) struct Bowline {
    resource: Resource,
    amount: u32,
}

/// The rows, each with its peer. They take turns, block by block.
pub(crate) fn measure(probe: &mut Probe, pairs: u32) -> Result<Vec<(String, Metrics)>> {
    let nothing = probe.ask::<String>(&["SCRIPT", "LOAD", "return 1"])?;
    let mut peers = vec![Peer::Nothing(nothing, Bowline::new(Kind::Lock, "bench:nothing")?)];
    for (kind, word) in KINDS {
        peers.push(Peer::redisson(probe, kind, word)?);
        peers.push(Peer::bowline(probe, kind, word)?);
    }
    for peer in &peers {
        peer.run(probe, 0)?;
    }
    let mut executed: Vec<Executed> = peers.iter().map(|_| Executed::default()).collect();
    let blocks = pairs.div_ceil(BLOCK);
    for block in 1..=blocks {
        for (peer, executed) in peers.iter().zip(&mut executed) {
            let before = probe.executed()?;
            peer.run(probe, block)?;
            *executed += probe.executed()? - before;
        }
    }
    let micros: Vec<f64> =
        executed.into_iter().map(|executed| executed.micros as f64 / f64::from(blocks * BLOCK)).collect();
    let mut rows = vec![("scripts-nothing".to_owned(), vec![("server_us", micros[0])])];
    for ((_, word), us) in KINDS.iter().zip(micros[1..].chunks(2)) {
        let (redisson, bowline) = (us[0], us[1]);
        rows.push((format!("scripts-redisson-{word}"), vec![("server_us", redisson)]));
        rows.push((format!("scripts-{word}"), vec![("server_us", bowline), ("to_redisson", bowline / redisson)]));
    }
    Ok(rows)
}

impl Peer {
    pub(crate) fn bowline(probe: &mut Probe, kind: Kind, word: &str) -> Result<Self> {
        Ok(Self::Bowline(Bowline::load(probe, kind, &format!("bench:{word}"))?))
    }

    pub(crate) fn redisson(probe: &mut Probe, kind: Kind, word: &str) -> Result<Self> {
        Ok(Self::Redisson(Redisson::load(probe, kind, &format!("bench:redisson:{word}"), LEASE)?))
    }

    fn run(&self, probe: &mut Probe, block: u32) -> Result<()> {
        probe.send((0..BLOCK).flat_map(|n| self.pair(u64::from(block * BLOCK + n))))
    }

    /// What a client calls to acquire and to release for the `n`th time.
    pub(crate) fn pair(&self, n: u64) -> Vec<ScriptCall> {
        match self {
            Self::Nothing(sha1, bowline) => bowline.pair(n).iter().map(|request| call(sha1, request)).collect(),
            Self::Redisson(redisson) => redisson.pair(n),
            Self::Bowline(bowline) => {
                bowline.pair(n).iter().map(|request| call(request.script.sha1(), request)).collect()
            }
        }
    }
}

impl Bowline {
    fn new(kind: Kind, name: &str) -> Result<Self> {
        let (resource, amount) = match kind {
            Kind::Lock => (Resource::lock(PREFIX, name)?, 1),
            Kind::Semaphore { .. } => (Resource::semaphore(PREFIX, name, PERMITS)?, 1),
            Kind::Read { .. } => (Resource::read_write(PREFIX, name)?, 1),
            Kind::Write => (Resource::read_write(PREFIX, name)?, WRITER),
        };
        Ok(Self { resource, amount })
    }

    /// Loads the scripts. If the resource is shared, another client acquires a part of it.
    fn load(probe: &mut Probe, kind: Kind, name: &str) -> Result<Self> {
        let peer = Self::new(kind, name)?;
        for request in peer.pair(0) {
            probe.ask::<String>(&["SCRIPT", "LOAD", request.script.source()])?;
        }
        if let Kind::Semaphore { shared: true } | Kind::Read { shared: true } = kind {
            let other = Attempt { amount: peer.amount, ..Attempt::new(wire::client(2), 1, FOREVER) };
            let request = peer.resource.acquire(other, true);
            probe.send([call(request.script.sha1(), &request)])?;
        }
        Ok(peer)
    }

    /// What a client sends to acquire and to release.
    fn pair(&self, n: u64) -> Vec<Request> {
        // A time that the server's clock does not reach.
        let attempt = Attempt { amount: self.amount, not_after: 1 << 42, ..Attempt::new(wire::client(1), n, LEASE) };
        [Some(self.resource.acquire(attempt, true)), self.resource.release(attempt, None)]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn call(sha1: &str, request: &Request) -> ScriptCall {
    let words = request.words();
    ScriptCall::new(sha1, &request.keys(), &words.iter().map(String::as_str).collect::<Vec<_>>())
}
