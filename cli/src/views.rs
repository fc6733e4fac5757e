//! What is shown of names. The fields are those of the JSON that README.md documents.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline::{Access, HoldState, NameState, PrimitiveKind, WaiterState};
use serde::Serialize;

use crate::show::{Style, clean, time};

/// A name of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct Name {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) holds: Vec<Hold>,
    pub(crate) waiters: u64,
    pub(crate) queue: Vec<Waiter>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Hold {
    pub(crate) client: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) access: &'static str,
    pub(crate) permits: Option<u32>,
    pub(crate) token: Option<u64>,
    /// When it was granted. The token tells it, so permits have none.
    pub(crate) since_unix_ms: Option<u64>,
    pub(crate) remaining_ms: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Waiter {
    pub(crate) client: String,
    pub(crate) label: Option<String>,
    pub(crate) access: &'static str,
    pub(crate) permits: Option<u32>,
}

/// The word for a kind, as `--kind` has it.
pub(crate) fn kind(kind: PrimitiveKind) -> &'static str {
    match kind {
        PrimitiveKind::Lock => "lock",
        PrimitiveKind::RwLock => "rw",
        PrimitiveKind::Semaphore => "semaphore",
        PrimitiveKind::Latch => "latch",
        PrimitiveKind::Barrier => "barrier",
        PrimitiveKind::DoubleBarrier => "double-barrier",
        PrimitiveKind::Once => "once",
        PrimitiveKind::Election => "election",
        PrimitiveKind::RateLimiter => "rate",
        PrimitiveKind::RedLock => "redlock",
        _ => "other",
    }
}

pub(crate) fn access(access: Access) -> (&'static str, Option<u32>) {
    match access {
        Access::Lock => ("lock", None),
        Access::Read => ("read", None),
        Access::UpgradableRead => ("upgradable", None),
        Access::Upgrade => ("upgrade", None),
        Access::Write => ("write", None),
        Access::Permits(permits) => ("permits", Some(permits)),
        Access::Latch => ("latch", None),
        Access::Barrier => ("barrier", None),
        _ => ("other", None),
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<&NameState> for Name {
    fn from(state: &NameState) -> Self {
        Self {
            kind: kind(state.name.kind),
            name: state.name.name.clone(),
            holds: state.holds.iter().map(Hold::from).collect(),
            waiters: state.waiters,
            queue: state.queue.iter().map(Waiter::from).collect(),
        }
    }
}

impl From<&HoldState> for Hold {
    fn from(hold: &HoldState) -> Self {
        let (access, permits) = access(hold.access);
        let token = hold.token.map(|token| token.get());
        Self {
            client: hold.client.map(|id| id.to_string()),
            label: hold.label.clone(),
            access,
            permits,
            token,
            since_unix_ms: token.map(|token| token / 1000),
            remaining_ms: millis(hold.remaining),
        }
    }
}

impl From<&WaiterState> for Waiter {
    fn from(waiter: &WaiterState) -> Self {
        let (access, permits) = access(waiter.waits_for);
        Self { client: waiter.client.to_string(), label: waiter.label.clone(), access, permits }
    }
}

impl Name {
    /// Whether anybody holds it or waits for it.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.holds.is_empty() || self.waiters > 0
    }

    /// A line for the name, and one for each hold and waiter.
    pub(crate) fn lines(&self, style: Style) -> Vec<String> {
        let title = style.bold(&clean(&self.name));
        let mut lines = vec![format!("{title}  {}, {}", self.kind, self.summary(style))];
        for hold in &self.holds {
            let token = hold.token.map_or_else(String::new, |token| format!("  token {token}"));
            let since = hold.age().map_or_else(String::new, |age| format!("  for {}", time(age)));
            let left = time(Duration::from_millis(hold.remaining_ms));
            let who = who(hold.label.as_deref(), hold.client.as_deref());
            lines.push(format!("  held    {who}  {}{since}  lease {left}{token}", what(hold.access, hold.permits)));
        }
        for (place, waiter) in self.queue.iter().enumerate() {
            let who = who(waiter.label.as_deref(), Some(&waiter.client));
            lines.push(format!("  {:<7} {who}  {}", format!("{}.", place + 1), what(waiter.access, waiter.permits)));
        }
        lines
    }

    pub(crate) fn summary(&self, style: Style) -> String {
        let held = match self.holds.len() {
            // Nobody holds a latch.
            0 if self.kind == kind(PrimitiveKind::Latch) => style.yellow("set"),
            0 => style.green("free"),
            1 => style.yellow("held"),
            holds => style.yellow(&format!("{holds} holds")),
        };
        format!("{held}, {} waiting", self.waiters)
    }
}

impl Hold {
    /// How long ago it was granted, by this machine's clock.
    pub(crate) fn age(&self) -> Option<Duration> {
        let since = UNIX_EPOCH + Duration::from_millis(self.since_unix_ms?);
        SystemTime::now().duration_since(since).ok()
    }
}

/// The label, or else the id of the client.
pub(crate) fn who(label: Option<&str>, client: Option<&str>) -> String {
    clean(label.or(client).unwrap_or("a program that is not bowline"))
}

pub(crate) fn what(access: &str, permits: Option<u32>) -> String {
    match permits {
        Some(1) => "1 permit".to_owned(),
        Some(permits) => format!("{permits} permits"),
        None => access.to_owned(),
    }
}
