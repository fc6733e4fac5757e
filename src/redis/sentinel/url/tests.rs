use super::*;
use crate::error::ErrorKind;

fn shown(url: &str) -> Vec<String> {
    SentinelConfig::parse(url).unwrap().sentinels.iter().map(|target| target.address.to_string()).collect()
}

fn server(url: &str) -> Target {
    SentinelConfig::parse(url).unwrap().servers.at(Address::Tcp("s".to_owned(), 1)).unwrap()
}

#[test]
fn schemes() {
    for url in ["redis-sentinel://h?master=m", "REDIS-Sentinel://h", "valkeys-sentinel://", "rediss-sentinel://#"] {
        assert!(is_of_sentinels(url), "{url}");
    }
    for url in ["redis://h?master=m", "rediss://h", "sentinel://h", "redis-cluster://h", "redis-sentinel", ""] {
        assert!(!is_of_sentinels(url), "{url}");
    }
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
    assert_eq!((server.login().username(), server.login().password()), (Some("alice"), Some("p@s/s?")));
    assert_eq!((sentinel.login().username(), sentinel.login().password()), (Some("bob"), Some("&++")));
    assert_eq!((server.to_string(), sentinel.to_string()), ("s:1/5".to_owned(), "h:1/0".to_owned()));
    let without = SentinelConfig::parse("redis-sentinel://:pass@h?master=m&sentinel_password=").unwrap();
    assert_eq!(without.sentinels[0].login().password(), None, "the servers' password is not the sentinels'");
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
fn wrong_urls_say_what_is_wrong_and_show_no_part_of_themselves() {
    for (url, says) in [
        ("redis-sentinel://alice:s3cret@h", "?master="),
        ("redis-sentinel://alice:s3cret@h/?master=", "?master="),
        ("redis-sentinel://alice:s3cret@h:99999?master=m", "port"),
        ("redis-sentinel://alice:s3cret@h:0?master=m", "port"),
        ("redis-sentinel://alice:s3cret@h:x?master=m", "port"),
        ("redis-sentinel://alice:s3cret@h:?master=m", "port"),
        ("redis-sentinel://alice:s3cret@::1?master=m", "host is missing"),
        ("redis-sentinel://alice:s3cret@fe80::1?master=m", "[brackets]"),
        ("redis-sentinel://alice:s3cret@[nono]?master=m", "IPv6"),
        ("redis-sentinel://alice:s3cret@[::1?master=m", "without its ]"),
        ("redis-sentinel://alice:s3cret@[::1]5?master=m", ":port"),
        ("redis-sentinel://alice:s3cret@?master=m", "host is missing"),
        ("redis-sentinel://?master=m", "host is missing"),
        ("redis-sentinel://alice:s3cret@h,?master=m", "host is missing"),
        ("redis-sentinel://alice:s3cret@h,,i?master=m", "host is missing"),
        ("redis-sentinel://alice:s3cret@h h?master=m", "not a name or an address"),
        ("redis-sentinel://alice@h?master=m", "needs a password"),
        ("redis-sentinel://h?master=m&sentinel_user=alice", "needs a password"),
        ("redis-sentinel://alice:s3@cret@h?master=m", "%40"),
        ("redis-sentinel://alice:12/s3cret@h?master=m", "database"),
        ("redis-sentinel://alice:12?s3cret@h&master=m", "unknown parameter"),
        ("redis-sentinel://alice:s3cret@h#insecure", "#fragment"),
        ("redis-sentinel://h/-1?master=m", "database"),
        ("redis-sentinel://h/s3cret?master=m", "database"),
        ("redis-sentinel://h?master=m&master=s3cret", "twice"),
        ("redis-sentinel://h?master=m&tls=s3cret", "true or false"),
        ("redis-sentinel://h?master=m&protocol=s3cret", "resp3"),
        ("redis-sentinel://h?master=%FF", "UTF-8"),
        ("redis://h?master=m", "redis-sentinel://"),
        ("s3cret", "redis-sentinel://"),
    ] {
        let error = SentinelConfig::parse(url).err().unwrap_or_else(|| panic!("{url} is taken"));
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(says), "{url}: {text}");
        assert!(!text.contains("s3") && !text.contains("alice"), "{text}");
    }
}
