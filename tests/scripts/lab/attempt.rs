//! Attempts to acquire, and how a test makes them.

use std::ops::RangeInclusive;
use std::time::Duration;

use bowline::wire;

pub const LEASE: u64 = 30_000;
pub const TICKET_TTL: u64 = 20_000;

/// One acquisition attempt: what a client sends about it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub client: u32,
    pub id: String,
    pub lease: u64,
    pub span: u32,
    pub ttl: u64,
    pub max_waiters: u32,
    pub not_after: u64,
    /// Of permits: the call site's, if it is not that of the lab.
    pub limit: Option<u32>,
}

/// The n-th attempt of a client.
pub fn attempt(client: u32, n: u64) -> Attempt {
    let id = format!("{}:{n}", uuid(client));
    Attempt { client, id, lease: LEASE, span: 1, ttl: TICKET_TTL, max_waiters: 0, not_after: 0, limit: None }
}

pub(super) fn uuid(client: u32) -> String {
    format!("00000000-0000-0000-0000-{client:012}")
}

impl Attempt {
    pub fn lease(self, lease: u64) -> Self {
        Self { lease, ..self }
    }
    pub fn span(self, span: u32) -> Self {
        Self { span, ..self }
    }
    /// For permits, in place of the span.
    pub fn units(self, units: u32) -> Self {
        self.span(units)
    }
    /// Outlives the test, however slow the machine.
    pub fn patient(self) -> Self {
        Self { lease: 600_000, ttl: 600_000, ..self }
    }
    pub fn ttl(self, ttl: u64) -> Self {
        Self { ttl, ..self }
    }
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { max_waiters, ..self }
    }
    pub fn not_after(self, not_after: u64) -> Self {
        Self { not_after, ..self }
    }
    pub fn retained(self) -> Self {
        Self { id: format!("{}r", self.id), ..self }
    }
    /// As the library sends it.
    pub fn wire(&self) -> wire::Attempt {
        let (client, n) = self.id.split_once(':').unwrap();
        wire::Attempt {
            client: client.parse().unwrap(),
            n: n.trim_end_matches('r').parse().unwrap(),
            retained: n.ends_with('r'),
            lease: Duration::from_millis(self.lease),
            amount: self.span,
            ticket_ttl: Duration::from_millis(self.ttl),
            max_waiters: self.max_waiters,
            not_after: self.not_after,
        }
    }
    /// By a call site with that limit.
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }
    /// Of the lock; that of permits is made by their lab, which knows the limit.
    pub fn ticket(&self) -> String {
        super::lock("n").ticket(self.wire())
    }
}

/// The grant of an attempt, as its client is told, but for the [time](timeless).
pub fn grant(attempt: &Attempt, token: u64) -> String {
    format!("{token} now {}", attempt.id)
}

/// A message as it was sent. That of a grant says when that was, by the server's clock: the word `now` instead, if it
/// was then.
#[track_caller]
pub fn timeless(message: &str, when: RangeInclusive<u64>) -> String {
    let words: Vec<&str> = message.split(' ').collect();
    match words[..] {
        [token, at, id] if token.parse::<u64>().is_ok() => {
            let at: u64 = at.parse().unwrap_or_else(|_| panic!("no time: {message:?}"));
            assert!(when.contains(&at), "{message:?} was not sent in {when:?}");
            format!("{token} now {id}")
        }
        _ => message.to_owned(),
    }
}
