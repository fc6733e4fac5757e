//! The config epochs of masters. Each failover and each slot that changes its master gives the new master a greater one
//! than any master had before. So of two masters that claim a slot, the one with the greater config epoch is right. The
//! current epoch of the cluster does not decide: it grows when an election begins, and a node hears of it before it
//! hears of the winner.

use std::collections::HashMap;

use crate::connection::Reply;

/// The epochs by the ids of masters.
#[derive(Default)]
pub(in super::super) struct Epochs(HashMap<String, u64>);

impl Epochs {
    /// Reads the answer to `CLUSTER NODES`: one line for each node, with an id, an address, flags, the id of the
    /// master, two times and the epoch. Without the right to ask, a user gets no answer, and no epoch is known.
    pub(in super::super) fn parse(nodes: &Reply) -> Self {
        let Reply::Bytes(nodes) = nodes else { return Self::default() };
        let line = |line: &str| {
            let mut fields = line.split(' ');
            let (id, flags) = (fields.next()?, fields.nth(1)?);
            let epoch = fields.nth(3)?.parse().ok()?;
            flags.split(',').any(|flag| flag == "master").then(|| (id.to_owned(), epoch))
        };
        Self(String::from_utf8_lossy(nodes).lines().filter_map(line).collect())
    }

    pub(super) fn of(&self, id: &str) -> Option<u64> {
        self.0.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_have_epochs() {
        // Redis 7.0, and 6.2 without a hostname.
        let nodes = "aa 127.0.0.1:7001@17001,, myself,master - 0 1700000000000 7 connected 0-5460 [5461-<-bb]\n\
            bb 127.0.0.1:7002@17002 master,fail? - 0 0 3 disconnected 5461-10922\n\
            cc 127.0.0.1:7003@17003,host slave aa 0 0 7 connected\n\
            nothing\n";
        let epochs = Epochs::parse(&Reply::Bytes(nodes.as_bytes().to_vec()));
        assert_eq!(["aa", "bb", "cc", "nothing"].map(|id| epochs.of(id)), [Some(7), Some(3), None, None]);
        assert_eq!(Epochs::parse(&Reply::Nil).of("aa"), None);
    }
}
