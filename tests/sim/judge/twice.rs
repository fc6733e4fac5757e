//! I10: the same call once more changes nothing.
//!
//! At the same instant, so that every refreshed expiry is the same too. What may differ: tickets that had expired may
//! be dropped a few at a time; the first call may take permits beside holds that are over, and the second one end
//! those; with a free lock and waiters that cannot be told, each call tries them again, and each try reserves a token,
//! and lets the keys of permits live for its lease. A call that found no holder may have promoted a ticket of the very
//! same attempt id, left by a late copy of its request.

use std::time::Duration;

use bowline::embedded::Content;
use bowline::{Call, Reply, wire};

use super::grants::{arg, verb};
use super::view::{Dump, in_full, locks, queue, view};

/// What of a dump counts.
fn essence(dump: &Dump, now_ms: f64) -> Dump {
    let mut dump = dump.clone();
    for lock in locks(&dump) {
        dump.extend(in_full(&dump, &lock).unwrap_or_default());
        end_expired(&mut dump, &lock, now_ms);
        let seen = view(&dump, &lock);
        let unreachable = seen.fitting(Duration::from_millis(now_ms as u64)).next().is_some();
        let sound = queue(&dump, &lock).is_some();
        let (list, set) = (format!("{lock}:queue"), format!("{lock}:tickets"));
        if unreachable {
            dump.remove(&format!("{lock}:fence"));
            for key in [lock.clone(), format!("{lock}:leases")] {
                dump.entry(key).and_modify(|entry| entry.expires = None);
            }
        }
        if !sound || !seen.queue.iter().any(|ticket| ticket.expires_ms > now_ms) {
            dump.remove(&list);
            dump.remove(&set);
            continue;
        }
        let live: Vec<&str> =
            seen.queue.iter().filter(|ticket| ticket.expires_ms > now_ms).map(|ticket| &*ticket.id).collect();
        let lives = |ticket: &[u8]| live.contains(&super::view::id_of(std::str::from_utf8(ticket).unwrap()));
        if let Some(Content::List(tickets)) = dump.get_mut(&list).map(|entry| &mut entry.content) {
            tickets.retain(|ticket| lives(ticket));
        }
        if let Some(Content::SortedSet(tickets)) = dump.get_mut(&set).map(|entry| &mut entry.content) {
            tickets.retain(|(ticket, _)| lives(ticket));
        }
    }
    dump
}

/// Removes the permits whose leases are over.
fn end_expired(dump: &mut Dump, lock: &str, now_ms: f64) {
    let Some(Content::SortedSet(leases)) = dump.get_mut(&format!("{lock}:leases")).map(|entry| &mut entry.content)
    else {
        return;
    };
    let mut over = Vec::new();
    leases.retain(|(id, ends)| {
        let lives = *ends >= now_ms.floor();
        over.extend((!lives).then(|| id.clone()));
        lives
    });
    let Some(Content::Hash(fields)) = dump.get_mut(lock).map(|entry| &mut entry.content) else { return };
    let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<u64>().unwrap();
    let units = |hold: &[u8]| number(hold.split(|byte| *byte == b' ').next().unwrap());
    let ended: u64 = fields.iter().filter(|(id, _)| over.contains(id)).map(|(_, hold)| units(hold)).sum();
    fields.retain(|(id, _)| !over.contains(id));
    for (_, used) in fields.iter_mut().filter(|(field, _)| field == b"used") {
        *used = number(used).saturating_sub(ended).to_string().into_bytes();
    }
}

pub fn word(reply: &Reply) -> &str {
    match reply {
        // A token and the clock.
        Reply::Bytes(bytes) if bytes.contains(&b' ') => "GRANTED",
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
        Reply::Array(items) => items.first().filter(|item| matches!(item, Reply::Bytes(_))).map_or("", word),
        Reply::Integer(0) => "NOT_HELD",
        Reply::Integer(1) => "RELEASED",
        Reply::Integer(_) => "GRANTED",
        _ => "",
    }
}

/// The second answer says the same, or that the first has done it.
fn answers(verb: &str, first: &Reply, second: &Reply) -> bool {
    match (verb, word(first), word(second)) {
        ("release", "RELEASED" | "GRANTED", "NOT_HELD") => true,
        // The first copy may have found the rest of a queue and read the clock. The second one finds no queue.
        ("release", "NOT_HELD", "NOT_HELD") => match (first, second) {
            (Reply::Array(first), Reply::Array(second)) => first[..2] == second[..2],
            _ => false,
        },
        ("force_release", "RELEASED", "NOT_HELD") => true,
        ("cancel", "CANCELLED" | "RELEASED", "GONE") => true,
        // The blocking lease may be the caller's own, which was renewed.
        ("heartbeat", ..) => match (first, second) {
            (Reply::Array(first), Reply::Array(second)) => first[2..] == second[2..],
            _ => false,
        },
        _ => first == second,
    }
}

pub fn check(call: &Call<'_>, replies: (&Reply, &Reply), dumps: (&Dump, &Dump), now_ms: f64) -> Option<String> {
    let (first, second) = (&wire::in_full(replies.0.clone()), &wire::in_full(replies.1.clone()));
    let script = call.script.name();
    let held_now = || view(dumps.0, call.keys[0]).hold(arg(call, 0)).is_some();
    if word(first) == "NOT_HELD" && held_now() {
        return None;
    }
    if !answers(verb(call), first, second) {
        return Some(format!("I10 {script} answered {first:?}, and {second:?} to the same once more"));
    }
    let (once, twice) = (essence(dumps.0, now_ms), essence(dumps.1, now_ms));
    let differs = |key: &&String| once.get(*key) != twice.get(*key);
    let key = once.keys().chain(twice.keys()).find(differs)?;
    Some(format!("I10 {script} done twice: {key} was {:?} and became {:?}", once.get(key), twice.get(key)))
}
