//! The lock's shipped scripts by hand, without the client around them.

use bowline::{Arg, Call, Connection, Reply, Script};

use crate::Result;

/// Long enough for any bench.
const LEASE_MS: u64 = 3_600_000;

/// The client in whose name the scripts are run.
const CLIENT: &str = "00000000-0000-0000-0000-000000000001";

/// One lock, under the prefix `bowline`.
#[derive(Debug)]
pub struct RawLock {
    keys: [String; 4],
}

impl RawLock {
    /// The channel on which the client is told about grants.
    pub const INBOX: &str = "bowline:inbox:00000000-0000-0000-0000-000000000001";

    /// The lock of this name.
    pub fn new(name: &str) -> Self {
        let main = format!("bowline:lock:{{{name}}}");
        let keys = [main.clone(), format!("{main}:queue"), format!("{main}:tickets"), format!("{main}:fence")];
        Self { keys }
    }

    /// Acquires as attempt id `n`, or queues up. Whether it was granted.
    pub async fn acquire(&self, connection: &dyn Connection, n: u64) -> Result<bool> {
        let id = attempt_id(n);
        let lease = Arg::Number(LEASE_MS);
        let args = [
            Arg::Text(&id),
            Arg::Text("wait"),
            lease,
            Arg::Number(1),
            lease,
            Arg::Number(0),
            Arg::Number(0),
            Arg::Text("bowline:inbox:"),
            Arg::Number(1),
        ];
        match self.run(connection, "lock_acquire", &args).await?.as_str() {
            "GRANTED" => Ok(true),
            "QUEUED" => Ok(false),
            other => Err(unexpected("lock_acquire", other)),
        }
    }

    /// Releases the hold of attempt id `n`, and hands the lock over if somebody waits.
    pub async fn release(&self, connection: &dyn Connection, n: u64) -> Result<()> {
        let id = attempt_id(n);
        let nothing = Arg::Number(0);
        let args = [Arg::Text(&id), Arg::Text("bowline:inbox:"), Arg::Number(1), Arg::Text(""), nothing, nothing];
        match self.run(connection, "lock_release", &args).await?.as_str() {
            "RELEASED" => Ok(()),
            other => Err(unexpected("lock_release", other)),
        }
    }

    /// Takes the ticket of attempt id `n` out of the queue.
    pub async fn cancel(&self, connection: &dyn Connection, n: u64, from_tail: bool) -> Result<()> {
        let ticket = ticket(n);
        let from = Arg::Text(if from_tail { "-1" } else { "1" });
        let args = [Arg::Text(&ticket), from, Arg::Text("bowline:inbox:"), Arg::Number(1)];
        match self.run(connection, "lock_cancel", &args).await?.as_str() {
            "CANCELLED" => Ok(()),
            other => Err(unexpected("lock_cancel", other)),
        }
    }

    /// Touches the ticket of attempt id `n`, which waits.
    pub async fn heartbeat(&self, connection: &dyn Connection, n: u64) -> Result<()> {
        let ticket = ticket(n);
        let args = [Arg::Text("bowline:inbox:"), Arg::Number(1), Arg::Text(&ticket), Arg::Number(LEASE_MS)];
        match self.run(connection, "lock_heartbeat", &args).await?.as_str() {
            "WAITING" => Ok(()),
            other => Err(unexpected("lock_heartbeat", other)),
        }
    }

    /// The first word in the reply.
    async fn run(&self, connection: &dyn Connection, name: &'static str, args: &[Arg<'_>]) -> Result<String> {
        let script = Script::all().find(|script| script.name() == name).ok_or(name)?;
        let keys = self.keys.each_ref().map(String::as_str);
        let Reply::Array(items) = connection.run(Call::new(script, &keys, args)).await? else {
            return Err(unexpected(name, "no list"));
        };
        let word = items.into_iter().find_map(|item| match item {
            Reply::Bytes(word) => Some(String::from_utf8_lossy(&word).into_owned()),
            _ => None,
        });
        word.ok_or_else(|| unexpected(name, "no word"))
    }
}

fn attempt_id(n: u64) -> String {
    format!("{CLIENT}:{n}")
}

fn ticket(n: u64) -> String {
    format!("{}/{LEASE_MS}/1", attempt_id(n))
}

fn unexpected(script: &str, word: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("{script} replied {word}").into()
}
