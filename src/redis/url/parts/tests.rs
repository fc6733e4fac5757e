use super::*;
use crate::error::ErrorKind;

#[test]
fn schemes() {
    for (url, form, tls) in [
        ("redis://h", Form::Server, false),
        ("VALKEYS://h", Form::Server, true),
        ("redis-sentinel://h", Form::Sentinels, false),
        ("Valkeys-Sentinel://h", Form::Sentinels, true),
        ("valkey-cluster://h", Form::Cluster, false),
        ("REDISS-CLUSTER://h", Form::Cluster, true),
        #[cfg(unix)]
        ("unix:///s", Form::Socket, false),
        #[cfg(unix)]
        ("redis+unix:///s", Form::Socket, false),
    ] {
        let parts = UrlParts::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!((parts.form, parts.tls), (form, tls), "{url}");
    }
}

#[test]
fn an_address_counts_once_and_has_the_port_of_its_kind() {
    for (url, shown) in [
        ("redis://h:", "h:6379"),
        ("redis-cluster://a:1, a:1,[::1]", "a:1 [::1]:6379"),
        ("redis-sentinel://b-1.example,10.0.0.1:2,b-1.example:26379", "b-1.example:26379 10.0.0.1:2"),
    ] {
        let addresses = UrlParts::parse(url).unwrap().addresses;
        assert_eq!(addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), shown, "{url}");
    }
}

/// A comma in a password does not separate hosts.
#[test]
fn all_hosts_have_the_login_of_the_url() {
    for scheme in ["redis://", "redis-cluster://", "redis-sentinel://"] {
        let parts = UrlParts::parse(&format!("{scheme}alice:p,%40s%2Fs%3F@a/3")).unwrap();
        assert_eq!(parts.addresses.len(), 1, "{scheme}");
        assert_eq!((parts.login.username(), parts.login.password()), (Some("alice"), Some("p,@s/s?")), "{scheme}");
        assert_eq!(parts.login.db(), 3);
    }
    let parts = UrlParts::parse("redis-cluster://:p@a,b").unwrap();
    assert_eq!((parts.login.username(), parts.login.password(), parts.addresses.len()), (None, Some("p"), 2));
}

#[test]
fn wrong_urls_say_what_is_wrong_and_show_no_part_of_themselves() {
    for (url, says) in [
        ("redis-sentinel://alice:s3cret@h:99999?master=m", "port"),
        ("redis-sentinel://alice:s3cret@h:0?master=m", "port"),
        ("redis://alice:s3cret@h:0", "port"),
        ("redis-cluster://alice:s3cret@h,i:x", "port"),
        ("redis-sentinel://alice:s3cret@::1?master=m", "host is missing"),
        ("redis-sentinel://alice:s3cret@fe80::1?master=m", "[brackets]"),
        ("redis-sentinel://alice:s3cret@[nono]?master=m", "IPv6"),
        ("redis-sentinel://alice:s3cret@[::1?master=m", "IPv6"),
        ("redis-sentinel://alice:s3cret@[::1]5?master=m", "IPv6"),
        ("redis-sentinel://alice:s3cret@?master=m", "host is missing"),
        ("redis-sentinel://?master=m", "name the sentinels"),
        ("redis-sentinel://alice:s3cret@h,?master=m", "host is missing"),
        ("redis-cluster://alice:s3cret@h,,i", "names at least one node"),
        ("redis-sentinel://alice:s3cret@h h?master=m", "not a name or an address"),
        ("redis://alice:s3cret@h%2Ch", "not a name or an address"),
        ("redis-sentinel://alice:s3@cret@h?master=m", "%40"),
        ("redis-cluster://alice:s3cret@h,alice:s3cret@i", "%40"),
        ("redis-sentinel://alice:12/s3cret@h?master=m", "database"),
        ("redis-sentinel://alice:12?s3cret@h&master=m", "unknown parameter"),
        ("redis-sentinel://alice:s3cret@h#insecure", "#insecure"),
        ("redis-sentinel://alice:s3#cret@h", "%23"),
        ("redis-sentinel://h/-1?master=m", "database"),
        ("redis://h/-1", "database"),
        ("redis-sentinel://h/s3cret?master=m", "database"),
        ("redis-sentinel://h?master=m&master=s3cret", "twice"),
        ("unix:///s?db=0&db=1", "twice"),
        ("unix:///s?user=a&pass=s3cret&user=b", "twice"),
        ("redis-sentinel://h?master=m&tls=s3cret", "true or false"),
        ("redis-sentinel://h?master=m&protocol=s3cret", "resp3"),
        ("redis-sentinel://h?master=%FF", "UTF-8"),
        ("redis://h?master=m", "of a redis-sentinel:// URL"),
        ("s3cret", "redis-sentinel://"),
        ("http://alice:s3cret@h", "redis-cluster://"),
    ] {
        let error = UrlParts::parse(url).err().unwrap_or_else(|| panic!("{url} is taken"));
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(says), "{url}: {text}");
        assert!(!text.contains("s3") && !text.contains("alice"), "{text}");
    }
}

#[test]
fn a_url_of_one_server_names_one() {
    let error = UrlParts::parse("redis://a,b").unwrap().address().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("redis-cluster://"), "{error}");
}
