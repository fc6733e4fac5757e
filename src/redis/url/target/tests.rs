use super::*;
use crate::error::ErrorKind;
use crate::redis::login::Login;

fn shown(url: &str) -> String {
    Target::parse(url).unwrap().to_string()
}

#[test]
fn good_urls() {
    assert_eq!(shown("redis://127.0.0.1/"), "127.0.0.1:6379/0");
    assert_eq!(shown("redis://alice:s3cret@localhost:7000/3"), "localhost:7000/3");
    assert_eq!(shown("valkey://[::1]:7000?protocol=resp3"), "[::1]:7000/0");
    #[cfg(unix)]
    assert_eq!(shown("unix:///tmp/redis.sock?db=2&user=a&pass=s3cret"), "/tmp/redis.sock/2");
    let target = Target::parse("redis://alice:s%2F3@localhost").unwrap();
    assert_eq!(target.login().last(), Some(Login::new("alice", "s/3")));
    #[cfg(unix)]
    {
        let target = Target::parse("unix:///tmp/redis.sock?user=a&pass=").unwrap();
        assert_eq!(target.login().last(), Some(Login::new("a", "")));
    }
}

#[test]
fn bad_urls_are_invalid_input_and_show_no_part_of_themselves() {
    for url in [
        "",
        "alice:s3cret@host",
        "http://alice:s3cret@host",
        "redis://alice:s3cret@host:99999",
        "redis://alice:s3cret@host/s3cret",
        "redis://alice:12#s3cret@host",
        "redis://alice:12?s3cret@host",
        "redis://alice:12/s3cret@host",
        "redis://alice:s3cret@0.0.0.0",
        "redis://alice:s3cret@/",
        "redis://alice@host",
        "redis://host?protocol=s3cret",
        "rediss://alice:s3cret@host#insecure",
        "redis+unix://?pass=s3cret",
    ] {
        let error = Target::parse(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret") && !text.contains("alice"), "{text}");
    }
}

#[test]
fn an_error_of_a_url_says_what_to_write_instead() {
    for (url, instead) in [
        ("redis:///run/redis.sock", "unix:///path"),
        ("redis://", "host is missing"),
        ("redis://alice:p#w@host", "%23"),
        ("redis://:p#w@host:6379/0", "%23"),
        ("redis://:12#w@host", "%23"),
        ("redis://host?timeout=5", "protocol, and db, user and pass"),
        ("redis://host?timeout=5", "Config"),
        ("redis://host?db=2", "of a unix:// URL"),
        ("redis://host?user=a&pass=b", "of a unix:// URL"),
        ("redis://host?protocol=2", "the only protocol is resp3"),
    ] {
        let error = Target::parse(url).unwrap_err().to_string();
        assert!(error.contains(instead), "{url}: {error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_needs_the_feature() {
    let error = Target::parse("rediss://host").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("tls"));
}

#[test]
fn no_password_is_printed() {
    let target = Target::parse("redis://alice:s3cret@localhost:7000/3").unwrap();
    assert_eq!(format!("{target:?}"), "localhost:7000/3");
}
