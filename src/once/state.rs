//! What is known of the last run.

use std::time::Duration;

use uuid::Uuid;

use super::schedule::Schedule;
use crate::inspect::Labels;
use crate::protocol::once::reply::{RunInspected, StoredRun};
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

/// What is known of the runs of a name, as read by [`Once::inspect`](crate::Once::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct OnceState {
    /// The last run. `None` if there was none, or none in the last two periods.
    pub last: Option<LastRun>,
    /// How long a hold keeps other runs away, unless it is renewed: that of a run under way, or of one that is to hold
    /// for [longer](crate::Once::at_least) or has crashed.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub holds_for: Option<Duration>,
}

impl OnceState {
    pub(super) fn of(
        RunInspected { holds_for, last, now }: RunInspected,
        schedule: &Schedule,
        labels: &Labels,
    ) -> Self {
        Self { last: last.map(|run| LastRun::of(run, now, schedule, labels)), holds_for }
    }
}

/// A run, as read by [`Once::inspect`](crate::Once::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LastRun {
    /// The [`Client::id`](crate::Client::id) of the client that ran, or `None` if bowline did not write the key.
    pub client: Option<Uuid>,
    /// The [label](crate::ConfigBuilder::label) of that client, if it has one and it could be read.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label: Option<String>,
    /// The fencing token of the run.
    pub token: Token,
    /// The number of its period, as in [`Run::tick`](crate::Run::tick), if the schedule of this handle is that of the
    /// run.
    pub tick: u64,
    /// How long ago the run began, by the server's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub began_ago: Duration,
    /// How long the run took. `None` if it is not known to have ended.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub took: Option<Duration>,
    /// How the run ended.
    pub outcome: RunOutcome,
}

impl LastRun {
    fn of(run: StoredRun, now: ServerMillis, schedule: &Schedule, labels: &Labels) -> Self {
        let StoredRun { token, began, ended, client, holds } = run;
        let outcome = match ended {
            None if holds => RunOutcome::Running,
            None => RunOutcome::Abandoned,
            Some((_, true)) => RunOutcome::Done,
            Some((_, false)) => RunOutcome::Failed,
        };
        let since_began = |until: ServerMillis| Duration::from_millis(until.saturating_sub(began));
        let took = ended.map(|(ended, _)| since_began(ended));
        let (label, tick) = (labels.get(client), schedule.tick_of(token));
        Self { client, label, token, tick, began_ago: since_began(now), took, outcome }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RunOutcome {
    /// It is under way, or its program has crashed and its lease has not ended yet.
    Running,
    /// Its work was done.
    Done,
    /// Its work returned an error or panicked.
    Failed,
    /// It is not known to have ended, and holds no more: the program has crashed, was cut off, has lost its hold or has
    /// dropped the work.
    Abandoned,
}
