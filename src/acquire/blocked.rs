//! Who is in the way of an acquisition whose time is nearly over, for its error.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::acquire::request::Request;
use crate::acquire::wait::LastFailure;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, clients_of};
use crate::on_drop::OnDrop;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::seen::{Seen, SeenHold};
use crate::tuning::MOST_LOOKS;

/// The most holders that an error names.
const MOST_NAMED: usize = 3;

/// How many tickets are looked at for the own place in the queue.
const LISTED: u32 = 16;

/// The shortest timeout of an acquisition that asks: there must be time for an answer.
const SHORTEST: Duration = Duration::from_millis(100);

/// Asks once, when nine tenths of the time until `until` are over, or 1 s before its end if that is later. `None`: the
/// client has no label, or the caller has chosen no timeout or a very short one.
pub(crate) fn look<'a>(
    source: &'a HoldSource,
    request: &'a Request,
    (until, last): (Option<Instant>, &'a LastFailure),
) -> Option<BoxFuture<'a, ()>> {
    let context = &source.context;
    let label = context.label.as_deref().filter(|_| source.quorum.is_none() && request.timeout.is_some())?;
    let left = until?.saturating_duration_since(context.now());
    if left < SHORTEST {
        return None;
    }
    let looked = async move {
        context.executor.sleep(left - (left / 10).min(Duration::from_secs(1))).await;
        let before = label.looks.fetch_add(1, Ordering::Relaxed);
        let _over = OnDrop(label, |label| {
            label.looks.fetch_sub(1, Ordering::Relaxed);
        });
        // Without an answer the error says what it would say otherwise.
        if before < MOST_LOOKS
            && let Ok(text) = said(source, request, last).await
        {
            last.set_blocked(text);
        }
    };
    Some(looked.boxed())
}

async fn said(source: &HoldSource, request: &Request, last: &LastFailure) -> Result<String, Failure> {
    let context = &source.context;
    let seen = context.scripts().seen(&request.keys, LISTED).await?;
    let clients = clients_of(seen.holds.iter().map(|hold| &*hold.id), &[]);
    let labels = Labels::read(context, clients).await;
    let own = last.attempt().map(|n| AttemptId { client: context.client, n });
    Ok(text(&seen, &labels, own, request.keys.kind.has_queue()))
}

fn text(seen: &Seen, labels: &Labels, own: Option<AttemptId>, has_queue: bool) -> String {
    let holder = |SeenHold { id, left, .. }: &SeenHold| {
        let client = AttemptId::client_of(id);
        let name = match (labels.get(client), client) {
            // As names are, because anybody who may write to the server may have written it.
            (Some(label), _) => format!("{label:?}"),
            (None, Some(client)) => format!("client {client}"),
            (None, None) => "another program".to_owned(),
        };
        let left = Duration::from_millis(left.unwrap_or_default().as_millis().try_into().unwrap_or(u64::MAX));
        format!("{name} (for {left:?}, unless it is renewed)")
    };
    let mut holders: Vec<String> = seen.holds.iter().take(MOST_NAMED).map(holder).collect();
    if seen.holds.len() > MOST_NAMED {
        holders.push("others".to_owned());
    }
    let held = if holders.is_empty() { "not held".to_owned() } else { format!("held by {}", holders.join(", ")) };
    if !has_queue {
        return held;
    }
    match own.and_then(|own| seen.queue.iter().position(|ticket| ticket.id == own)) {
        Some(0) => format!("{held}; next in the queue"),
        Some(before) => format!("{held}; {before} before it in the queue"),
        None => format!("{held}; {} in the queue", seen.waiters),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::protocol::ticket::{Claim, Ticket};
    use crate::protocol::token::Token;

    #[test]
    fn it_names_holders_and_place() {
        let id = |client, n| AttemptId { client: Uuid::from_u128(client), n };
        let of = |id, left| SeenHold { id, token: Token::NONE, left: Some(left), claim: Claim::Tokens(1) };
        let hold = |client| of(id(client, 1).text(), Duration::from_millis(8_240));
        let ticket =
            |client, n| Ticket { id: id(client, n), lease: Duration::from_secs(1), claim: Claim::Tokens(1), rest: 0 };
        let labels = Labels::of(vec![Uuid::from_u128(1)], vec!["web-7".to_owned()]);
        let queue = vec![ticket(3, 1), ticket(2, 4), ticket(2, 5)];
        let seen = Seen { holds: vec![hold(1)], limit: None, waiters: 3, queue };
        let said = |own| text(&seen, &labels, own, true);
        let held = "held by \"web-7\" (for 8.24s, unless it is renewed)";
        assert_eq!(said(Some(id(2, 5))), format!("{held}; 2 before it in the queue"));
        assert_eq!(said(Some(id(3, 1))), format!("{held}; next in the queue"));
        // A member of a cohort, whose ticket another member has asked for.
        assert_eq!(said(None), format!("{held}; 3 in the queue"));
        let seen = Seen { holds: vec![], ..seen };
        assert_eq!(text(&seen, &labels, None, true), "not held; 3 in the queue");
        assert_eq!(text(&seen, &labels, None, false), "not held");
        let foreign = of("of somebody else".to_owned(), Duration::from_micros(1_001_900));
        let seen = Seen { holds: vec![hold(2), foreign, hold(1), hold(1)], ..seen };
        let said = text(&seen, &labels, None, true);
        assert!(said.starts_with("held by client 00000000-0000-0000-0000-000000000002 (for 8.24s,"), "{said}");
        let rest = ", another program (for 1.001s, unless it is renewed), \"web-7\" (for 8.24s, unless it is renewed)";
        assert!(said.ends_with(&format!("{rest}, others; 3 in the queue")), "{said}");
    }
}
