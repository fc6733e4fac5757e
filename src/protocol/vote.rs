//! `RedLock`: the vote of one master as a typed call, and the kinds of its keys. Each master has two resources of the
//! name. The *turn* is an ordinary lock. The *vote* is a lock that only the script of this module acquires; the scripts
//! of the lock renew, release, cancel and inspect it.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::key::Keys;
use super::reply::ServerMillis;
use super::script::scripts;
use super::token::Token;
use reply::{Looked, Voted, looked, voted};

pub(crate) mod reply;

scripts! {
    "vote", "lock":
    VIEW = "view",
    VOTE = "vote",
}

/// The arguments of a request for a master's vote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VoteArgs<'a> {
    pub(crate) id: AttemptId,
    pub(crate) lease: Duration,
    pub(crate) proposal: Token,
    /// Identifies the hold on all masters. Its attempt id differs from master to master.
    pub(crate) owner: AttemptId,
    /// Whether a majority has accepted the token before. Then the master takes the lock for the hold, whatever its
    /// counter is.
    pub(crate) granted: bool,
    pub(crate) not_after: ServerMillis,
    /// The set of masters that the caller knows, as `<name>/<version>/<number of masters>`. Empty: the caller does not
    /// say.
    pub(crate) set: &'a str,
}

pub(super) fn vote<'a>(keys: &'a Keys, args: VoteArgs<'a>) -> ScriptCall<'a, Voted> {
    ScriptCall::new(&VOTE, [keys.main(), keys.ending(":fence")].into_iter(), voted)
        .id(args.id)
        .millis(args.lease)
        .number(args.proposal.get())
        .id(args.owner)
        .number(args.granted)
        .number(args.not_after)
        .text(args.set)
}

pub(super) fn view(keys: &Keys) -> ScriptCall<'_, Looked> {
    ScriptCall::new(&VIEW, [keys.main()].into_iter(), looked)
}

impl Scripts<'_> {
    pub(crate) async fn view(self, keys: &Keys) -> Result<Looked, Failure> {
        self.send(view(keys)).await
    }

    pub(crate) async fn vote(self, keys: &Keys, args: VoteArgs<'_>) -> Result<Voted, Failure> {
        self.send(vote(keys, args)).await
    }
}
