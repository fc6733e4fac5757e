//! Where to connect: options, the environment, a file. And what is never shown.

use std::fs;

use bowline_testkit::cluster::Cluster;
use bowline_testkit::sentinels::Sentinels;
use bowline_testkit::server::Server;

use crate::program::{Traces, bowline, code, output};

const RUN: [&str; 4] = ["run", "a", "--", "true"];

#[test]
fn options_win_over_the_environment_and_that_over_the_file() {
    let (server, traces) = (Server::start(), Traces::new());
    let (file, password) = (traces.word("bowline.toml"), traces.word("password"));
    fs::write(&password, "secret\n").unwrap();
    let bare = format!("redis://127.0.0.1:{}/", server.port());
    let written = format!("url = '{bare}'\nusername = 'bowline'\npassword_file = '{password}'\nretry_timeout = '5s'\n");
    fs::write(&file, written).unwrap();
    let ran = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bowline("", &[arguments, &RUN[..]].concat());
        command.env_remove("BOWLINE_URL").envs(variables.iter().copied());
        code(&command.output().unwrap())
    };
    assert_eq!(ran(&["--config", &file], &[]).0, 0);
    assert_eq!(ran(&[], &[("BOWLINE_CONFIG", &file)]).0, 0);
    assert_eq!(ran(&["--url", &bare], &[]).0, 0);
    let user = [("BOWLINE_URL", bare.as_str()), ("BOWLINE_USERNAME", "bowline")];
    assert_eq!(ran(&[], &[user[0], user[1], ("BOWLINE_PASSWORD", "secret")]).0, 0);
    assert_eq!(ran(&[], &[user[0], user[1], ("BOWLINE_PASSWORD_FILE", &password)]).0, 0);
    assert_eq!(ran(&["--password-file", &password], &[user[0], user[1], ("BOWLINE_PASSWORD", "wrong")]).0, 0);
    // What wins is used, also if it is wrong.
    assert_eq!(ran(&["--config", &file, "--url", "redis://127.0.0.1:1/"], &[]).0, 125);
    assert_eq!(ran(&["--config", &file], &[("BOWLINE_PASSWORD", "wrong")]).0, 125);
    assert_eq!(ran(&["--config", &file, "--username", "nobody"], &[]).0, 125);
    let (found, _, err) = ran(&[], &[]);
    assert_eq!(found, 125);
    assert!(err.contains("BOWLINE_URL"), "{err}");
    // An empty variable says nothing.
    let empty = ["BOWLINE_URL", "BOWLINE_USERNAME", "BOWLINE_PASSWORD_FILE", "BOWLINE_CACERT", "BOWLINE_PREFIX"];
    assert_eq!(ran(&["--config", &file], &empty.map(|name| (name, ""))).0, 0);
    assert_eq!(ran(&[], &[user[0], user[1], ("BOWLINE_PASSWORD", "secret"), ("BOWLINE_CONFIG", "")]).0, 0);
    // A login in a URL.
    let (right, wrong) = (format!("redis://bowline:secret@127.0.0.1:{}/", server.port()), traces.word("wrong.toml"));
    fs::write(&wrong, format!("url = '{bare}'\nusername = 'nobody'\npassword = 'wrong'\n")).unwrap();
    let variables = [("BOWLINE_USERNAME", "nobody"), ("BOWLINE_PASSWORD", "wrong"), ("BOWLINE_PASSWORD_FILE", &file)];
    assert_eq!(ran(&["--config", &wrong, "--url", &right], &[]).0, 0);
    assert_eq!(ran(&["--config", &wrong], &[("BOWLINE_URL", &right)]).0, 0);
    for variable in variables {
        assert_eq!(ran(&["--url", &right], &[variable]).0, 0, "{variable:?}");
        assert_eq!(ran(&[], &[("BOWLINE_URL", &right), variable]).0, 125, "{variable:?}");
    }
    assert_eq!(ran(&["--url", &right, "--username", "nobody"], &[]).0, 125);
    assert_eq!(ran(&["--url", &right, "--password-file", &file], &[]).0, 125);
    // A relative path leads from the file.
    fs::create_dir(traces.path("folder")).unwrap();
    fs::write(traces.path("folder").join("password"), "wrong").unwrap();
    fs::write(&wrong, format!("url = '{bare}'\nusername = 'bowline'\npassword_file = 'password'\n")).unwrap();
    let mut command = bowline("", &[&["--config", &wrong], &RUN[..]].concat());
    command.env_remove("BOWLINE_URL").current_dir(traces.path("folder"));
    assert_eq!(code(&command.output().unwrap()).0, 0);
    let not_text = std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]);
    let not_text: std::ffi::OsString = not_text;
    let found = bowline(&bare, &RUN).env("BOWLINE_PASSWORD", not_text).output().unwrap();
    let (found, _, err) = code(&found);
    assert!(found == 125 && err.contains("BOWLINE_PASSWORD is not UTF-8"), "{found} {err}");
    // A file in the present folder is not one of the usual ones.
    for (variable, folder) in [("XDG_CONFIG_HOME", ""), ("XDG_CONFIG_HOME", "."), ("HOME", "")] {
        let traces = Traces::new();
        let here = if variable == "HOME" { traces.path(".config") } else { traces.path("") };
        fs::create_dir_all(&here).unwrap();
        fs::write(here.join("bowline.toml"), format!("url = '{}'\n", server.url())).unwrap();
        let mut command = bowline("", &RUN);
        command.env_remove("BOWLINE_URL").current_dir(traces.path("")).env(variable, folder);
        let (found, _, err) = code(&command.output().unwrap());
        assert!(found == 125 && err.contains("no server"), "{variable}={folder}: {found} {err}");
        command.env(variable, fs::canonicalize(traces.path("")).unwrap());
        assert_eq!(code(&command.output().unwrap()).0, 0, "{variable}");
    }
    // Also the prefix.
    assert_eq!(ran(&["--config", &file, "--prefix", "other"], &[]).0, 125, "the user may use one prefix only");
    assert_eq!(ran(&["--url", &server.url(), "--prefix", "other"], &[]).0, 0);
}

