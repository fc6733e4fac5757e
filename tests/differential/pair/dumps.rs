//! Everything that either server has.

use crate::support::dump::DUMP;
use std::collections::BTreeMap;

use bowline::embedded::Content;

use super::Pair;
use crate::agree::{Key, Stored};

impl Pair {
    pub(super) fn real_dump(&mut self) -> BTreeMap<Vec<u8>, Key> {
        type Row = (Vec<u8>, String, i64, Vec<Vec<u8>>);
        let rows: Vec<Row> = redis::cmd("EVAL").arg(DUMP).arg(0).query(&mut self.connection).unwrap();
        let key = |(key, kind, expires, items): Row| {
            let pairs = || items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            let stored = match kind.as_str() {
                "string" => Stored::String(items[0].clone()),
                "list" => Stored::List(items),
                "hash" => Stored::Hash(pairs().collect()),
                "zset" => Stored::SortedSet(pairs().map(|(member, score)| (member, float(&score))).collect()),
                other => panic!("{other}"),
            };
            (key, Key { stored, expires: (expires >= 0).then_some(expires) })
        };
        rows.into_iter().map(key).collect()
    }

    pub(super) fn embedded_dump(&self) -> BTreeMap<Vec<u8>, Key> {
        let dump = self.embedded.dump().into_iter();
        dump.map(|(key, entry)| {
            let stored = match entry.content {
                Content::String(text) => Stored::String(text),
                Content::List(items) => Stored::List(items),
                Content::Hash(fields) => Stored::Hash(fields.into_iter().collect()),
                Content::SortedSet(members) => Stored::SortedSet(members.into_iter().collect()),
                other => panic!("{other:?}"),
            };
            (key, Key { stored, expires: entry.expires.map(|at| at.as_millis().try_into().unwrap()) })
        })
        .collect()
    }
}

fn float(text: &[u8]) -> f64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}
