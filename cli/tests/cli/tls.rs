//! TLS with a real server: each option for it, and what is said if one is wrong.

use std::fs;

use bowline_testkit::certificates;
use bowline_testkit::server::{Server, free_port};

use crate::look::is_documented;
use crate::program::{Traces, bowline, code};

/// A server that asks its clients for a certificate, if `asks` is `yes`. Its certificates are in the folder.
fn server(folder: &Traces, asks: &str) -> (Server, String) {
    certificates::write(&folder.path(""));
    let port = free_port().to_string();
    let arguments = certificates::server_arguments(&folder.path(""), "server", &port, asks);
    let server = Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    (server, format!("rediss://localhost:{port}/"))
}

/// Runs the program with these variables in its environment.
fn ran(url: &str, variables: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    code(&bowline(url, arguments).envs(variables.iter().copied()).output().unwrap())
}

const RUN: [&str; 6] = ["run", "a", "--", "sh", "-c", "echo $BOWLINE_NAME"];

#[test]
fn a_server_that_asks_for_a_certificate_is_used_with_the_options_for_it() {
    let folder = Traces::new();
    let (_server, url) = server(&folder, "yes");
    let [ca, cert, key] = ["ca.crt", "client.crt", "client.key"].map(|name| folder.word(name));
    let file = folder.word("bowline.toml");
    let written = [("ca_certificate_file", &ca), ("client_certificate_file", &cert), ("client_key_file", &key)];
    let written: String = written.iter().map(|(name, path)| format!("{name} = '{path}'\n")).collect();
    fs::write(&file, written).unwrap();
    let options = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    let variables = [("BOWLINE_CACERT", &*ca), ("BOWLINE_CERT", &*cert), ("BOWLINE_KEY", &*key)];
    // The options win over a file that has the certificates themselves.
    let texts = folder.word("texts.toml");
    let [other, its_key] = ["other.crt", "server.key"].map(|name| fs::read_to_string(folder.path(name)).unwrap());
    let written = [("ca_certificate", &other), ("client_certificate", &other), ("client_key", &its_key)];
    fs::write(&texts, written.map(|(name, text)| format!("{name} = '''{text}'''\n")).concat()).unwrap();
    let over_texts = [&["--config", &texts][..], &options].concat();
    for (options, variables) in
        [(&options[..], &[][..]), (&[], &variables), (&["--config", &file], &[]), (&over_texts, &[])]
    {
        let (found, out, err) = ran(&url, variables, &[options, &RUN].concat());
        assert_eq!((found, out.as_str(), err.as_str()), (0, "a\n", ""), "{options:?}");
        let (found, out, err) = ran(&url, variables, &[options, &["ping", "--json"]].concat());
        assert_eq!((found, err.as_str()), (0, ""), "{options:?}");
        assert_eq!(is_documented("ping", &out)["servers"][0]["role"], "master");
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let folder = Traces::new();
    let (server, url) = server(&folder, "yes");
    let plain = url.replace("rediss://", "redis://");
    let to_plain = format!("rediss://localhost:{}/", server.port());
    let word = |name: &str| folder.word(name);
    let [ca, other, cert, key, of_server] = ["ca.crt", "other.crt", "client.crt", "client.key", "server.key"].map(word);
    let [missing, empty] = ["missing.crt", "empty.crt"].map(word);
    fs::write(&empty, "").unwrap();
    let full = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    for (url, options, told) in [
        (&url, &["--cert", &cert, "--key", &key][..], "the server's certificate is not accepted"),
        (&url, &["--cacert", &other, "--cert", &cert, "--key", &key], "the server's certificate is not accepted"),
        (&url, &["--cacert", &ca], "asks for a certificate of the client"),
        (&url, &["--cacert", &ca, "--cert", &cert], "client_key"),
        (&url, &["--cacert", &ca, "--key", &key], "client_certificate"),
        (&url, &["--cacert", &ca, "--cert", &cert, "--key", &of_server], "certificate and key cannot be used"),
        (&url, &["--cacert", &ca, "--cert", &cert, "--key", &cert], "the client's key is not PEM"),
        (&url, &["--cacert", &missing], "missing.crt"),
        (&url, &["--cacert", &empty], "certificate"),
        (&plain, &[], "use rediss://"),
        (&plain, &full, "TLS"),
        (&to_plain, &full, "use redis://"),
    ] {
        for verb in [&RUN[..], &["ping"]] {
            let (found, out, err) = ran(url, &[], &[options, verb].concat());
            assert_eq!((found, out.as_str()), (125, ""), "{options:?} {verb:?}: {err}");
            assert!(err.contains(told), "{options:?} {verb:?}: {err}");
        }
    }
    // A certificate that is not accepted says something of the server, and a missing file does not.
    let doctor = |ca: &str| ran(&url, &[], &["--cacert", ca, "--cert", &cert, "--key", &key, "doctor"]);
    let (found, out, _) = doctor(&other);
    assert_eq!((found, out.contains("the server's certificate is not accepted")), (2, true), "{out}");
    let (found, out, _) = doctor(&missing);
    assert_eq!((found, out.contains("missing.crt")), (3, true), "{out}");
}

#[test]
fn a_server_that_asks_for_none_needs_only_its_authority() {
    let folder = Traces::new();
    let (_server, url) = server(&folder, "no");
    let (found, out, err) = ran(&url, &[], &[&["--cacert", &folder.word("ca.crt")], &RUN[..]].concat());
    assert_eq!((found, out.as_str(), err.as_str()), (0, "a\n", ""));
    // Also as an authority of the system.
    let system = [("SSL_CERT_FILE", &*folder.word("ca.crt"))];
    assert_eq!(ran(&url, &system, &RUN).0, 0);
}
