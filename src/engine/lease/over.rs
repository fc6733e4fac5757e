//! The wait for the end of a hold.

use std::sync::atomic::{Ordering, fence};

use crate::engine::lease::state::LeaseState;
use crate::engine::lease::{Hold, Loss};
use crate::until::until;

impl Hold {
    /// Resolves when a loss is signalled. Never resolves after a release.
    pub(crate) async fn lost(&self) -> Loss {
        match self.over().await {
            Some(loss) => loss,
            None => std::future::pending().await,
        }
    }

    /// Resolves when the hold is over: with the loss, or with `None` if it was released.
    pub(crate) async fn over(&self) -> Option<Loss> {
        let over = || match self.state.load() {
            LeaseState::Held { .. } => None,
            LeaseState::Lost(loss) => Some(Some(loss)),
            LeaseState::Released => Some(None),
        };
        until(&self.over, over).await
    }

    /// Wakes the tasks that wait for the end of the hold. The caller must not hold a mutex, because this runs foreign
    /// wakers.
    pub(crate) fn notify_over(&self) {
        // A hold that was handed off in place belongs to the next guard. No task waits for its end yet.
        if let LeaseState::Held { .. } = self.state.load() {
            return;
        }
        // `Event::notify` allocates memory even if no task listens, and most holds end without a listener. No task is
        // missed: `listen` ends with a SeqCst fence, and the task then reads the state. This fence comes after the
        // state was written.
        fence(Ordering::SeqCst);
        if self.over.total_listeners() > 0 {
            self.over.notify(usize::MAX);
        }
        self.part_of.let_go();
    }
}
