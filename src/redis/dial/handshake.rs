//! The steps from an address to a connection that is logged in and checked.

use std::pin::pin;
use std::sync::Arc;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, Cmd, ErrorKind as RedisErrorKind, Pipeline, RedisError};
use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::login::{self, Login};
use super::super::url::target::Target;
use super::Dial;
use super::checks::{check_server, eviction_policy, too_old};
use super::progress::{DialProgress, Stage};
use super::renewal::Renewal;
use crate::connection::{ConnectionError, Reply, Warning};
use crate::error::ErrorKind;
use crate::runtime::Executor;

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
        let subscribed = driven(&mut self.driver, self.connection.subscribe(channels)).await?;
        subscribed.map_err(|error| Failure::of(&error))
    }
}

/// Runs `work`, which uses the connection of `driver`. Fails if the connection ends before.
pub(in crate::redis) async fn driven<T>(driver: &mut Driver, work: impl Future<Output = T>) -> Result<T, Failure> {
    match select(pin!(work), driver).await {
        Either::Left((done, _)) => Ok(done),
        Either::Right(((), _)) => Err(Failure::Io("the server closed the connection".to_owned())),
    }
}

/// More calls than are ever under way at the same time. If the buffer were full, a call would wait outside the queue,
/// and a later one could overtake it. Unused room costs nothing.
const MOST_CALLS: usize = 1 << 20;

/// Dials and logs in. Messages go to `push`, if it is given. A refused login is tried once more if another one may be
/// given.
pub(in crate::redis) async fn login(
    target: Arc<Target>,
    dialer: &dyn Dial,
    executor: &Arc<dyn Executor>,
    push: Option<Arc<dyn AsyncPushSender>>,
    progress: &Arc<DialProgress>,
) -> Result<Fresh, Failure> {
    let (source, mut refused) = (target.login(), None);
    loop {
        if source.changes() {
            progress.enter(Stage::Credentials);
        }
        let asked = executor.now();
        let login = source.next(refused.as_ref()).await?;
        match login_as(&target, login.as_ref(), dialer, push.clone(), progress).await {
            Ok((connection, mut driver)) => {
                if let Some(login) = &login {
                    source.accepted(login);
                }
                if let Some(login) = login.filter(|login| login.time().is_some()) {
                    let (target, executor) = (Arc::clone(&target), Arc::clone(executor));
                    let (connection, seed) = (connection.clone(), dialer.seed());
                    let renewal = Renewal { target, executor, connection, login, asked, seed };
                    driver = select(driver, renewal.run().boxed()).map(drop).boxed();
                }
                return Ok(Fresh { target, connection, driver });
            }
            Err(Failure::Refused(refusal))
                if source.changes() && refused.is_none() && refusal.kind() == ErrorKind::Denied =>
            {
                refused = login;
            }
            Err(failure) => return Err(failure),
        }
    }
}

async fn login_as(
    target: &Target,
    login: Option<&Login>,
    dialer: &dyn Dial,
    push: Option<Arc<dyn AsyncPushSender>>,
    progress: &Arc<DialProgress>,
) -> Result<(MultiplexedConnection, Driver), Failure> {
    let stream = target.dial(dialer, progress).await?;
    // The timeouts of redis-rs are not used, because it would take the timer from a runtime that it guesses.
    let mut config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(MOST_CALLS);
    if let Some(push) = push {
        config = config.set_push_sender(push);
    }
    let opened = MultiplexedConnection::new_with_config(&login::info(login), stream, config).await;
    match opened {
        Ok((connection, driver)) => Ok((connection, driver.boxed())),
        Err(error) => Err(progress.explain(login_failure(login, &error))),
    }
}

fn login_failure(login: Option<&Login>, error: &RedisError) -> Failure {
    let redact = |text: &str| login.map_or_else(|| text.to_owned(), |login| login.redact(text));
    match (error.kind(), error.code()) {
        // The details are left out, because the server quotes the whole command, including the password.
        (RedisErrorKind::RESP3NotSupported, _) => Failure::Unsupported(too_old("does not know HELLO")),
        (_, Some("NOPROTO")) => Failure::Unsupported(too_old("does not speak RESP3")),
        (RedisErrorKind::Server(_) | RedisErrorKind::Extension, code) => {
            let refusal = convert::refusal(code.unwrap_or("ERR"), error.detail().map(redact).as_deref());
            match refusal.kind() {
                ErrorKind::Unsupported => Failure::Unsupported(too_old("does not know HELLO")),
                _ => Failure::Refused(refusal),
            }
        }
        _ => Failure::Io(redact(&error.to_string())),
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
    let introduction = fresh.target.introduction().commands();
    let introduced = introduction.len();
    for command in introduction {
        pipeline.add_command(command);
    }
    if first {
        pipeline.cmd("PING");
        pipeline.cmd("INFO").arg("memory");
    }
    let count = pipeline.len();
    let values = driven(&mut fresh.driver, fresh.connection.send_packed_commands(&pipeline, 0, count)).await?;
    let mut replies = values.map_err(|error| Failure::Io(error.to_string()))?.into_iter().map(convert::reply);
    let mut next = || replies.next().unwrap_or(Ok(Reply::Nil)).map_err(Failure::Refused);
    if db != 0 {
        next().map_err(|failure| match failure {
            Failure::Refused(ConnectionError::Refused { code, message }) if code == "ERR" => Failure::Invalid(message),
            other => other,
        })?;
    }
    let hello = fresh.target.introduction().read(introduced, &mut replies).map_err(Failure::Refused)?;
    check_server(&hello, fresh.target.purpose())?;
    if !first {
        return Ok(Vec::new());
    }
    let mut next = || replies.next().unwrap_or(Ok(Reply::Nil)).map_err(Failure::Refused);
    match next() {
        // A user without PING may still run scripts.
        Err(Failure::Refused(refusal)) if refusal.kind() == ErrorKind::Denied => {}
        answer => drop(answer?),
    }
    // A user without INFO gets no warning.
    let policy = next().ok().and_then(|info| eviction_policy(&info));
    Ok(policy.into_iter().map(|policy| Warning::Eviction { policy }).collect())
}

/// A command whose every answer, even an error, shows that the server is alive.
pub(in crate::redis) fn ping() -> Cmd {
    ::redis::cmd("PING")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server may quote the command that it does not like.
    #[test]
    fn a_failed_login_is_not_quoted() {
        let login = Login::new("alice", "s3cret");
        let quoted = "no `HELLO`, with args beginning with: `3` `AUTH` `alice` `s3cret`".to_owned();
        let refused = ::redis::make_extension_error("OTHER".to_owned(), Some(quoted));
        let failure = login_failure(Some(&login), &refused);
        assert!(matches!(&failure, Failure::Refused(ConnectionError::Refused { code, .. }) if code == "OTHER"));
        assert!(failure.to_string().ends_with("no `HELLO`"), "{failure}");
        let unread = RedisError::from(std::io::Error::other("cannot read `s3cret`"));
        let failure = login_failure(Some(&login), &unread).to_string();
        assert!(failure.contains("cannot read `***`"), "{failure}");
    }
}
