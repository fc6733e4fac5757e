//! The runtimes of a program, and the ways in which it ends.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bowline::{Client, Config, Error, ErrorKind};
use tokio::runtime::Builder;

use super::SHUTDOWN;
use super::scenes::{Scene, Things};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    TokioMulti,
    TokioCurrent,
    Smol,
    AsyncStd,
    /// No runtime of the program's own.
    Blocking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The last statement drops what the program has.
    Drop,
    /// `main` returns while everything is alive.
    Return,
    /// `main` returns an error while everything is alive.
    Error,
    Panic,
    /// Everything belongs to a task, and `main` returns.
    Elsewhere,
    /// A task drops everything while `main` returns.
    DropElsewhere,
    /// Everything outlives the runtime.
    Outlives,
    ScopedReturn,
    ScopedError,
    ScopedPanic,
}

impl Runtime {
    const ALL: [Self; 5] = [Self::TokioMulti, Self::TokioCurrent, Self::Smol, Self::AsyncStd, Self::Blocking];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|runtime| runtime.name() == name).unwrap()
    }

    fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        match self {
            Self::TokioMulti => Builder::new_multi_thread().enable_all().build().unwrap().block_on(work),
            Self::TokioCurrent => Builder::new_current_thread().enable_all().build().unwrap().block_on(work),
            #[cfg(feature = "smol")]
            Self::Smol => smol::block_on(work),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => async_std::task::block_on(work),
            other => panic!("{other:?} is not built or does not poll"),
        }
    }

    async fn connect(self, url: &str) -> Client {
        let config = config();
        match self {
            Self::TokioMulti | Self::TokioCurrent => bowline::tokio::connect_with(url, config).await.unwrap(),
            #[cfg(feature = "smol")]
            Self::Smol => bowline::smol::connect_with(url, config).await.unwrap(),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => bowline::async_std::connect_with(url, config).await.unwrap(),
            other => panic!("{other:?} is not built or does not poll"),
        }
    }
}

fn config() -> Config {
    // A hold that is left is seen however long the test takes.
    Config::builder().lease(Duration::from_secs(600)).shutdown_timeout(SHUTDOWN).build().unwrap()
}

impl End {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Drop,
        Self::Return,
        Self::Error,
        Self::Panic,
        Self::Elsewhere,
        Self::DropElsewhere,
        Self::Outlives,
        Self::ScopedError,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn named(name: &str) -> Self {
        let scoped = [Self::ScopedReturn, Self::ScopedPanic];
        Self::ALL.iter().copied().chain(scoped).find(|end| end.name() == name).unwrap()
    }

    /// The exit code of the program.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Error | Self::ScopedError => 1,
            Self::Panic | Self::ScopedPanic => 101,
            _ => 0,
        }
    }
}

/// The program. Returns its exit code, as Rust's runtime does for `main`.
pub(crate) fn main(runtime: Runtime, end: End, scene: Scene, name: &str, urls: &[&str]) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(|| {
        #[cfg(feature = "blocking")]
        if runtime == Runtime::Blocking {
            return blocking(end, scene, name, urls[0]);
        }
        let mut kept = None;
        let result = runtime.block_on(program(runtime, end, scene, name, urls, &mut kept));
        // The runtime is gone.
        drop(kept);
        result
    }));
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 101,
    }
}

async fn program(
    runtime: Runtime,
    end: End,
    scene: Scene,
    name: &str,
    urls: &[&str],
    kept: &mut Option<Things>,
) -> bowline::Result<()> {
    let mut clients = Vec::new();
    for url in urls {
        clients.push(runtime.connect(url).await);
    }
    let failed: Result<(), Error> = clients[0].lock("").lock().await.map(drop);
    assert_eq!(failed.as_ref().unwrap_err().kind(), ErrorKind::InvalidInput);
    if let End::ScopedReturn | End::ScopedError | End::ScopedPanic = end {
        let client = clients.swap_remove(0);
        drop(clients);
        let work = |client: Client| async move {
            let _things = scene.set_up(vec![client], name).await;
            match end {
                End::ScopedError => failed,
                End::ScopedPanic => panic!("as the test has it"),
                _ => Ok(()),
            }
        };
        return client.scope(work).await;
    }
    let things = scene.set_up(clients, name).await;
    match end {
        End::Drop => drop(things),
        End::Return => return Ok(()),
        End::Error => failed?,
        End::Panic => panic!("as the test has it"),
        End::Elsewhere => {
            let (taken, is_taken) = futures::channel::oneshot::channel();
            drop(tokio::spawn(async move {
                let _things = things;
                let _ = taken.send(());
                std::future::pending::<()>().await;
            }));
            is_taken.await.unwrap();
        }
        End::DropElsewhere => {
            drop(tokio::spawn(async move { drop(things) }));
            tokio::task::yield_now().await;
        }
        End::Outlives => *kept = Some(things),
        End::ScopedReturn | End::ScopedError | End::ScopedPanic => {}
    }
    Ok(())
}

#[cfg(feature = "blocking")]
fn blocking(end: End, scene: Scene, name: &str, url: &str) -> bowline::Result<()> {
    let client = bowline::blocking::connect_with(url, config())?;
    let things = scene.set_up_blocking(&client, name);
    match end {
        End::Drop => drop(things),
        End::Error => client.lock("").lock().block().map(drop)?,
        End::Panic => panic!("as the test has it"),
        _ => {}
    }
    Ok(())
}
