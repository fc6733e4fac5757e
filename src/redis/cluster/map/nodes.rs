//! What a node says of all nodes: its own id, and the config epochs of masters. Each failover and each slot that
//! changes its master gives the new master a greater one than any master had before. So of two masters that claim a
//! slot, the one with the greater config epoch is right. The current epoch of the cluster does not decide: it grows
//! when an election begins, and a node hears of it before it hears of the winner.

use std::collections::HashMap;

use crate::connection::Reply;

#[derive(Default)]
pub(in super::super) struct Nodes {
    own_id: Option<String>,
    /// The epochs by the ids of masters.
    epochs: HashMap<String, u64>,
}

impl Nodes {
    /// Reads the answer to `CLUSTER NODES`: one line for each node, with an id, an address, flags, the id of the
    /// master, two times and the epoch. Without the right to ask, a user gets no answer, and nothing is known.
    pub(in super::super) fn parse(nodes: &Reply) -> Self {
        let Reply::Bytes(nodes) = nodes else { return Self::default() };
        let mut known = Self::default();
        for line in String::from_utf8_lossy(nodes).lines() {
            let mut fields = line.split(' ');
            let (Some(id), Some(flags)) = (fields.next(), fields.nth(1)) else { continue };
            let has = |flag| flags.split(',').any(|other| other == flag);
            if has("myself") {
                known.own_id = Some(id.to_owned());
            }
            if let Some(Ok(epoch)) = fields.nth(3).map(str::parse).filter(|_| has("master")) {
                known.epochs.insert(id.to_owned(), epoch);
            }
        }
        known
    }

    pub(super) fn epoch(&self, id: &str) -> Option<u64> {
        self.epochs.get(id).copied()
    }

    pub(super) fn is_own(&self, id: &str) -> bool {
        self.own_id.as_deref() == Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_an_id_and_masters_have_epochs() {
        // Redis 7.0, and 6.2 without a hostname.
        let nodes = "aa 127.0.0.1:7001@17001,, myself,master - 0 1700000000000 7 connected 0-5460 [5461-<-bb]\n\
            bb 127.0.0.1:7002@17002 master,fail? - 0 0 3 disconnected 5461-10922\n\
            cc 127.0.0.1:7003@17003,host slave aa 0 0 7 connected\n\
            nothing\n";
        let known = Nodes::parse(&Reply::Bytes(nodes.as_bytes().to_vec()));
        assert_eq!(["aa", "bb", "cc", "nothing"].map(|id| known.epoch(id)), [Some(7), Some(3), None, None]);
        assert_eq!(["aa", "bb", "cc"].map(|id| known.is_own(id)), [true, false, false]);
        let unknown = Nodes::parse(&Reply::Nil);
        assert!(unknown.epoch("aa").is_none() && !unknown.is_own("aa"));
    }
}
