//! The loss of a hold, for tasks that do not have its guard.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};

use crate::engine::lease::{Hold, Loss};
use crate::hold::owner::HoldOwner;
use crate::runtime::Executor;

/// A signal of the loss of one hold, for any number of tasks and threads. Returned by `lost_signal` of a guard, such as
/// [`LockGuard::lost_signal`](crate::LockGuard::lost_signal). Cheap to clone.
///
/// The signal keeps neither the hold nor the client alive, and may outlive the guard. It belongs to the hold that the
/// guard had when the signal was made. A downgrade or an upgrade begins a new hold: make a new signal from the new
/// guard.
///
/// # Examples
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let guard = client.lock("orders:42").lock().await?;
/// let signal = guard.lost_signal();
/// let watch = async move {
///     if let Some(loss) = signal.wait().await {
///         eprintln!("stop at once: {loss}");
///     }
/// };
/// # drop(watch);
/// # guard.release().await }
/// ```
#[derive(Clone)]
pub struct LossSignal {
    name: Arc<str>,
    holds: Arc<[Watched]>,
}

/// A watched hold, with the clock of its client.
struct Watched {
    hold: Arc<Hold>,
    executor: Arc<dyn Executor>,
}

impl LossSignal {
    pub(crate) fn of_one(owned: &HoldOwner) -> Self {
        Self::of_several(owned.hold.keys.name.clone(), [owned])
    }

    pub(crate) fn of_several<'a>(name: Arc<str>, holds: impl IntoIterator<Item = &'a HoldOwner>) -> Self {
        let watched =
            |owned: &HoldOwner| Watched { hold: owned.hold.clone(), executor: owned.context().executor.clone() };
        Self { name, holds: holds.into_iter().map(watched).collect() }
    }

    /// The name of the primitive. The signal of a [`MultiGuard`](crate::MultiGuard) returns all names, separated by a
    /// comma and a space.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the hold was lost. `false` while it is held and after it was released in time. Sends no command.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// The rest of the lease by the client's own count, as [`LockGuard::remaining`](crate::LockGuard::remaining)
    /// returns it: of several holds, the shortest. Zero after a loss and after a release. Sends no command.
    pub fn remaining(&self) -> Duration {
        let remaining = |Watched { hold, executor }: &Watched| hold.remaining(executor.now());
        self.holds.iter().map(remaining).min().unwrap_or_default()
    }

    /// Whether all holds are still valid.
    pub(crate) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The reason of the loss. `None` while the hold is held and after it was released in time.
    pub fn reason(&self) -> Option<Loss> {
        self.lost().map(|(_, loss)| loss)
    }

    /// The name of the primitive whose hold was lost: one of several, if the signal is that of a
    /// [`MultiGuard`](crate::MultiGuard). `None` while nothing is lost and after a release in time.
    pub fn lost_name(&self) -> Option<&str> {
        self.lost().map(|(hold, _)| &*hold.keys.name)
    }

    /// Resolves when the hold is over: with the reason if it was lost, or with `None` if it was released in time.
    ///
    /// # Cancel safety
    /// The future may be dropped and `wait` called again. No loss is missed.
    pub async fn wait(&self) -> Option<Loss> {
        let mut over: FuturesUnordered<_> = self.holds.iter().map(|watched| watched.hold.over()).collect();
        while let Some(loss) = over.next().await {
            if loss.is_some() {
                return loss;
            }
        }
        None
    }

    fn lost(&self) -> Option<(&Hold, Loss)> {
        self.holds.iter().find_map(|Watched { hold, executor }| Some((&**hold, hold.loss(executor.now())?)))
    }
}

/// Shows the name only: the hold knows attempt ids, which are not for logs.
impl fmt::Debug for LossSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossSignal").field("name", &self.name()).field("reason", &self.reason()).finish()
    }
}
