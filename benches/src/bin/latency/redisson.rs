//! The scripts of Redisson 4.7 for a free resource, written anew with the same commands. Keys and arguments are those
//! that its clients send.

use std::time::Duration;

use bowline::wire;
use bowline_benches::Result;
use bowline_benches::bare::ScriptCall;
use bowline_benches::server::Probe;

/// A resource, and whether another client holds a part of it all the time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Lock,
    Semaphore { shared: bool },
    Read { shared: bool },
    Write,
}

/// How long Redisson remembers that an unlock was executed.
const DONE_MS: &str = "13500";
/// A time that no clock reaches.
const NEVER_MS: &str = "4398046511104";
/// Permits of the semaphore.
const PERMITS: &str = "4";

/// The scripts of one resource, by their digests.
pub(crate) struct Redisson {
    kind: Kind,
    name: String,
    lease: Duration,
    acquire: String,
    release: String,
}

impl Redisson {
    /// Loads the scripts. If the resource is shared, another client acquires a part of it.
    pub(crate) fn load(probe: &mut Probe, kind: Kind, name: &str, lease: Duration) -> Result<Self> {
        let (acquire, release) = match kind {
            Kind::Lock => (include_str!("redisson/lock.lua"), include_str!("redisson/unlock.lua")),
            Kind::Semaphore { .. } => {
                (include_str!("redisson/permit_acquire.lua"), include_str!("redisson/permit_release.lua"))
            }
            Kind::Read { .. } => (include_str!("redisson/read_lock.lua"), include_str!("redisson/read_unlock.lua")),
            Kind::Write => (include_str!("redisson/write_lock.lua"), include_str!("redisson/write_unlock.lua")),
        };
        let mut sha1 = |source: &str| probe.ask::<String>(&["SCRIPT", "LOAD", source]);
        let peer = Self { kind, name: name.to_owned(), lease, acquire: sha1(acquire)?, release: sha1(release)? };
        if let Kind::Semaphore { .. } = kind {
            probe.ask::<String>(&["SET", name, PERMITS])?;
        }
        if let Kind::Semaphore { shared: true } | Kind::Read { shared: true } = kind {
            let [acquire, _] = peer.pair_of(u64::MAX, &wire::client(2).to_string());
            probe.send([acquire])?;
        }
        Ok(peer)
    }

    /// What a client calls to acquire and to release.
    pub(crate) fn pair(&self, n: u64) -> Vec<ScriptCall> {
        self.pair_of(n, &wire::client(1).to_string()).into()
    }

    fn pair_of(&self, n: u64, client: &str) -> [ScriptCall; 2] {
        let (name, lease) = (&self.name, self.lease.as_millis().to_string());
        // A holder is a client and a thread. Each unlock and each permit has an id of its own.
        let holder = format!("{client}:77");
        let channel = format!("redisson_lock__channel:{{{name}}}");
        let done = format!("redisson_unlock_latch:{{{name}}}:{n:032x}");
        match self.kind {
            Kind::Lock => [
                ScriptCall::new(&self.acquire, &[name], &[&lease, &holder]),
                ScriptCall::new(&self.release, &[name, &channel, &done], &["0", &lease, &holder, "PUBLISH", DONE_MS]),
            ],
            Kind::Semaphore { .. } => {
                let (ends, permit) = (format!("{{{name}}}:timeout"), format!("{n:016x}"));
                [
                    ScriptCall::new(&self.acquire, &[name, &ends, &channel], &[&permit, NEVER_MS, "1", "PUBLISH"]),
                    ScriptCall::new(&self.release, &[name, &channel, &ends], &[&permit, "1", "PUBLISH"]),
                ]
            }
            Kind::Read { .. } => {
                let (prefix, timeout) = (format!("{{{name}}}"), format!("{{{name}}}:{holder}:rwlock_timeout"));
                let keys: [&str; 5] = [name, &channel, &timeout, &prefix, &done];
                [
                    ScriptCall::new(&self.acquire, &[name, &timeout], &[&lease, &holder]),
                    ScriptCall::new(&self.release, &keys, &["0", &holder, "PUBLISH", DONE_MS]),
                ]
            }
            Kind::Write => {
                let holder = format!("{holder}:write");
                [
                    ScriptCall::new(&self.acquire, &[name], &[&lease, &holder]),
                    ScriptCall::new(&self.release, &[name, &channel, &done], &["0", &holder, "PUBLISH", DONE_MS]),
                ]
            }
        }
    }
}
