//! The questions to a sentinel, and how its answers are read.

use ::redis::{Cmd, cmd};

use super::super::address_map::AddressMap;
use super::super::dial::checks::field;
use super::super::failure::Failure;
use super::super::url::address::Address;
use super::super::url::target::Target;
use super::board::{Named, Other, SentinelAnswer};
use crate::connection::{ConnectionError, Reply};
use crate::error::ErrorKind;

/// The channel on which a sentinel announces another master.
pub(super) const SWITCHED: &str = "+switch-master";

fn sentinel(what: &str, master: &str) -> Cmd {
    let mut command = cmd("SENTINEL");
    command.arg(what).arg(master);
    command
}

/// The question for a full answer. The epoch comes first. If the address changes between the two, the new address gets
/// the old epoch, which is harmless.
pub(super) fn full(master: &str) -> [Cmd; 2] {
    [sentinel("MASTER", master), address(master)]
}

/// The question between two full ones. It is cheap, and its answer reports a new master earlier than the message does.
pub(super) fn address(master: &str) -> Cmd {
    sentinel("GET-MASTER-ADDR-BY-NAME", master)
}

pub(super) fn others(master: &str) -> Cmd {
    sentinel("SENTINELS", master)
}

pub(super) fn id() -> Cmd {
    let mut command = cmd("SENTINEL");
    command.arg("MYID");
    command
}

type Replied = Result<Reply, ConnectionError>;

/// Reads an address, and where it is reached. `None`: the sentinel watches no such master.
pub(super) fn read_address(reply: &Reply, announced: &AddressMap) -> Option<Address> {
    let Reply::Array(items) = reply else { return None };
    match &items[..] {
        [Reply::Bytes(host), Reply::Bytes(port)] => {
            let port = std::str::from_utf8(port).ok()?.parse().ok()?;
            let (host, port) = announced.reached(String::from_utf8(host.clone()).ok()?, port);
            Some(Address::Tcp(host, port))
        }
        _ => None,
    }
}

/// Reads the replies to [`full`].
pub(super) fn read_full(
    [master, address]: [Replied; 2],
    announced: &AddressMap,
) -> Result<SentinelAnswer, ConnectionError> {
    let Some(address) = read_address(&address?, announced) else { return Ok(SentinelAnswer::Unknown) };
    let epoch = field(&master?, "config-epoch").and_then(|epoch| epoch.parse().ok());
    // A sentinel that knows the address also knows the epoch.
    let epoch = epoch.ok_or_else(|| ConnectionError::refused("ERR SENTINEL MASTER has no config-epoch"))?;
    Ok(SentinelAnswer::Master(Named { address, epoch }))
}

/// Reads a list of sentinels. Entries that cannot be read are left out.
pub(super) fn read_others(reply: &Reply, announced: &AddressMap) -> Vec<Other> {
    let Reply::Array(items) = reply else { return Vec::new() };
    let read = |item| {
        let (id, host, port) = (field(item, "runid")?, field(item, "ip")?, field(item, "port")?.parse().ok()?);
        let (host, port) = announced.reached(host, port);
        (!id.is_empty()).then_some(Other { id, host, port })
    };
    items.iter().filter_map(read).collect()
}

/// Checks by the reply to `HELLO` that this is a sentinel.
pub(super) fn check(hello: &Reply, at: &Target) -> Result<(), Failure> {
    match field(hello, "mode").as_deref() {
        Some("sentinel") => Ok(()),
        _ => Err(Failure::Unsupported(format!(
            "{} is a server and not a sentinel; name the sentinels in the URL, or use redis:// for a server without them",
            at.address
        ))),
    }
}

