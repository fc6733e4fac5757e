//! What was granted: any primitive that a command can run under.

use bowline::{
    Acquire, Client, Held, Leadership, LockGuard, LossSignal, MultiGuard, Permit, ReadGuard, Result, TryAcquire,
    WriteGuard,
};

use crate::args::run::{Mode, Run};

pub(super) enum Granted {
    Lock(LockGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(Permit),
    All(MultiGuard),
    Leads(Leadership),
}

/// Acquires what `run` says. `None`: it is not free, and `run` says not to wait.
pub(super) async fn acquire(client: &Client, run: &Run) -> Result<Option<Granted>> {
    let name = run.name.as_deref().unwrap_or_default();
    Ok(match &run.mode {
        Mode { elect: true, .. } => {
            let election = client.election(name);
            let leads = match (run.no_wait, run.timeout) {
                (true, _) => election.try_campaign().await?,
                (false, None) => Some(election.campaign().await?),
                (false, Some(timeout)) => Some(election.campaign().timeout(timeout).await?),
            };
            leads.map(Granted::Leads)
        }
        Mode { shared: true, .. } => {
            let lock = client.rw_lock(name);
            either(run, || lock.try_read(), || lock.read()).await?.map(Granted::Read)
        }
        Mode { exclusive: true, .. } => {
            let lock = client.rw_lock(name);
            either(run, || lock.try_write(), || lock.write()).await?.map(Granted::Write)
        }
        Mode { permits: Some((n, limit)), .. } => {
            let semaphore = client.semaphore(name, *limit);
            either(run, || semaphore.try_acquire_many(*n), || semaphore.acquire_many(*n)).await?.map(Granted::Permits)
        }
        Mode { all, .. } if !all.is_empty() => {
            let all = client.lock_all(all);
            either(run, || all.try_acquire(), || all.acquire()).await?.map(Granted::All)
        }
        _ => {
            let lock = client.lock(name);
            either(run, || lock.try_lock(), || lock.lock()).await?.map(Granted::Lock)
        }
    })
}

async fn either<G: Held>(
    run: &Run,
    no_wait: impl FnOnce() -> TryAcquire<G>,
    wait: impl FnOnce() -> Acquire<G>,
) -> Result<Option<G>> {
    match (run.no_wait, run.timeout) {
        (true, _) => no_wait().await,
        (false, None) => wait().await.map(Some),
        (false, Some(timeout)) => wait().timeout(timeout).await.map(Some),
    }
}

impl Granted {
    pub(super) fn signal(&self) -> LossSignal {
        match self {
            Self::Lock(guard) => guard.lost_signal(),
            Self::Read(guard) => guard.lost_signal(),
            Self::Write(guard) => guard.lost_signal(),
            Self::Permits(guard) => guard.lost_signal(),
            Self::All(guard) => guard.lost_signal(),
            Self::Leads(leadership) => leadership.lost_signal(),
        }
    }

    /// The value of `BOWLINE_NAME`: the names in the caller's order.
    pub(super) fn name(&self, run: &Run) -> String {
        super::shown(run)
    }

    /// The value of `BOWLINE_TOKEN`: the tokens in the order of the names. Permits have none.
    pub(super) fn token(&self, run: &Run) -> Option<String> {
        let token = match self {
            Self::Lock(guard) => guard.token(),
            Self::Read(guard) => guard.token(),
            Self::Write(guard) => guard.token(),
            Self::Leads(leadership) => leadership.token(),
            Self::Permits(_) => return None,
            Self::All(guard) => {
                let tokens = run.mode.all.iter().filter_map(|name| guard.token(name));
                return Some(tokens.map(|token| token.get().to_string()).collect::<Vec<_>>().join(","));
            }
        };
        Some(token.get().to_string())
    }

    pub(super) async fn release(self) -> Result<()> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(guard) => guard.release().await,
            Self::All(guard) => guard.release().await,
            Self::Leads(leadership) => leadership.resign().await,
        }
    }
}
