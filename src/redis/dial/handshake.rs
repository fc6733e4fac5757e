//! The steps from an address to a connection that is logged in and checked.

use std::pin::pin;
use std::sync::Arc;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, Cmd, ErrorKind as RedisErrorKind, Pipeline, RedisError, Value};
use futures::future::{BoxFuture, Either, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::url::target::{Purpose, Target};
use super::Dial;
use super::progress::DialProgress;
use crate::connection::{ConnectionError, Reply, Warning};
use crate::error::ErrorKind;

/// The oldest version of Redis on which the scripts work.
const OLDEST: (u32, u32) = (6, 2);

/// The driver of a connection: a future that writes commands and reads replies while it is polled.
pub(in crate::redis) type Driver = BoxFuture<'static, ()>;

/// A new connection, whose driver has not been polled yet.
pub(in crate::redis) struct Fresh {
    /// The server that the connection leads to.
    pub(in crate::redis) target: Arc<Target>,
    pub(in crate::redis) connection: MultiplexedConnection,
    pub(in crate::redis) driver: Driver,
}

impl Fresh {
    /// Subscribes to the channels and waits for the confirmation.
    pub(in crate::redis) async fn subscribe(&mut self, channels: &[&str]) -> Result<(), Failure> {
        let Self { connection, driver, .. } = self;
        match select(pin!(connection.subscribe(channels)), driver).await {
            Either::Left((subscribed, _)) => subscribed.map_err(|error| match error.code() {
                Some(code) => {
                    let line = format!("{code} {}", error.detail().unwrap_or(""));
                    Failure::Refused(ConnectionError::refused(line.trim_end()))
                }
                None => Failure::Io(error.to_string()),
            }),
            Either::Right(((), _)) => Err(Failure::Io("the server closed the connection".to_owned())),
        }
    }
}

/// More calls than are ever under way at the same time. If the buffer were full, a call would wait outside the queue,
/// and a later one could overtake it. Unused room costs nothing.
const MOST_CALLS: usize = 1 << 20;

/// Dials and logs in. Messages go to `push`, if it is given.
pub(in crate::redis) async fn login(
    target: Arc<Target>,
    dialer: &dyn Dial,
    push: Option<Arc<dyn AsyncPushSender>>,
    progress: &Arc<DialProgress>,
) -> Result<Fresh, Failure> {
    let stream = target.dial(dialer, progress).await?;
    // The timeouts of redis-rs are not used, because it would take the timer from a runtime that it guesses.
    let mut config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(MOST_CALLS);
    if let Some(push) = push {
        config = config.set_push_sender(push);
    }
    let opened = MultiplexedConnection::new_with_config(target.login(), stream, config).await;
    match opened {
        Ok((connection, driver)) => Ok(Fresh { target, connection, driver: Box::pin(driver) }),
        Err(error) => Err(progress.explain(login_failure(&target, &error))),
    }
}

/// The message for a server that is too old. `is` says what shows that.
fn too_old(is: &str) -> String {
    let (major, minor) = OLDEST;
    format!("the server {is}; bowline needs Redis or Valkey {major}.{minor} or newer")
}

fn login_failure(target: &Target, error: &RedisError) -> Failure {
    match (error.kind(), error.code()) {
        // The details are left out, because the server quotes the whole command, including the password.
        (RedisErrorKind::RESP3NotSupported, _) => Failure::Unsupported(too_old("does not know HELLO")),
        (_, Some("NOPROTO")) => Failure::Unsupported(too_old("does not speak RESP3")),
        (RedisErrorKind::Server(_) | RedisErrorKind::Extension, code) => {
            let line = format!("{} {}", code.unwrap_or("ERR"), error.detail().unwrap_or(""));
            let line = line.split(", with args beginning with").next().unwrap_or("");
            let refusal = ConnectionError::refused(target.redact(line).trim_end());
            match refusal.kind() {
                ErrorKind::Unsupported => Failure::Unsupported(too_old("does not know HELLO")),
                _ => Failure::Refused(refusal),
            }
        }
        _ => Failure::Io(target.redact(&error.to_string())),
    }
}

/// Selects the database and checks whether the server fits its purpose. On the `first` connection, also checks how the
/// server is set up.
pub(in crate::redis) async fn prepare(fresh: &mut Fresh, first: bool) -> Result<Vec<Warning>, Failure> {
    let mut pipeline = Pipeline::new();
    let db = fresh.target.db();
    if db != 0 {
        pipeline.cmd("SELECT").arg(db);
    }
    // Without arguments, every user may call it.
    pipeline.cmd("HELLO");
    if first {
        pipeline.cmd("PING");
        pipeline.cmd("INFO").arg("memory");
    }
    let count = pipeline.len();
    let sent = pin!(fresh.connection.send_packed_commands(&pipeline, 0, count));
    let values = match select(sent, &mut fresh.driver).await {
        Either::Left((values, _)) => values.map_err(|error| Failure::Io(error.to_string()))?,
        Either::Right(((), _)) => return Err(Failure::Io("the server closed the connection".to_owned())),
    };
    let mut values = values.into_iter();
    if db != 0 {
        accept(values.next()).map_err(|failure| match failure {
            Failure::Refused(ConnectionError::Refused { code, message }) if code == "ERR" => Failure::Invalid(message),
            other => other,
        })?;
    }
    check_server(&accept(values.next())?, fresh.target.purpose())?;
    if !first {
        return Ok(Vec::new());
    }
    match accept(values.next()) {
        // A user without PING may still run scripts.
        Err(Failure::Refused(refusal)) if refusal.kind() == ErrorKind::Denied => {}
        answer => drop(answer?),
    }
    // A user without INFO gets no warning.
    let policy = accept(values.next()).ok().and_then(|info| eviction_policy(&info));
    Ok(policy.into_iter().map(|policy| Warning::Eviction { policy }).collect())
}

fn accept(value: Option<Value>) -> Result<Reply, Failure> {
    convert::reply(value.unwrap_or_default()).map_err(Failure::Refused)
}

/// Checks the reply to `HELLO`, which alternates names and values.
pub(in crate::redis) fn check_server(hello: &Reply, purpose: Purpose) -> Result<(), Failure> {
    if let Some(version) = field(hello, "version") {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>());
        // A server without a readable version is not Redis, but may work.
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next())
            && (major, minor) < OLDEST
        {
            return Err(Failure::Unsupported(too_old(&format!("is version {version}"))));
        }
    }
    match (field(hello, "mode").as_deref(), purpose) {
        (Some("cluster"), Purpose::Server) => return Err(Failure::Cluster),
        (Some("sentinel"), _) => {
            let reason = "this is a sentinel; use redis-sentinel://host:port/?master=<name>";
            return Err(Failure::Unsupported(reason.to_owned()));
        }
        (Some("standalone"), Purpose::Node) => {
            let reason = "the server is no node of a cluster; use redis://";
            return Err(Failure::Unsupported(reason.to_owned()));
        }
        _ => {}
    }
    match field(hello, "role").as_deref() {
        // Refused with the error with which a replica refuses the first script that writes.
        Some("replica" | "slave") if purpose == Purpose::Server => {
            Err(Failure::Refused(ConnectionError::refused("READONLY the server is a replica")))
        }
        _ => Ok(()),
    }
}

