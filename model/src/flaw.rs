//! Broken variants of the scheme.

/// A mistake that the properties must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A hold needs a majority of locks, and not of accepted tokens.
    TokenNotAccepted,
    /// A master accepts the token that it has accepted from another hold.
    EqualAccepted,
    /// The votes of a master that has just restarted without its data count at once.
    YoungCounts,
    /// Proposals come from a counter alone, which a restart loses, and not from the clock.
    NoClock,
    /// A lease is counted from when the votes are counted, and not from before they were asked for.
    LeaseFromAnswer,
    /// An acquisition that goes on after a round without a majority proposes what it proposed before, however long ago.
    OldProposal,
    /// An acquisition claims that its token has a majority already.
    ClaimedTooEarly,
    /// A vote that is given again to a hold lowers the counter to the hold's token.
    CounterLowered,
    /// A master votes for every set of masters.
    SetNotChecked,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::TokenNotAccepted,
        Self::EqualAccepted,
        Self::YoungCounts,
        Self::NoClock,
        Self::LeaseFromAnswer,
        Self::OldProposal,
        Self::ClaimedTooEarly,
        Self::CounterLowered,
        Self::SetNotChecked,
    ];
}
