use super::*;
use crate::error::ErrorKind;
use crate::redis::login::Login;
use crate::redis::url::address::Address;

fn shown(url: &str) -> Vec<String> {
    SentinelConfig::parse(url).unwrap().sentinels.iter().map(|target| target.address.to_string()).collect()
}

fn server(url: &str) -> Target {
    SentinelConfig::parse(url).unwrap().servers.at(Address::Tcp("s".to_owned(), 1)).unwrap()
}

#[test]
fn hosts() {
    assert_eq!(shown("redis-sentinel://a?master=m"), ["a:26379"]);
    assert_eq!(
        shown("valkey-sentinel://a:1,b-1.example:2,10.0.0.1/?master=m"),
        ["a:1", "b-1.example:2", "10.0.0.1:26379"]
    );
    assert_eq!(shown("redis-sentinel://[::1],[fe80::1]:7/3?master=m"), ["[::1]:26379", "[fe80::1]:7"]);
    assert_eq!(shown("redis-sentinel://a,a:26379,b?master=m"), ["a:26379", "b:26379"]);
}

#[test]
fn logins_are_those_of_the_servers_and_of_the_sentinels() {
    let url = "redis-sentinel://alice:p%40s%2Fs%3F@h:1/5?master=my%20master&sentinel_user=bob&sentinel_password=%26%2B+&protocol=resp3";
    let setup = SentinelConfig::parse(url).unwrap();
    assert_eq!(setup.master, "my master");
    let (server, sentinel) = (server(url), &setup.sentinels[0]);
    assert_eq!(server.login().last(), Some(Login::new("alice", "p@s/s?")));
    assert_eq!(sentinel.login().last(), Some(Login::new("bob", "&++")));
    assert_eq!((server.to_string(), sentinel.to_string()), ("s:1/5".to_owned(), "h:1/0".to_owned()));
    let without = SentinelConfig::parse("redis-sentinel://:pass@h?master=m&sentinel_password=").unwrap();
    assert_eq!(without.sentinels[0].login().last(), None, "the servers' password is not the sentinels'");
}

#[cfg(feature = "tls")]
#[test]
fn tls_of_the_servers_and_of_the_sentinels() {
    for (url, servers, sentinels) in [
        ("redis-sentinel://h?master=m", false, false),
        ("rediss-sentinel://h?master=m", true, true),
        ("redis-sentinel://h?master=m&tls=true", true, false),
        ("rediss-sentinel://h?master=m&sentinel_tls=false", true, false),
        ("rediss-sentinel://h?master=m&tls=false", false, true),
    ] {
        assert_eq!(server(url).tls.is_some(), servers, "{url}");
        assert_eq!(SentinelConfig::parse(url).unwrap().sentinels[0].tls.is_some(), sentinels, "{url}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_needs_the_feature() {
    for url in ["rediss-sentinel://h?master=m", "redis-sentinel://h?master=m&sentinel_tls=true"] {
        let error = SentinelConfig::parse(url).err().unwrap();
        assert!(error.to_string().contains("feature `tls`"), "{error}");
    }
}

#[test]
fn the_name_of_the_master_is_needed() {
    for url in ["redis-sentinel://alice:s3cret@h", "redis-sentinel://alice:s3cret@h/?master="] {
        let error = SentinelConfig::parse(url).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = format!("{error} {error:?}");
        assert!(text.contains("?master=") && !text.contains("s3") && !text.contains("alice"), "{text}");
    }
}

#[test]
fn a_user_of_the_sentinels_needs_a_password() {
    let error = SentinelConfig::parse("redis-sentinel://h?master=m&sentinel_user=alice").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("needs a password"), "{error}");
}
