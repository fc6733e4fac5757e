//! The runtimes as one type, calls for the tests of connections, and servers that misbehave.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::wire::{self, Attempt, Request, Resource};
use bowline::{Arg, Call, Client, Config, Connection, ConnectionError, Executor, RedisConnection, Reply, Script};
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

/// A lock of clients whose prefix is `test`.
pub struct Keys {
    lock: Resource,
    keys: Vec<String>,
}

impl Keys {
    pub fn of(lock: &str) -> Self {
        let lock = Resource::lock("test", lock).unwrap();
        Self { keys: lock.keys(), lock }
    }

    pub fn lock(&self) -> &str {
        self.lock.main()
    }

    /// In the order of its scripts.
    pub fn all(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }

    pub fn acquire(&self, attempt: &str) -> Request {
        self.lock.acquire(attempt_of(attempt), false)
    }
}

/// The attempt that tests call `c1:7`: the seventh of the first client.
fn attempt_of(name: &str) -> Attempt {
    let (client, n) = name.strip_prefix('c').and_then(|name| name.split_once(':')).expect("a name like c1:7");
    Attempt::new(wire::client(client.parse().unwrap()), n.parse().unwrap(), Duration::from_secs(30))
}

/// Its id.
pub fn attempt_id(name: &str) -> String {
    attempt_of(name).id()
}

type Outcome = Result<Vec<Reply>, ConnectionError>;

fn list(reply: Result<Reply, ConnectionError>) -> Outcome {
    match bowline::wire::in_full(reply?) {
        Reply::Array(items) => Ok(items),
        other => panic!("{other:?}"),
    }
}

/// The first word of the reply, such as `GRANTED`.
pub fn word(outcome: &Outcome) -> String {
    match outcome.as_ref().map(|items| items.first()) {
        Ok(Some(Reply::Bytes(word))) => String::from_utf8(word.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn run(connection: &dyn Connection, request: Request) -> Outcome {
    list(connection.run(Call::new(request.script, &request.keys(), &request.args())).await)
}

pub async fn acquire(connection: &dyn Connection, keys: &Keys, attempt: &str) -> Outcome {
    run(connection, keys.acquire(attempt)).await
}

pub async fn release(connection: &dyn Connection, keys: &Keys, attempt: &str) -> Outcome {
    run(connection, keys.lock.release(attempt_of(attempt), None).expect("locks are held")).await
}

/// The holder first, and the clock last.
pub async fn inspect(connection: &dyn Connection, keys: &Keys) -> Outcome {
    let mut inspected = run(connection, keys.lock.inspect_lock(0)).await?;
    inspected.rotate_left(1);
    Ok(inspected)
}

/// Takes all `locks` in one batch.
pub async fn acquire_all(connection: &dyn Connection, locks: &[Keys], attempt: &str) -> Vec<Outcome> {
    let requests: Vec<_> = locks.iter().map(|lock| lock.acquire(attempt)).collect();
    let parts: Vec<_> = requests.iter().map(|request| (request.keys(), request.args())).collect();
    connection.run_batch(&calls(&requests, &parts)).await.into_iter().map(list).collect()
}

/// The calls that send the requests, whose keys and arguments are `parts`.
pub fn calls<'a>(requests: &[Request], parts: &'a [(Vec<&str>, Vec<Arg<'_>>)]) -> Vec<Call<'a>> {
    requests.iter().zip(parts).map(|(request, (keys, args))| Call::new(request.script, keys, args)).collect()
}

/// The lines of `CLIENT LIST` that are connections of the library: nothing else in the tests speaks RESP3. Redis 6.2
/// does not say that, but which user it is.
pub fn ours(server: &Server) -> Vec<String> {
    let all: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.client()).unwrap();
    let is_ours = |line: &&str| line.contains(" resp=3") || line.contains(" user=bowline ");
    all.lines().filter(is_ours).map(str::to_owned).collect()
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
                        "SETINFO" => "+OK\r\n",
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

/// Each client takes the lock ten times, while the other one waits.
pub async fn hand_over(clients: &[Client]) {
    let rounds = clients.iter().map(|client| async {
        let mut tokens = Vec::new();
        for _ in 0..10 {
            let guard = client.lock("orders").lock().await.unwrap();
            tokens.push(guard.token().get());
            guard.release().await.unwrap();
        }
        tokens
    });
    let mut tokens = futures::future::join_all(rounds).await.concat();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 10 * clients.len(), "each hold has a token of its own");
}

/// Runs a test on a runtime with several threads, and on one with a single thread.
#[cfg(feature = "tokio")]
pub fn on_tokio<Fut: Future<Output = ()>>(test: impl Fn(Arc<dyn Executor>) -> Fut + Clone + Send + 'static) {
    for builder in [tokio::runtime::Builder::new_multi_thread, tokio::runtime::Builder::new_current_thread] {
        let test = test.clone();
        bounded(move || {
            let runtime = builder().enable_all().build().unwrap();
            let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
            runtime.block_on(test(executor));
        });
    }
}