/// Marks the refusal as one of a sentinel, whose user is not that of the servers.
pub(super) fn refused(refusal: ConnectionError, at: &Target) -> Failure {
    let code = if let ConnectionError::Refused { code, .. } = &refusal { &**code } else { "" };
    let reason = match code {
        "WRONGPASS" => "the sentinels' user or password is wrong: see sentinel_user and sentinel_password".to_owned(),
        "NOAUTH" => "the sentinel asks for a password; add sentinel_password to the URL".to_owned(),
        "NOPERM" => "the sentinels' user lacks a right; docs/acl.md lists those that bowline needs".to_owned(),
        _ => refusal.to_string(),
    };
    match refusal.kind() {
        ErrorKind::Unavailable | ErrorKind::Closed => Failure::Io(reason),
        _ => Failure::Explained(refusal, format!("sentinel {}: {reason}", at.address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Reply {
        Reply::Bytes(text.as_bytes().to_vec())
    }

    fn list(texts: &[&str]) -> Reply {
        Reply::Array(texts.iter().map(|text| bytes(text)).collect())
    }

    #[test]
    fn addresses_and_epochs() {
        let address = || Ok(list(&["::1", "7000"]));
        let master = |epoch| Ok(list(&["name", "m", "config-epoch", epoch]));
        let named = Named { address: Address::Tcp("::1".to_owned(), 7000), epoch: 12 };
        assert_eq!(read_full([master("12"), address()], &AddressMap::default()), Ok(SentinelAnswer::Master(named)));
        let unknown = Err(ConnectionError::refused("ERR No such master with that name"));
        assert_eq!(read_full([unknown.clone(), Ok(Reply::Nil)], &AddressMap::default()), Ok(SentinelAnswer::Unknown));
        assert_eq!(
            read_full([unknown.clone(), address()], &AddressMap::default()),
            unknown.map(|_| SentinelAnswer::Unknown)
        );
        assert!(read_full([master("x"), address()], &AddressMap::default()).is_err());
        let denied = || Err(ConnectionError::refused("NOPERM no"));
        assert_eq!(read_full([master("1"), denied()], &AddressMap::default()).unwrap_err().kind(), ErrorKind::Denied);
        for reply in [Reply::Nil, list(&["h"]), list(&["h", "x"]), list(&["h", "99999"])] {
            assert_eq!(read_address(&reply, &AddressMap::default()), None);
        }
    }

    /// What follows the failover must not be said under the epoch before it.
    #[test]
    fn the_epoch_is_asked_for_before_the_address() {
        let words = |command: &Cmd| String::from_utf8(command.get_packed_command()).unwrap();
        let [first, second] = full("m").each_ref().map(words);
        assert!(first.contains("MASTER\r\n") && second.contains("GET-MASTER-ADDR-BY-NAME"), "{first} {second}");
    }

    #[test]
    fn a_refusal_says_that_it_is_of_a_sentinel() {
        let at = Target::parse("redis://h:1").unwrap();
        for (line, says) in [
            ("WRONGPASS no", "see sentinel_user and sentinel_password"),
            ("NOAUTH no", "add sentinel_password to the URL"),
            ("NOPERM no", "the sentinels' user lacks a right"),
            ("ERR what", "ERR what"),
        ] {
            let failure = refused(ConnectionError::refused(line), &at);
            let Failure::Explained(_, reason) = &failure else { panic!("{failure:?}") };
            assert!(reason.starts_with("sentinel h:1: ") && reason.contains(says), "{reason}");
        }
        let lost = refused(ConnectionError::Unknown("lost".to_owned()), &at);
        assert!(matches!(&lost, Failure::Io(reason) if reason.contains("lost")), "{lost:?}");
    }

    #[test]
    fn other_sentinels() {
        let entry = |id, port| list(&["name", "x", "ip", "10.0.0.2", "port", port, "runid", id]);
        let listed = Reply::Array(vec![entry("a", "1"), entry("", "2"), entry("c", "x"), Reply::Nil]);
        assert_eq!(
            read_others(&listed, &AddressMap::default()),
            [Other { id: "a".to_owned(), host: "10.0.0.2".to_owned(), port: 1 }]
        );
        assert_eq!(read_others(&Reply::Nil, &AddressMap::default()), []);
    }
}
