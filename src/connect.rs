//! The functions that every runtime's module exports.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, ready, select};

use crate::client::Client;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{ErrorKind, Result};
use crate::opening::{Notices, Opening};
use crate::redis::dial::Dial;
use crate::redis::{Begun, ConnectOptions, Made, RedisConnection};
use crate::runtime::Executor;

/// Connects a client, with `wrap` around its connection. What the client sends first goes to a single server right
/// behind the logins, in the same round trip.
pub(crate) async fn client(
    executor: Arc<dyn Executor>,
    dialer: Arc<dyn Dial>,
    options: ConnectOptions,
    config: Config,
    wrap: impl Fn(RedisConnection) -> Arc<dyn Connection>,
) -> Result<Client> {
    let connection = match RedisConnection::begin(executor.clone(), dialer, options, &config).await? {
        Begun::Connected(connection) => connection,
        Begun::Early(connection, made) => {
            let opening = Opening::new(executor.clone(), wrap(connection), config.clone());
            match early(&opening, made).await? {
                Early::Opened(notices) => return Client::open(opening, notices).await,
                Early::Elsewhere(connection) => connection,
            }
        }
    };
    Client::connect(executor, wrap(connection), config).await
}

enum Early {
    /// The connection that was used early is connected. `None`: the client must be opened over it once more.
    Opened(Option<Notices>),
    Elsewhere(RedisConnection),
}

/// Opens a client while its connection is being `made`.
async fn early(opening: &Opening, made: impl Future<Output = Result<Made>>) -> Result<Early> {
    let (now, limit) = (|| opening.executor.now(), opening.config.command_timeout);
    let began = now();
    let opened = pin!(opening.open_while(opening.check()));
    let (made, opened) = match select(pin!(made), opened).await {
        Either::Left((made, opened)) => (made?, Either::Left(opened)),
        Either::Right((opened, made)) => (made.await?, Either::Right(ready(opened))),
    };
    let was_slow = now().saturating_duration_since(began) > limit / 2;
    let notices = match made {
        Made::Early => match opened.await {
            Ok(notices) => Some(notices),
            // The login has used up most of the time.
            Err(error) if was_slow && error.kind() == ErrorKind::Unavailable => None,
            Err(error) => return Err(error),
        },
        Made::Anew => None,
        Made::Elsewhere(connection) => return Ok(Early::Elsewhere(connection)),
    };
    Ok(Early::Opened(notices))
}

/// Defines `connect`, `connect_with` and `open` for a module with a type `Sockets` that implements `Dial`. `$place`
/// names where the client's tasks run, `$executor` makes the executor, and `$fails` lists its errors.
macro_rules! connect_functions {
    ($place:literal, $executor:expr, $fails:literal) => {
        #[doc = concat!("Connects to a URL, or by [`ConnectOptions`], with the default settings, on ", $place, ".")]
        /// [`RedisConnection`] says what a URL can be: `redis://`, `rediss://`, `unix://`, `redis-sentinel://` or
        /// `redis-cluster://`.
        ///
        /// To a single server, the checks of [`Client::connect`] are sent behind the login, before its answer is known.
        /// They are sent once more if that login was refused and a second one was accepted, or if it took more than
        /// half of the command timeout.
        ///
        /// # Errors
        #[doc = concat!("Those of [`RedisConnection`] and of [`Client::connect`]", $fails, ".")]
        ///
        /// # Cancel safety
        /// Dropping the future closes the sockets and leaves nothing running.
        pub async fn connect(to: impl Into<ConnectOptions>) -> Result<Client> {
            connect_with(to, Config::default()).await
        }

        /// Connects as [`connect`] does, with the settings in `config`.
        ///
        /// # Errors
        /// Those of [`connect`].
        ///
        /// # Cancel safety
        /// That of [`connect`].
        pub async fn connect_with(to: impl Into<ConnectOptions>, config: Config) -> Result<Client> {
            connect_over(Arc::new($executor), to, config, |connection| Arc::new(connection)).await
        }

        /// Connects as [`connect_with`] does, on any executor and with another connection around its own, for the tests
        /// and benches. Not part of the public API.
        #[doc(hidden)]
        pub async fn connect_over(
            executor: Arc<dyn Executor>,
            to: impl Into<ConnectOptions>,
            config: Config,
            wrap: impl Fn(RedisConnection) -> Arc<dyn Connection>,
        ) -> Result<Client> {
            // Boxed, because a program may hold the future among others.
            Box::pin(crate::connect::client(executor, Arc::new(Sockets), to.into(), config, wrap)).await
        }

        /// Opens a connection without making a client, for programs that wrap the connection or the executor first.
        /// Only the sockets belong to this module's runtime.
        ///
        /// # Errors
        /// Those of [`RedisConnection`].
        ///
        /// # Cancel safety
        /// That of [`connect`].
        pub async fn open(
            executor: Arc<dyn Executor>,
            to: impl Into<ConnectOptions>,
            config: &Config,
        ) -> Result<RedisConnection> {
            // Boxed, because a program may hold the future among others.
            Box::pin(RedisConnection::connect(executor, Arc::new(Sockets), to.into(), config)).await
        }
    };
}

pub(crate) use connect_functions;