#[test]
fn no_message_contains_a_secret() {
    let (server, traces) = (Server::start(), Traces::new());
    let file = traces.word("bowline.toml");
    let port = server.port();
    let with = |scheme: &str, rest: &str| format!("{scheme}://bowline:hunter2@127.0.0.1:{port}{rest}");
    let mut outputs = vec![
        output(&with("redis", "/"), &RUN),
        output(&with("rediss", "/"), &RUN),
        output(&with("redis-cluster", ""), &RUN),
        output(&with("redis-sentinel", "/?master=m"), &RUN),
        output(&with("redis", "/nonsense"), &RUN),
        output(&with("hunter2", "/"), &RUN),
        output("redis://bowline:hunter2@127.0.0.1:1/", &RUN),
        bowline(&format!("redis://bowline@127.0.0.1:{port}/"), &RUN)
            .env("BOWLINE_PASSWORD", "hunter2")
            .output()
            .unwrap(),
        output(&with("redis", "/"), &["run"]),
        output(&with("redis", "/"), &["run", "--help"]),
        // Where no URL belongs.
        output(&server.url(), &["ping", &with("redis", "/")]),
        output(&server.url(), &[&with("redis", "/"), "run", "a", "--", "true"]),
        output(&server.url(), &["ping", "unix:///run/x.sock?user=u&pass=hunter2"]),
        output(&server.url(), &["ls", "a", "redis-sentinel://u:p@h/?master=m&sentinel_password=hunter2"]),
        output(&server.url(), &["ping", "redis://u:a 'b\" hunter2@h/"]),
        output(&server.url(), &["ping", "u:hunter2@h"]),
        output(&server.url(), &["run", "a", "--lease", "redis://u:hunter2@h/", "--", "true"]),
        output(&server.url(), &["run", "a", "--kind=redis://u:hunter2@h/", "--", "true"]),
        output(&server.url(), &["--redis://u:hunter2@h/"]),
        output("u:hunter2@h", &RUN),
    ];
    for written in [
        "password = 'hunter2'",
        "url = 5\npassword = 'hunter2'",
        "url = 'hunter2'",
        "passwort = 'hunter2",
        "password = ['hunter2']",
    ] {
        fs::write(&file, written).unwrap();
        outputs
            .push(bowline("", &[&["--config", &file], &RUN[..]].concat()).env_remove("BOWLINE_URL").output().unwrap());
    }
    // What is no URL is shown.
    let (_, _, err) = code(&output(&server.url(), &["ping", "more"]));
    assert!(err.contains("'more'"), "{err}");
    for output in outputs {
        let (found, out, err) = code(&output);
        assert!(found == 125 || out.contains("Usage"), "{found}: {err}");
        assert!(!out.contains("hunter2") && !err.contains("hunter2"), "{out}{err}");
    }
}

#[test]
fn the_options_for_tls_are_those_of_the_library() {
    let server = Server::start();
    let plain = ["--cacert", "/etc/hostname", "run", "a", "--", "true"];
    let (found, _, err) = code(&output(&server.url(), &plain));
    assert_eq!(found, 125);
    assert!(err.contains("TLS"), "{err}");
    let key = ["--cert", "/etc/hostname", "run", "a", "--", "true"];
    let (found, _, err) = code(&output("rediss://127.0.0.1/", &key));
    assert_eq!(found, 125);
    assert!(err.contains("client_key"), "{err}");
}

#[test]
fn a_master_behind_sentinels_and_a_cluster_and_a_socket() {
    let sentinels = Sentinels::start();
    assert_eq!(code(&output(&sentinels.url(), &RUN)).0, 0);
    let nodes = Cluster::start(3, 0);
    let cluster = nodes.url();
    assert_eq!(code(&output(&cluster, &RUN)).0, 0);
    let server = Server::start();
    assert_eq!(code(&output(&server.socket_url(), &RUN)).0, 0);
}
