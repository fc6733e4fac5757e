//! The steps from an address to a connection that is logged in and checked. All that is known before the server answers
//! is sent in one write: the login, the introduction, what is asked about the server, and subscriptions.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use std::vec::IntoIter;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, Value};
use futures::FutureExt;
use futures::future::{BoxFuture, Either, OptionFuture, select, try_join};

use super::super::convert;
use super::super::failure::Failure;
use super::super::login::{self, Login};
use super::super::url::target::Target;
use super::Dial;
use super::agreed::Agreed;
use super::checks::{check_server, eviction_policy, too_old};
use super::progress::{DialProgress, Stage};
use super::renewal::Renewal;
use super::wishes::Wishes;
use crate::connection::{ConnectionError, Reply, Warning};
use crate::error::ErrorKind;
use crate::runtime::Executor;

/// The driver of a connection: a future that writes commands and reads replies while it is polled.
pub(in crate::redis) type Driver = BoxFuture<'static, ()>;

/// A new connection. Nothing polls its driver.
pub(in crate::redis) struct Fresh {
    /// The server that the connection leads to.
    pub(in crate::redis) target: Arc<Target>,
    pub(in crate::redis) connection: MultiplexedConnection,
    pub(in crate::redis) driver: Driver,
}

/// A new connection, and what its server has answered.
pub(in crate::redis) struct Greeted {
    pub(in crate::redis) fresh: Fresh,
    /// The answer to `HELLO`.
    pub(in crate::redis) hello: Reply,
    /// The answers to [`Wishes::commands`].
    pub(in crate::redis) answers: IntoIter<Value>,
    /// The time that the answers took.
    round_trip: Duration,
    /// Whether the first login was accepted.
    at_once: bool,
}

/// Runs `work`, which uses the connection of `driver`. Fails if the connection ends before.
pub(in crate::redis) async fn driven<T>(driver: &mut Driver, work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut work = pin!(work);
    if let Either::Left((done, _)) = select(work.as_mut(), &mut *driver).await {
        return Ok(done);
    }
    // Whoever polls it next is told the same.
    *driver = poll_fn(|_| Poll::Ready(())).boxed();
    // It may have read the last answer just before.
    work.now_or_never().ok_or_else(closed)
}

fn closed() -> Failure {
    Failure::Io("the server closed the connection".to_owned())
}

/// More calls than are ever under way at the same time. If the buffer were full, a call would wait outside the queue,
/// and a later one could overtake it. Unused room costs nothing.
const MOST_CALLS: usize = 1 << 20;

