//! Asks the sentinels after the runtime's end.

use super::super::blocking::ask_once;
use super::super::dial::deadline::Deadline;
use super::board::{Board, Named, SentinelAnswer};
use super::query;
use super::sentinels::Sentinels;

/// The most sentinels that are asked. The rest of the time is for the master.
const MOST: usize = 3;

/// Returns the best answer. Each answer may take a quarter of the time that is left. Sentinels that have answered
/// before are asked first.
pub(super) fn ask(sentinels: &Sentinels, deadline: Deadline) -> Option<Named> {
    let name = &sentinels.setup.master;
    let mut best: Option<Named> = None;
    for (_, target) in sentinels.look(Board::sentinels).into_iter().take(MOST) {
        let Ok(share) = deadline.share(4) else { break };
        let Some(replies) = ask_once(&target, &query::full(name), share) else { continue };
        let Ok(replies) = <[_; 2]>::try_from(replies) else { continue };
        if let Ok(SentinelAnswer::Master(named)) = query::read_full(replies, &sentinels.setup.announced)
            && best.as_ref().is_none_or(|best| best.epoch < named.epoch)
        {
            best = Some(named);
        }
    }
    let best = best?;
    // The same rule as while the runtime lived: a sentinel with an older epoch has missed a failover.
    let before = sentinels.look(|board| board.master(name)).ok();
    Some(before.filter(|before| before.epoch > best.epoch).unwrap_or(best))
}

#[cfg(test)]
mod tests;
