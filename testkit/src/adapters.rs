//! The runtimes as one type, calls for the tests of connections, and servers that misbehave.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::{Arg, Call, Config, Connection, ConnectionError, Executor, RedisConnection, Reply, Script};
use futures::future::BoxFuture;

pub use super::bounded::{BOUND, bounded};
use super::server::Server;

pub type Open = fn(Arc<dyn Executor>, String, Config) -> BoxFuture<'static, bowline::Result<RedisConnection>>;

/// One of the runtimes, as far as a test needs it.
#[derive(Clone)]
pub struct Runtime {
    pub executor: Arc<dyn Executor>,
    pub open: Open,
}

impl Runtime {
    pub async fn connect(&self, url: &str) -> RedisConnection {
        self.try_connect(url, Duration::from_secs(20)).await.expect("a connection")
    }

    pub async fn try_connect(&self, url: &str, timeout: Duration) -> bowline::Result<RedisConnection> {
        (self.open)(self.executor.clone(), url.to_owned(), Config::builder().command_timeout(timeout).build().unwrap())
            .await
    }

    /// Looks again and again until `condition` holds.
    pub async fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let start = self.executor.now();
        while !condition() {
            assert!(self.executor.now() - start < BOUND / 2, "never: {what}");
            self.executor.sleep(Duration::from_millis(5)).await;
        }
    }
}

pub fn script(name: &str) -> &'static Script {
    Script::all().find(|script| script.name() == name).expect("a script of this name")
}

/// The keys of a lock, in the order of its scripts.
pub struct Keys([String; 4]);

impl Keys {
    pub fn of(lock: &str) -> Self {
        Self(["lock", "queue", "tickets", "fence"].map(|part| format!("test:{part}:{{{lock}}}")))
    }

    pub fn lock(&self) -> &str {
        &self.0[0]
    }

    pub fn all(&self) -> [&str; 4] {
        [&self.0[0], &self.0[1], &self.0[2], &self.0[3]]
    }
}

type Outcome = Result<Vec<Reply>, ConnectionError>;

fn list(reply: Result<Reply, ConnectionError>) -> Outcome {
    match reply? {
        Reply::Array(items) => Ok(items),
        other => panic!("{other:?}"),
    }
}

pub fn acquire_args(attempt_id: &str) -> [Arg<'_>; 9] {
    use Arg::{Number, Text};
    let (lease, span, ticket_ttl, max_waiters, not_after) = (30_000, 1, 10_000, 0, 0);
    [
        Text(attempt_id),
        Text("try"),
        Number(lease),
        Number(span),
        Number(ticket_ttl),
        Number(max_waiters),
        Number(not_after),
        Text("test:inbox:"),
        Number(1),
    ]
}

/// The first word of the reply, such as `GRANTED`.
pub fn word(outcome: &Outcome) -> String {
    match outcome.as_ref().map(|items| items.first()) {
        Ok(Some(Reply::Bytes(word))) => String::from_utf8(word.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

pub async fn acquire(connection: &dyn Connection, keys: &Keys, attempt_id: &str) -> Outcome {
    let (keys, args) = (keys.all(), acquire_args(attempt_id));
    list(connection.run(Call::new(script("lock_acquire"), &keys, &args)).await)
}

pub async fn release(connection: &dyn Connection, keys: &Keys, attempt_id: &str) -> Outcome {
    let (keys, inbox) = (keys.all(), Arg::Text("test:inbox:"));
    let args = [Arg::Text(attempt_id), inbox, Arg::Number(1), Arg::Text(""), Arg::Number(0), Arg::Number(0)];
    list(connection.run(Call::new(script("lock_release"), &keys, &args)).await)
}

pub async fn inspect(connection: &dyn Connection, keys: &Keys) -> Outcome {
    list(connection.run(Call::new(script("lock_inspect"), &keys.all(), &[])).await)
}

/// Takes all `locks` in one batch.
pub async fn acquire_all(connection: &dyn Connection, locks: &[Keys], attempt_id: &str) -> Vec<Outcome> {
    let (keys, args) = (locks.iter().map(Keys::all).collect::<Vec<_>>(), acquire_args(attempt_id));
    let script = script("lock_acquire");
    let calls: Vec<Call<'_>> = keys.iter().map(|keys| Call::new(script, keys, &args)).collect();
    connection.run_batch(&calls).await.into_iter().map(list).collect()
}

/// The lines of `CLIENT LIST` that are connections of the library: nobody else in the tests speaks RESP3.
pub fn ours(server: &Server) -> Vec<String> {
    let all: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.client()).unwrap();
    all.lines().filter(|line| line.contains(" resp=3")).map(str::to_owned).collect()
}

/// A field of a line of `CLIENT LIST`.
pub fn field<'a>(line: &'a str, name: &str) -> &'a str {
    line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
}

/// Sends a command past everything that is tested.
pub fn admin(server: &Server, command: &[&str]) -> redis::Value {
    redis::cmd(command[0]).arg(&command[1..]).query(&mut server.client()).unwrap()
}

/// A server that answers every `HELLO` with `hello`, and serves one connection after the other. Returns its port.
pub fn fake(hello: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
                for word in text.split("\r\n") {
                    let answer = match word {
                        "HELLO" => hello,
                        "PING" => "+PONG\r\n",
                        "INFO" => "$0\r\n\r\n",
                        _ => continue,
                    };
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            }
        }
    });
    port
}
