//! bowline as a process of its own, which answers lines as the Java program does.

use std::time::Instant;

use bowline::{Client, LockGuard};
use bowline_benches::Result;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

/// Acquisitions under way at a time.
const AT_ONCE: usize = 200;

/// Arguments: the server's address and a name. Prints `ready`, and then answers each line that it reads:
///
/// - `connect <n>`: n times, a new client takes the lock. The answer has the nanoseconds from nothing to each grant.
/// - `hold <n>`: takes n locks and keeps them. The answer is `held`.
pub(crate) fn work(task: &[String]) -> Result<()> {
    let [url, name] = task else { return Err(format!("not a task: {task:?}").into()) };
    let (url, name) = (url.clone(), name.clone());
    Runtime::TokioMulti.run(|_| async move {
        let client = bowline::tokio::connect(&*url).await?;
        let mut held = Vec::new();
        println!("ready");
        let mut input = BufReader::new(stdin()).lines();
        while let Some(line) = input.next_line().await? {
            match line.split_once(' ') {
                Some(("connect", count)) => println!("{}", connects(&url, &name, count.parse()?).await?.to_text()),
                Some(("hold", count)) => {
                    held = holds(&client, &name, count.parse()?).await?;
                    println!("held");
                }
                _ => return Err(format!("not a request: {line:?}").into()),
            }
        }
        drop(held);
        Ok(())
    })
}

async fn connects(url: &str, name: &str, count: u32) -> Result<Samples> {
    let mut granted = Samples::default();
    for _ in 0..count {
        let start = Instant::now();
        let client = bowline::tokio::connect(url).await?;
        let guard = client.lock(name).lock().await?;
        granted.add(start.elapsed());
        guard.release().await?;
        client.close().await;
    }
    Ok(granted)
}

async fn holds(client: &Client, name: &str, count: u32) -> Result<Vec<LockGuard>> {
    let acquire = |n: u32| {
        let lock = client.lock(&format!("{name}:{n}"));
        async move { lock.lock().await }
    };
    Ok(stream::iter(0..count).map(acquire).buffer_unordered(AT_ONCE).try_collect().await?)
}
