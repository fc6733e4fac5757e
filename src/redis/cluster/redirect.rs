//! Where a call goes next, by the answer of a node.
//!
//! | answer | was the script executed | what follows |
//! |---|---|---|
//! | `MOVED` | no | the call is sent to the master that the answer names, and the map is read anew |
//! | `ASK` | no | this call is sent to the node that the answer names, behind an `ASKING`; the map stays |
//! | `TRYAGAIN` | no | the slot is moving, and the keys are at two nodes: the call is sent again after a pause |
//! | `CLUSTERDOWN` | no | the map is read anew, and the call is sent again after a pause |
//! | `LOADING`, `MASTERDOWN` | no | as `CLUSTERDOWN` |
//! | the script met a key that the node does not have | in part | the outcome is unknown, and the caller decides |
//! | anything else | as for one server | it is the answer |

use super::host::Host;
use crate::connection::ConnectionError;

/// Where a call goes next, after a node has refused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Another master owns the slot. `None`: the answer does not contain its address.
    Moved(Option<Host>),
    /// The keys of the call are at a node that is taking the slot over.
    Ask(Option<Host>),
    /// The same node, later.
    Later,
    /// The same node, later. The map may be old.
    Down,
    /// The script stopped half-way, because a key had moved to another node.
    HalfWay,
}

impl Redirect {
    /// Reads the refusal of the node `answered`. `None` if it is the final answer to the call.
    pub(super) fn of(refusal: &ConnectionError, answered: &Host) -> Option<Self> {
        let ConnectionError::Refused { code, message } = refusal else { return None };
        // `MOVED <slot> <host>:<port>`. `ASK` has the same form.
        let host = || message.split(' ').nth(1).and_then(|text| Host::parse(text, answered));
        match code.as_str() {
            "MOVED" => Some(Self::Moved(host())),
            "ASK" => Some(Self::Ask(host())),
            "TRYAGAIN" => Some(Self::Later),
            "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" => Some(Self::Down),
            _ if message.contains("non local key") => Some(Self::HalfWay),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Redirect> {
        Redirect::of(&ConnectionError::refused(line), &Host::new("10.0.0.9", 7000))
    }

    #[test]
    fn redirections_name_a_node() {
        let host = Host::new("127.0.0.1", 7002);
        assert_eq!(of("MOVED 3999 127.0.0.1:7002"), Some(Redirect::Moved(Some(host.clone()))));
        assert_eq!(of("ASK 3999 127.0.0.1:7002"), Some(Redirect::Ask(Some(host))));
        assert_eq!(of("MOVED 3999 :7002"), Some(Redirect::Moved(Some(Host::new("10.0.0.9", 7002)))));
        assert_eq!(of("MOVED 3999 ?:7002"), Some(Redirect::Moved(None)));
        assert_eq!(of("MOVED"), Some(Redirect::Moved(None)));
    }

    #[test]
    fn refusals_that_pass() {
        assert_eq!(of("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirect::Later));
        for line in [
            "CLUSTERDOWN The cluster is down",
            "CLUSTERDOWN Hash slot not served",
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ] {
            assert_eq!(of(line), Some(Redirect::Down), "{line}");
        }
    }

    /// The messages of Redis 6.2 and 7.0 and Valkey 9.1.
    #[test]
    fn a_script_that_stopped_half_way() {
        for line in [
            "ERR Error running script (call to f_0123): @user_script:7: @user_script: 7: Lua script attempted to access a non local key in a cluster node",
            "ERR Script attempted to access a non local key in a cluster node script: 0123, on @user_script:7.",
            "ERR Script attempted to access a non local key in a cluster node script: on @user_script:7.",
        ] {
            assert_eq!(of(line), Some(Redirect::HalfWay), "{line}");
        }
    }

    #[test]
    fn other_answers_stand() {
        for line in [
            "READONLY You can't write against a read only replica.",
            "NOREPLICAS Not enough good replicas to write.",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "CROSSSLOT Keys in request don't hash to the same slot",
            "ERR unknown command",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(Redirect::of(&ConnectionError::Closed, &Host::new("a", 1)), None);
    }
}
