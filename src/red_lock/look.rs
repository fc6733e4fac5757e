//! A look at all masters, which changes nothing there: how an acquisition waits while other holds are in its way.
//!
//! To ask for votes instead would take the lock of each master that is free, and have that cancelled again. Meanwhile it would be in the
//! way of others, and of a hold that asks for a vote which it has lost.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::vote::reply::Sight;
use crate::red_lock::count::{Outlook, Seen, survey};
use crate::red_lock::masters::Masters;
use crate::red_lock::together::together;

impl Masters {
    /// Asks all masters that answer whether they are free to vote on these keys. The failure is as that of a round.
    pub(super) async fn look(self: &Arc<Self>, keys: &[Arc<Keys>], lease: Duration) -> (Outlook, Option<Failure>) {
        let asked: Vec<usize> = (0..self.all.len()).filter(|master| self.all[*master].is_up()).collect();
        let looks = asked.iter().map(|master| self.look_at(*master, &keys[*master]));
        let looks = together(self.executor(), self.node_timeout(lease), looks).await;
        let mut failure = None;
        let mut seen = Vec::with_capacity(asked.len());
        for (master, look) in asked.into_iter().zip(looks) {
            seen.extend(self.answered(master, look, &mut failure));
        }
        (survey(self.all.len(), &seen, self.now()), failure)
    }

    async fn look_at(&self, master: usize, keys: &Keys) -> Result<Seen, Failure> {
        let context = self.all[master].context();
        let looked = context.scripts().view(keys).await?;
        context.observe(looked.process.now);
        let from = self.learn(master, &looked.process, context.now());
        Ok(match looked.sight {
            Sight::Free => Seen::Free(from),
            Sight::Busy(left) => Seen::Busy(left.unwrap_or(Duration::MAX), from),
        })
    }
}
