//! The functions that every runtime's module exports.

/// Defines `connect`, `connect_with` and `open` for a module with a type `Sockets` that implements `Dial`. `$place`
/// names where the client's tasks run, `$executor` makes the executor, and `$fails` lists its errors.
macro_rules! connect_functions {
    ($place:literal, $executor:expr, $fails:literal) => {
        #[doc = concat!("Connects to a URL, or by [`ConnectOptions`], with the default settings, on ", $place, ".")]
        /// [`RedisConnection`] says what a URL can be: `redis://`, `rediss://`, `unix://`, `redis-sentinel://` or
        /// `redis-cluster://`.
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
            let executor: Arc<dyn Executor> = Arc::new($executor);
            let connection = open(executor.clone(), to, &config).await?;
            Client::connect(executor, Arc::new(connection), config).await
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