/// A field of a reply that alternates names and values.
pub(in crate::redis) fn field(pairs: &Reply, name: &str) -> Option<String> {
    let Reply::Array(items) = pairs else { return None };
    items.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Bytes(key), Reply::Bytes(value)] if key == name.as_bytes() => {
            Some(String::from_utf8_lossy(value).into_owned())
        }
        _ => None,
    })
}

/// The policy in the reply to `INFO memory`, if it lets the server drop keys.
fn eviction_policy(info: &Reply) -> Option<String> {
    let Reply::Bytes(info) = info else { return None };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"))?.trim();
    (policy != "noeviction").then(|| policy.to_owned())
}

/// A command whose every answer, even an error, shows that the server is alive.
pub(in crate::redis) fn ping() -> Cmd {
    ::redis::cmd("PING")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(pairs: &[(&str, &str)]) -> Reply {
        let bytes = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
        Reply::Array(pairs.iter().flat_map(|(key, value)| [bytes(key), bytes(value)]).collect())
    }

    #[test]
    fn versions() {
        for version in ["6.2.0", "6.2", "7.0.15", "10.0.0", "255.255.255", "unstable"] {
            assert!(
                check_server(&hello(&[("server", "redis"), ("version", version)]), Purpose::Server).is_ok(),
                "{version}"
            );
        }
        for version in ["6.0.9", "6.1.99", "2.8.24"] {
            let failure =
                check_server(&hello(&[("server", "redis"), ("version", version)]), Purpose::Server).unwrap_err();
            assert!(matches!(failure, Failure::Unsupported(_)));
            assert!(failure.to_string().contains(version));
        }
        assert!(check_server(&hello(&[("mode", "standalone")]), Purpose::Server).is_ok());
        let node = hello(&[("mode", "cluster"), ("role", "replica")]);
        assert!(matches!(check_server(&node, Purpose::Server), Err(Failure::Cluster)));
        assert!(check_server(&node, Purpose::Node).is_ok());
        assert!(check_server(&hello(&[("mode", "standalone")]), Purpose::Node).is_err());
        assert!(check_server(&hello(&[("mode", "sentinel")]), Purpose::Node).is_err());
        assert!(check_server(&Reply::Nil, Purpose::Server).is_ok());
    }

    #[test]
    fn roles() {
        assert!(check_server(&hello(&[("version", "7.0.15"), ("role", "master")]), Purpose::Server).is_ok());
        for role in ["replica", "slave"] {
            let failure = check_server(&hello(&[("version", "7.0.15"), ("role", role)]), Purpose::Server).unwrap_err();
            assert!(matches!(&failure, Failure::Refused(refusal) if refusal.kind() == ErrorKind::Refused), "{failure}");
        }
    }

    /// The server may quote the command that it does not like.
    #[test]
    fn a_failed_login_is_not_quoted() {
        let target = Target::parse("redis://alice:s3cret@h").unwrap();
        let quoted = "no `HELLO`, with args beginning with: `3` `AUTH` `alice` `s3cret`".to_owned();
        let refused = ::redis::make_extension_error("OTHER".to_owned(), Some(quoted));
        let failure = login_failure(&target, &refused);
        assert!(matches!(&failure, Failure::Refused(ConnectionError::Refused { code, .. }) if code == "OTHER"));
        assert!(failure.to_string().ends_with("no `HELLO`"), "{failure}");
        let unread = RedisError::from(std::io::Error::other("cannot read `s3cret`"));
        let failure = login_failure(&target, &unread).to_string();
        assert!(failure.contains("cannot read `***`"), "{failure}");
    }

    #[test]
    fn policies() {
        let info = |policy: &str| Reply::Bytes(format!("# Memory\r\nused:1\r\nmaxmemory_policy:{policy}\r\n").into());
        assert_eq!(eviction_policy(&info("noeviction")), None);
        assert_eq!(eviction_policy(&info("allkeys-lru")), Some("allkeys-lru".to_owned()));
        assert_eq!(eviction_policy(&Reply::Bytes(b"# Memory".to_vec())), None);
    }
}
