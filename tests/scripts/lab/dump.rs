//! Everything in the server, at one moment.

use crate::support::dump::DUMP;
use std::collections::BTreeMap;

use super::Lab;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Items(Vec<String>),
    Map(BTreeMap<String, String>),
    Scores(BTreeMap<String, i64>),
}

type Keys = BTreeMap<String, (i64, Content)>;

/// Everything in the server.
#[derive(Clone, Debug)]
pub struct Dump {
    pub(super) keys: Keys,
    /// In ms: a key's TTL and the clock are not read in the same instant, so its expiry is known this well.
    pub(super) took: u64,
    /// The leases that were those of sole holds, and are known as well as an expiry is.
    short: Vec<String>,
}

impl Dump {
    /// The same, but for expiry times and scores that differ by up to `slack` ms.
    #[track_caller]
    pub fn assert_same(&self, other: &Self, slack: u64) {
        let expiry_slack = slack + self.took + other.took + 2;
        let names = |dump: &Self| dump.keys.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(other));
        for (key, (expiry, content)) in &self.keys {
            let (other_expiry, other_content) = &other.keys[key];
            assert!(expiry.abs_diff(*other_expiry) <= expiry_slack, "{key} expires at {expiry}, {other_expiry}");
            match (content, other_content) {
                (Content::Scores(a), Content::Scores(b)) => {
                    assert!(a.keys().eq(b.keys()), "{key}: {a:?} {b:?}");
                    let short = self.short.contains(key) || other.short.contains(key);
                    let slack = if short { expiry_slack } else { slack };
                    for (ticket, score) in a {
                        assert!(score.abs_diff(b[ticket]) <= slack, "{ticket} expires at {score}, {}", b[ticket]);
                    }
                }
                (a, b) => assert_eq!(a, b, "{key}"),
            }
        }
    }
}

impl Lab {
    pub fn dump(&mut self) -> Dump {
        type Row = (String, String, i64, Vec<String>);
        let start = self.now();
        let rows: Vec<Row> = redis::cmd("EVAL").arg(DUMP).arg(0).query(&mut self.connection).unwrap();
        // A clock that was set back meanwhile is as far from the start.
        let took = self.now().abs_diff(start);
        let keys = rows
            .into_iter()
            .map(|(key, kind, expiry, items)| {
                let content = match kind.as_str() {
                    "hash" => Content::Map(pairs(&items).collect()),
                    "zset" => {
                        Content::Scores(pairs(&items).map(|(ticket, at)| (ticket, at.parse().unwrap())).collect())
                    }
                    _ => Content::Items(items),
                };
                (key, (expiry, content))
            })
            .collect();
        let (keys, short) = in_full(keys);
        Dump { keys, took, short }
    }
}

/// A sole hold of permits is stored short. It is the same as one that is stored in full.
fn in_full(mut keys: Keys) -> (Keys, Vec<String>) {
    let mut leases = Keys::new();
    for (key, (expiry, content)) in &mut keys {
        let Content::Map(fields) = content else { continue };
        let of_permits = (key.starts_with("p:sem:") || key.starts_with("p:rw:")) && fields.len() == 1;
        let Some((id, hold)) = fields.iter().next().filter(|(id, _)| of_permits && id.contains(':')) else { continue };
        let scores = Content::Scores([(id.clone(), *expiry)].into());
        let units = hold.split(' ').next().unwrap().to_owned();
        leases.insert(format!("{key}:leases"), (*expiry, scores));
        fields.insert("used".to_owned(), units);
    }
    // What is stored wins: then it was not short.
    let short = leases.keys().filter(|leases| !keys.contains_key(*leases)).cloned().collect();
    leases.append(&mut keys);
    (leases, short)
}

fn pairs(items: &[String]) -> impl Iterator<Item = (String, String)> {
    items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()))
}
