//! Who is in the way of an acquisition whose time is nearly over, for its error.

use std::fmt::Write;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::acquire::request::Request;
use crate::acquire::wait::LastFailure;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, clients_of, labels_of};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::{Failure, Seen};
use crate::protocol::limits::MAX_LISTED;

/// The most holders that an error names.
const MOST_NAMED: usize = 3;

/// Asks once, when nine tenths of the time until `until` are over. `None`: the client has no label, or the caller has
/// chosen no timeout.
pub(crate) fn look<'a>(
    source: &'a HoldSource,
    request: &'a Request,
    (until, last): (Option<Instant>, &'a LastFailure),
) -> Option<BoxFuture<'a, ()>> {
    let context = &source.context;
    let is_asked = context.label.is_some() && source.quorum.is_none() && request.timeout.is_some();
    let left = until.filter(|_| is_asked)?.saturating_duration_since(context.now());
    let looked = async move {
        context.executor.sleep(left / 10 * 9).await;
        // Without an answer the error says what it would say otherwise.
        if let Ok(text) = said(source, request, last).await {
            last.set_blocked(text);
        }
    };
    Some(looked.boxed())
}

async fn said(source: &HoldSource, request: &Request, last: &LastFailure) -> Result<String, Failure> {
    let (context, scripts) = (&source.context, source.context.scripts());
    let seen = scripts.seen(&request.keys, MAX_LISTED).await?;
    let clients = clients_of(seen.holds.iter().map(|hold| &*hold.0), &seen.queue);
    let labels = Labels::read_once(scripts, &labels_of(context), clients).await?;
    let own = last.attempt().map(|n| AttemptId { client: context.client, n });
    Ok(text(&seen, &labels, own))
}

fn text(seen: &Seen, labels: &Labels, own: Option<AttemptId>) -> String {
    let mut text = match seen.holds.len() {
        0 => "held by nobody".to_owned(),
        _ => "held by ".to_owned(),
    };
    for (n, (id, left)) in seen.holds.iter().take(MOST_NAMED).enumerate() {
        let client = AttemptId::client_of(id);
        let name = labels.get(client).unwrap_or_else(|| unlabelled(client));
        let comma = if n > 0 { ", " } else { "" };
        // Writing to a `String` does not fail.
        let _ = write!(text, "{comma}{name} (lease ends in {left:.1?} unless it is renewed)");
    }
    if seen.holds.len() > MOST_NAMED {
        let _ = write!(text, " and {} more", seen.holds.len() - MOST_NAMED);
    }
    let before = own.and_then(|own| seen.queue.iter().position(|ticket| ticket.id == own));
    let _ = match before {
        Some(before) => write!(text, "; {before} wait before this one"),
        None => write!(text, "; {} wait", seen.waiters),
    };
    text
}

fn unlabelled(client: Option<Uuid>) -> String {
    client.map_or_else(|| "another program".to_owned(), |client| format!("client {client}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::ticket::{Claim, Ticket};

    #[test]
    fn it_names_holders_and_place() {
        let id = |client, n| AttemptId { client: Uuid::from_u128(client), n };
        let hold = |client| (id(client, 1).text(), Duration::from_millis(8_240));
        let ticket =
            |client, n| Ticket { id: id(client, n), lease: Duration::from_secs(1), claim: Claim::Tokens(1), rest: 0 };
        let labels = Labels::of(vec![Uuid::from_u128(1)], vec!["web-7".to_owned()]);
        let queue = vec![ticket(3, 1), ticket(2, 4), ticket(2, 5)];
        let seen = Seen { holds: vec![hold(1)], waiters: 3, queue };
        let said = |own| text(&seen, &labels, own);
        let held = "held by web-7 (lease ends in 8.2s unless it is renewed)";
        assert_eq!(said(Some(id(2, 5))), format!("{held}; 2 wait before this one"));
        assert_eq!(said(Some(id(3, 1))), format!("{held}; 0 wait before this one"));
        // A member of a cohort, whose ticket another member has asked for.
        assert_eq!(said(None), format!("{held}; 3 wait"));
        let seen = Seen { holds: vec![], ..seen };
        assert_eq!(text(&seen, &labels, None), "held by nobody; 3 wait");
        let foreign = ("of somebody else".to_owned(), Duration::ZERO);
        let seen = Seen { holds: vec![hold(2), foreign, hold(1), hold(1), hold(1)], ..seen };
        let said = text(&seen, &labels, None);
        assert!(said.starts_with("held by client 00000000-0000-0000-0000-000000000002 (lease"), "{said}");
        assert!(said.contains(", another program (lease ends in 0.0ns unless it is renewed), web-7 ("), "{said}");
        assert!(said.ends_with(" and 2 more; 3 wait"), "{said}");
    }
}
