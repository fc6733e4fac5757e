//! The clients that are measured, and what they send.

use std::sync::Arc;

use bowline::{Client, Config, Executor};
use bowline_benches::Result;
use bowline_benches::runtime::Runtime;
use bowline_benches::watched::{Seen, Watched};

/// A client as everybody has it, for times and allocations.
pub(crate) async fn plain(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<Client> {
    let config = Config::builder().build()?;
    let connection = runtime.open(executor.clone(), url, &config).await?;
    Ok(Client::new(executor.clone(), Arc::new(connection), config).await?)
}

/// A client whose commands, tasks and timers are counted.
pub(crate) async fn watched(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<(Client, Arc<Seen>)> {
    let config = Config::builder().build()?;
    let seen = Arc::<Seen>::default();
    let executor: Arc<dyn Executor> = Arc::new(Watched { seen: seen.clone(), inner: executor.clone() });
    let inner = Arc::new(runtime.open(executor.clone(), url, &config).await?);
    let connection = Watched { seen: seen.clone(), inner };
    Ok((Client::new(executor, Arc::new(connection), config).await?, seen))
}
