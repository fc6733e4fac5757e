//! The functions that every runtime's module has.

/// Defines `connect`, `connect_with` and `open` for a module with a `Sockets` that implements `Dial`: `$place` says where
/// the client's tasks run, `$executor` makes the executor, `$fails` how that can fail.
macro_rules! connect_functions {
    ($place:literal, $executor:expr, $fails:literal) => {
        #[doc = concat!("Connects to the server at `url` with the default settings, on ", $place, ".")]
        /// [`RedisConnection`] says what a URL can be: `redis://`, `rediss://`, `unix://` or `redis-sentinel://`.
        ///
        /// # Errors
        #[doc = concat!("Those of [`RedisConnection`] and of [`Client::connect`]", $fails, ".")]
        ///
        /// # Cancel safety
        /// Dropping the future closes the sockets and leaves nothing running.
        pub async fn connect(url: &str) -> Result<Client> {
            connect_with(url, Config::default()).await
        }

        /// As [`connect`], with settings of one's own.
        ///
        /// # Errors
        /// As [`connect`].
        ///
        /// # Cancel safety
        /// As [`connect`].
        pub async fn connect_with(url: &str, config: Config) -> Result<Client> {
            let executor: Arc<dyn Executor> = Arc::new($executor);
            let connection = open(executor.clone(), url, &config).await?;
            Client::connect(executor, Arc::new(connection), config).await
        }

        /// Connects without making a client, for those who wrap the connection or the executor first. Only the sockets
        /// are of this module's runtime.
        ///
        /// # Errors
        /// Those of [`RedisConnection`].
        ///
        /// # Cancel safety
        /// As [`connect`].
        pub async fn open(executor: Arc<dyn Executor>, url: &str, config: &Config) -> Result<RedisConnection> {
            RedisConnection::connect(executor, Arc::new(Sockets), url, config).await
        }
    };
}

pub(crate) use connect_functions;
