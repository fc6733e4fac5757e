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
use reply::{Claimed, Left, Looked, Voted, claimed, left, looked, voted};

pub(crate) mod reply;

scripts! {
    "vote", "lock":
    VIEW = "view",
    VOTE = "vote",
    CLAIM = "vote_claim",
    LEAVE = "vote_leave",
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
    /// The last save of the process that the caller knows: [`Process::saved`](reply::Process::saved), or 0.
    pub(crate) known: u64,
}

/// The turn that is asked for together with a vote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnArgs {
    pub(crate) id: AttemptId,
    pub(crate) lease: Duration,
}

fn voting<'a, T>(call: ScriptCall<'a, T>, args: VoteArgs<'a>) -> ScriptCall<'a, T> {
    call.id(args.id)
        .millis(args.lease)
        .number(args.proposal.get())
        .id(args.owner)
        .number(args.granted)
        .number(args.not_after)
        .text(args.set)
        .number(args.known)
}

fn voting_keys(votes: &Keys) -> impl Iterator<Item = &str> {
    [votes.main(), votes.ending(":fence")].into_iter()
}

pub(super) fn vote<'a>(keys: &'a Keys, args: VoteArgs<'a>) -> ScriptCall<'a, Voted> {
    voting(ScriptCall::new(&VOTE, voting_keys(keys), voted), args)
}

pub(super) fn claim<'a>(
    votes: &'a Keys,
    args: VoteArgs<'a>,
    turns: &'a Keys,
    turn: TurnArgs,
) -> ScriptCall<'a, Claimed> {
    let call = ScriptCall::new(&CLAIM, voting_keys(votes).chain(turns.all()), claimed);
    voting(call, args).id(turn.id).millis(turn.lease)
}

pub(super) fn leave<'a>(
    (votes, vote): (&'a Keys, AttemptId),
    (turns, turn): (&'a Keys, AttemptId),
) -> ScriptCall<'a, Left> {
    let of_turn = [turns.main(), turns.ending(":queue"), turns.ending(":tickets")];
    ScriptCall::new(&LEAVE, [votes.main()].into_iter().chain(of_turn), left).id(vote).id(turn)
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

    /// Takes the turn and asks for a vote, in one step, if nobody has the turn or waits for it.
    pub(crate) async fn claim(
        self,
        votes: &Keys,
        args: VoteArgs<'_>,
        turns: &Keys,
        turn: TurnArgs,
    ) -> Result<Claimed, Failure> {
        self.send(claim(votes, args, turns, turn)).await
    }

    /// Releases a vote, and with it the turn, unless somebody waits for the turn.
    pub(crate) async fn leave(self, vote: (&Keys, AttemptId), turn: (&Keys, AttemptId)) -> Result<Left, Failure> {
        self.send(leave(vote, turn)).await
    }
}
