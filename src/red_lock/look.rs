//! A look at all masters, which changes nothing there: how an acquisition waits while other holds are in its way.
//!
//! A round of votes would take the lock on each free master and then cancel it. Meanwhile that lock would be in the way
//! of other acquisitions, and of a hold that asks for a lost vote.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::vote::reply::Sight;
use crate::red_lock::count::{Lack, Seen, survey};
use crate::red_lock::masters::Masters;
use crate::red_lock::together::together;

impl Masters {
    /// Asks all masters that serve these keys whether they are free to vote.
    pub(super) async fn look(self: &Arc<Self>, keys: &[Arc<Keys>], lease: Duration) -> Result<(), Lack> {
        let (now, limit) = (self.now(), self.node_timeout(lease));
        let asked: Vec<usize> = (0..self.all.len()).filter(|n| self.all[*n].serves(&keys[*n], now)).collect();
        let looks = asked.iter().map(|master| self.look_at(*master, &keys[*master]));
        let looks = together(self.executor(), limit, looks).await;
        let answers = asked.into_iter().zip(looks);
        let seen: Vec<Seen> =
            answers.filter_map(|(master, look)| self.answered(master, &keys[master], look, (now, limit))).collect();
        survey(self.all.len(), &seen, self.now())
    }

    async fn look_at(&self, master: usize, keys: &Keys) -> Result<Seen, Failure> {
        let context = self.all[master].context();
        let sent = context.now();
        let looked = context.scripts().view(keys).await?;
        context.observe(looked.process.now());
        let from = self.learn(master, &looked.process, 0, (sent, context.now()));
        Ok(match looked.sight {
            Sight::Free => Seen::Free(from),
            Sight::Busy(left) => Seen::Busy(left.unwrap_or(Duration::MAX), from),
        })
    }
}