/// Dials and logs in. A refused login is tried once more if another one may be given.
pub(in crate::redis) async fn login(
    target: Arc<Target>,
    dialer: &dyn Dial,
    executor: &Arc<dyn Executor>,
    progress: &Arc<DialProgress>,
    mut wishes: Wishes<'_>,
) -> Result<Greeted, Failure> {
    let (source, mut refused) = (target.login(), None);
    loop {
        if source.changes() {
            progress.enter(Stage::Credentials);
        }
        let asked = executor.now();
        let login = source.next(refused.as_ref()).await?;
        // Boxed, because the futures of all callers would contain it.
        match login_as(&target, login.as_ref(), (dialer, executor), progress, &mut wishes).boxed().await {
            Ok(mut greeted) => {
                if let Some(login) = login.filter(|login| login.time().is_some()) {
                    let (target, executor) = (Arc::clone(&target), Arc::clone(executor));
                    let (connection, seed) = (greeted.fresh.connection.clone(), dialer.seed());
                    let renewal = Renewal { target, executor, connection, login, asked, seed };
                    greeted.fresh.driver = select(greeted.fresh.driver, renewal.run().boxed()).map(drop).boxed();
                }
                greeted.at_once = refused.is_none();
                return Ok(greeted);
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
    target: &Arc<Target>,
    login: Option<&Login>,
    (dialer, executor): (&dyn Dial, &Arc<dyn Executor>),
    progress: &Arc<DialProgress>,
    wishes: &mut Wishes<'_>,
) -> Result<Greeted, Failure> {
    let stream = match wishes.dialled.take() {
        Some(stream) => stream,
        None => target.dial(dialer, progress).await?,
    };
    progress.enter(Stage::Login);
    wishes.on_dialled.take().into_iter().for_each(|tell| tell());
    // The timeouts of redis-rs are not used, because it would take the timer from a runtime that it guesses.
    let mut config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(MOST_CALLS);
    if let Some(push) = wishes.push.clone() {
        config = config.set_push_sender(push);
    }
    let explain = |reason: String| {
        let reason = login.map_or_else(|| reason.clone(), |login| login.redact(&reason));
        progress.explain(Failure::Io(reason))
    };
    let opened = MultiplexedConnection::new_with_config(&login::of_redis_rs(), Agreed::on(stream), config).await;
    let (mut connection, driver) = opened.map_err(|error| explain(error.to_string()))?;
    let mut driver = driver.boxed();
    let introduction = target.introduction().commands();
    let introduced = introduction.len();
    let mut pipeline = Pipeline::new();
    for command in introduction.into_iter().chain(wishes.commands.iter().cloned()) {
        pipeline.add_command(command);
    }
    let unread = |error: RedisError| explain(error.to_string());
    let (mut first, hello) = (connection.clone(), target.introduction().hello(login));
    let (sender, beside) = (connection.clone(), wishes.beside.take());
    // A server that refuses the login may hang up before it answers the rest.
    let hello = async {
        let answer = first.send_packed_command(&hello).await.map_err(unread)?;
        let hello = convert::reply(answer).map_err(|refusal| refused(login, refusal))?;
        login.into_iter().for_each(|login| target.login().accepted(login));
        Ok(hello)
    };
    let rest = async {
        match pipeline.len() {
            0 => Ok(Vec::new()),
            len => connection.send_packed_commands(&pipeline, 0, len).await.map_err(unread),
        }
    };
    let sent = executor.now();
    // Not called again if a second login follows.
    let beside = OptionFuture::from(beside.map(|begin| async { begin(sender).await }));
    let answered = with(driven(&mut driver, try_join(hello, rest)), beside).await;
    let (hello, answers) = answered.map_err(|closed| progress.explain(closed))??;
    let round_trip = executor.now().saturating_duration_since(sent);
    let mut answers = answers.into_iter();
    target.introduction().read(introduced, &mut answers);
    let fresh = Fresh { target: Arc::clone(target), connection, driver };
    Ok(Greeted { fresh, hello, answers, round_trip, at_once: true })
}

/// Runs `work` to its end, and `beside` in the time that `work` waits after its first poll.
async fn with<T, B>(work: impl Future<Output = T>, beside: impl Future<Output = B>) -> T {
    let (mut work, mut beside) = (pin!(work), pin!(beside.fuse()));
    poll_fn(|context| {
        let done = work.as_mut().poll(context);
        if done.is_pending() {
            let _ = beside.as_mut().poll(context);
        }
        done
    })
    .await
}

/// What the refusal of a login says. The server may quote the whole command, including the password.
fn refused(login: Option<&Login>, refusal: ConnectionError) -> Failure {
    let ConnectionError::Refused { code, message } = &refusal else { return Failure::Refused(refusal) };
    if code == "NOPROTO" {
        return Failure::Unsupported(too_old("does not speak RESP3"));
    }
    if refusal.kind() == ErrorKind::Unsupported {
        return Failure::Unsupported(too_old("does not know HELLO"));
    }
    let redact = |text: &str| login.map_or_else(|| text.to_owned(), |login| login.redact(text));
    Failure::Refused(ConnectionError::Refused { code: code.clone(), message: redact(message) })
}

/// A connection to a server that fits its purpose.
pub(in crate::redis) struct Checked {
    pub(in crate::redis) fresh: Fresh,
    /// How the server is set up, if this is the first connection.
    pub(in crate::redis) warnings: Vec<Warning>,
    /// The time that the answers took.
    pub(in crate::redis) round_trip: Duration,
    /// The answers to [`Wishes::commands`].
    pub(in crate::redis) answers: IntoIter<Value>,
    /// Whether the first login was accepted. Else the commands were also sent over a connection that was given up.
    pub(in crate::redis) at_once: bool,
}

/// [Logs in](login), selects the database and checks whether the server fits its purpose. On the `first` connection,
/// also checks how the server is set up.
pub(in crate::redis) async fn connect(
    target: Arc<Target>,
    dialer: &dyn Dial,
    executor: &Arc<dyn Executor>,
    progress: &Arc<DialProgress>,
    (first, mut wishes): (bool, Wishes<'_>),
) -> Result<Checked, Failure> {
    let mut commands = Vec::new();
    let db = target.db();
    if db != 0 {
        let mut select = ::redis::cmd("SELECT");
        select.arg(db);
        commands.push(select);
    }
    if first {
        let mut info = ::redis::cmd("INFO");
        info.arg("memory");
        commands.extend([ping(), info]);
    }
    commands.append(&mut wishes.commands);
    wishes.commands = commands;
    let Greeted { fresh, hello, mut answers, round_trip, at_once } =
        login(target, dialer, executor, progress, wishes).await?;
    let mut next = || answers.next().map_or(Ok(Reply::Nil), convert::reply).map_err(Failure::Refused);
    if db != 0 {
        next().map_err(|failure| match failure {
            Failure::Refused(ConnectionError::Refused { code, message }) if code == "ERR" => Failure::Invalid(message),
            other => other,
        })?;
    }
    check_server(&hello, fresh.target.purpose())?;
    let mut warnings = Vec::new();
    if first {
        match next() {
            // A user without PING may still run scripts.
            Err(Failure::Refused(refusal)) if refusal.kind() == ErrorKind::Denied => {}
            answer => drop(answer?),
        }
        // A user without INFO gets no warning.
        let policy = next().ok().and_then(|info| eviction_policy(&info));
        warnings.extend(policy.map(|policy| Warning::Eviction { policy }));
    }
    Ok(Checked { fresh, warnings, round_trip, answers, at_once })
}

/// A command whose every answer, even an error, shows that the server is alive.
pub(in crate::redis) fn ping() -> Cmd {
    ::redis::cmd("PING")
}

#[cfg(test)]
mod tests;
