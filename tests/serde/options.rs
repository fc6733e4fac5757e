//! What is no `ConnectOptions`, and the errors that say so: they name the field, and show no secret.

use std::fs;

use bowline::ConnectOptions;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// A file that is removed.
fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, text).unwrap();
    file
}

/// The error of options, which shows no secret in any format.
fn error(options: Value) -> String {
    let text = serde_json::from_value::<ConnectOptions>(options.clone()).expect_err(&options.to_string()).to_string();
    assert!(!text.contains("s3cret") && !text.contains("4711"), "{text}");
    let as_toml = toml::to_string(&json!({ "redis": options })).unwrap();
    let message = toml::from_str::<Nested>(&as_toml).map(|_| ()).expect_err(&as_toml).message().to_owned();
    assert!(!message.contains("s3cret") && !message.contains("4711"), "{message}");
    text
}

#[derive(Deserialize)]
struct Nested {
    #[serde(rename = "redis")]
    _redis: ConnectOptions,
}

#[test]
fn wrong_options_are_errors_that_name_the_field_and_no_secret() {
    let url = "redis://alice:s3cret@h";
    for (options, says) in [
        (json!("redis://alice:s3cret@h:port"), "invalid input"),
        (json!({ "url": "s3cret" }), "invalid input"),
        (json!({ "username": "alice" }), "missing field `url`"),
        (json!({ "url": url, "pasword": "s3cret" }), "unknown field `pasword`, expected one of `url`, `username`"),
        (json!({ "url": url, "password": 4711 }), "connect: invalid input: password must be a text"),
        (json!({ "url": url, "password": ["s3cret"] }), "password must be a text"),
        (json!({ "url": { "s3cret": 4711 } }), "url must be a text"),
        (json!({ "url": url, "client_key": true }), "client_key must be a text"),
        (json!({ "url": "redis://h", "username": "alice" }), "needs a password"),
        (json!({ "url": url, "client_name": "my service" }), "the name of a client is made of"),
        (json!({ "url": url, "password": "s3cret", "password_file": "/a" }), "give either password or password_file"),
        (json!({ "url": url, "password_file": "/no/file" }), "password_file: cannot read \"/no/file\": No such file"),
        (json!({ "url": url, "ca_certificate_file": "/no/ca" }), "ca_certificate_file: cannot read \"/no/ca\""),
    ] {
        let error = error(options);
        assert!(error.contains(says), "{error} instead of {says}");
    }
    let error = serde_json::from_value::<ConnectOptions>(json!(7)).unwrap_err().to_string();
    assert_eq!(error, "invalid type: integer `7`, expected the URL of a server, or a table with `url`");
}

#[cfg(feature = "tls")]
#[test]
fn certificates_are_text_or_in_files() {
    let url = "rediss://h";
    let file = file("-----BEGIN CERTIFICATE-----\ns3cret\n");
    for (options, says) in [
        (json!({ "url": url, "ca_certificate": "s3cret" }), "a trusted certificate is not PEM: there is none"),
        (json!({ "url": url, "ca_certificate_file": file.path() }), "a trusted certificate is not PEM: an END line"),
        (json!({ "url": url, "client_certificate": "x" }), "client_certificate needs client_key"),
        (json!({ "url": url, "client_key_file": file.path() }), "client_key needs client_certificate"),
        (json!({ "url": "redis://h", "ca_certificate": "x" }), "a URL that asks for TLS"),
    ] {
        let error = error(options);
        assert!(error.contains(says), "{error} instead of {says}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn certificates_need_tls() {
    for name in ["ca_certificate", "client_certificate", "client_key"] {
        let error = error(json!({ "url": "redis://h", name: "s3cret" }));
        assert!(error.contains("certificates need the feature `tls`"), "{error}");
    }
}
