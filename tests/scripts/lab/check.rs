//! What must hold after each call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::Lab;
use super::dump::{Content, Dump};
use crate::support::memory::is_forever;

impl Lab {
    /// What must hold after every call, for every lock on the server.
    #[track_caller]
    pub(super) fn check(&mut self) {
        let whole = self.dump();
        let dump = &whole.keys;
        for (key, (expiry, content)) in dump {
            if self.wrong.contains(key) {
                continue;
            }
            assert!(*expiry > 0 || is_forever(key), "{key} has no TTL");
            match content {
                Content::Map(fields) if key.starts_with("p:sem:") || key.starts_with("p:rw:") => {
                    self.check_permits(&whole, key, fields, *expiry);
                }
                Content::Map(_) | Content::Scores(_)
                    if ["p:latch:", "p:barrier:", "p:entry:", "p:double:", "p:client:"]
                        .iter()
                        .any(|kind| key.starts_with(kind)) => {}
                Content::Scores(_) if key.ends_with("}:watchers") || key.ends_with("}:timeout") => {}
                Content::Map(fields) => {
                    assert_eq!(fields.len(), 1, "{key}: {fields:?}");
                    let stored = |hold: &String| hold.split(' ').all(|number| number.parse::<u64>().is_ok());
                    assert!(fields.values().all(stored), "{key}: {fields:?}");
                }
                Content::Scores(_) if key.ends_with("}:leases") => {
                    let permits = key.strip_suffix(":leases").unwrap();
                    assert!(self.wrong.contains(permits) || dump.contains_key(permits), "{key} without {permits}");
                }
                Content::Scores(tickets) => {
                    let queue = format!("{}:queue", key.strip_suffix(":tickets").unwrap());
                    if self.wrong.contains(&queue) {
                        continue;
                    }
                    let Some((_, Content::Items(list))) = dump.get(&queue) else { panic!("{key} without {queue}") };
                    let listed: BTreeSet<&String> = list.iter().collect();
                    assert_eq!(listed.len(), list.len(), "{queue} has a ticket twice: {list:?}");
                    assert_eq!(listed, tickets.keys().collect(), "list and zset differ");
                }
                Content::Items(_) if key.ends_with("}:queue") => {
                    let tickets = format!("{}:tickets", key.strip_suffix(":queue").unwrap());
                    assert!(dump.contains_key(&tickets), "{key} without {tickets}");
                }
                Content::Items(_) => {}
            }
        }
    }

    /// A hold is in the hash and has a lease; `used` is the sum of all; both keys outlive every lease.
    #[track_caller]
    fn check_permits(&self, dump: &Dump, key: &str, hash: &BTreeMap<String, String>, end: i64) {
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{key}: {hash:?}"));
        let held = hash.iter().filter(|(field, _)| *field != "used" && *field != "limit");
        let sum: u64 = held.clone().map(|(_, hold)| number(hold.split(' ').next().unwrap())).sum();
        assert_eq!(hash.get("used").map(|used| number(used)), Some(sum), "{key}: {hash:?}");
        let leases = format!("{key}:leases");
        if self.wrong.contains(&leases) {
            return;
        }
        match dump.keys.get(&leases) {
            Some((leases_end, Content::Scores(scores))) => {
                assert!(held.map(|(id, _)| id).eq(scores.keys()), "{key}: {hash:?} {scores:?}");
                let last = *scores.values().max().unwrap();
                let slack = i64::try_from(dump.took).unwrap() + 2;
                assert!(end + slack >= last && leases_end + slack >= last, "{key}: {end}, {leases_end}, {scores:?}");
            }
            None => assert!(sum == 0 && hash.contains_key("limit"), "{key} without leases: {hash:?}"),
            other => panic!("{other:?}"),
        }
    }
}

/// What is looked at around a call, in the lab of each primitive.
pub trait Around: Sized {
    fn lab(&mut self) -> &mut Lab;

    /// Runs the same call twice: the second, late copy changes nothing. Expiry times may have moved by `slack` ms.
    #[track_caller]
    fn twice<T>(&mut self, slack: u64, mut call: impl FnMut(&mut Self) -> T) -> (T, T) {
        let first = call(self);
        let before = self.lab().dump();
        let second = call(self);
        before.assert_same(&self.lab().dump(), slack);
        (first, second)
    }

    /// The call fails with the code, and nothing has changed.
    #[track_caller]
    fn assert_refused<T: Debug>(&mut self, code: &str, call: impl FnOnce(&mut Self) -> Result<T, String>) {
        let before = self.lab().dump();
        assert_eq!(call(self).unwrap_err(), code);
        before.assert_same(&self.lab().dump(), 0);
    }
}

impl Around for Lab {
    fn lab(&mut self) -> &mut Lab {
        self
    }
}
