//! The clients that are measured.

use std::sync::Arc;

use bowline::{Client, Config, Executor};
use bowline_testkit::watched::Watched;

use crate::Result;
use crate::runtime::Runtime;
use crate::watched::{Seen, WatchedExecutor};

/// A client as everybody has it, for times and allocations.
pub async fn plain(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<Client> {
    plain_with(runtime, executor, url, Config::default()).await
}

/// The same with other settings.
pub async fn plain_with(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str, config: Config) -> Result<Client> {
    runtime.connect(executor.clone(), url, config).await
}

/// A client whose commands, tasks and timers are counted.
pub async fn watched(
    runtime: Runtime,
    executor: &Arc<dyn Executor>,
    url: &str,
    config: Config,
) -> Result<(Client, Arc<Seen>)> {
    let seen = Arc::<Seen>::default();
    let executor: Arc<dyn Executor> = Arc::new(WatchedExecutor { seen: seen.clone(), inner: executor.clone() });
    let inner = runtime.open(executor.clone(), url, &config).await?;
    let connection = Watched { inner, watch: seen.clone() };
    Ok((Client::connect(executor, Arc::new(connection), config).await?, seen))
}
