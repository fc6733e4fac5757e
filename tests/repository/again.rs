//! The second chance of `scripts/again`, with a cargo that prints what a test tells it to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Notes how it is called, prints the file of that number, and ends with the status in its last line. `PAUSE` is a line
/// that only takes time.
const CARGO: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
n=$(wc -l < calls)
while IFS= read -r line; do
  if [ "$line" = PAUSE ]; then sleep 2.1; else printf '%s\n' "$line"; fi
done < "$((n))"
exit "$(tail -n 1 "$((n))")"
"#;

struct Ran {
    is_green: bool,
    calls: Vec<String>,
    retried: Vec<String>,
}

/// Runs `scripts/again` where each call of cargo prints this and has this status.
fn again(name: &str, arguments: &[&str], outputs: &[(&str, i32)]) -> Ran {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("again_{name}"));
    drop(fs::remove_dir_all(&dir));
    fs::create_dir_all(&dir).unwrap();
    let cargo = dir.join("cargo");
    fs::write(&cargo, CARGO).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    for (n, (output, status)) in outputs.iter().enumerate() {
        fs::write(dir.join((n + 1).to_string()), format!("{output}\n{status}\n")).unwrap();
    }
    let script: PathBuf = [env!("CARGO_MANIFEST_DIR"), "scripts", "again"].iter().collect();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(script);
    command.args(arguments).env("PATH", path).env("BOWLINE_RETRIED", dir.join("retried")).env_remove("BOWLINE_ONCE");
    let output = command.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines =
        |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default().lines().map(str::to_owned).collect();
    Ran { is_green: output.status.success(), calls: lines("calls"), retried: lines("retried") }
}

/// The output of a suite in which these tests fail.
fn suite(path: &str, binary: &str, failed: &[&str]) -> String {
    let mut lines = vec![format!("     Running {path} (target/debug/deps/{binary}-0123456789abcdef)"), String::new()];
    lines.push("running 9 tests\ntest good ... ok".to_owned());
    lines.extend(failed.iter().map(|name| format!("test {name} ... FAILED")));
    if failed.is_empty() {
        lines.push("\ntest result: ok. 9 passed; 0 failed; 0 ignored".to_owned());
        return lines.join("\n");
    }
    lines.push("\nfailures:\n".to_owned());
    for name in failed {
        let panic = format!("thread '{name}' (7) panicked at a.rs:1:2:\nreason of {name}");
        lines.push(format!("---- {name} stdout ----\nfailures:\n    printed by the test\n\n{panic}\n"));
    }
    lines.push("\nfailures:".to_owned());
    lines.extend(failed.iter().map(|name| format!("    {name}")));
    lines.push("\ntest result: FAILED. 1 passed; 9 failed; 0 ignored".to_owned());
    lines.join("\n")
}

fn scripts(failed: &[&str]) -> String {
    suite("tests/scripts/main.rs", "scripts", failed)
}

const PASSES: (&str, i32) = ("test result: ok. 1 passed; 0 failed; 0 ignored", 0);

#[test]
fn each_test_that_failed_runs_once_more_alone() {
    let unit_tests = suite("unittests src/lib.rs", "bowline", &["c::d"]);
    let output = [scripts(&["a", "b"]), suite("tests/tracing.rs", "tracing", &[]), unit_tests].join("\n");
    let arguments = ["--locked", "--test", "scripts", "--test", "tracing", "--lib", "--", "--nocapture"];
    let ran = again("each", &arguments, &[(&output, 101), PASSES, PASSES, PASSES]);
    assert!(ran.is_green);
    let expected = [
        "test --locked --test scripts --test tracing --lib --no-fail-fast -- --nocapture",
        "test --locked --test scripts -- --exact a --nocapture",
        "test --locked --test scripts -- --exact b --nocapture",
        "test --locked --lib -- --exact c::d --nocapture",
    ];
    assert_eq!(ran.calls, expected);
    // Those of one moment in a suite count once.
    assert_eq!(
        ran.retried,
        ["* scripts: a: reason of a", "  scripts: b: reason of b", "* bowline: c::d: reason of c::d"]
    );
}

#[test]
fn what_fails_alone_too_is_red() {
    let again_red = (&*scripts(&["a"]), 101);
    let ran = again("twice", &["--test", "scripts"], &[again_red, again_red]);
    assert!(!ran.is_green && ran.retried.is_empty());
    // A name that matches no test.
    let nothing = ("test result: ok. 0 passed; 0 failed; 0 ignored", 0);
    assert!(!again("nothing", &["--test", "scripts"], &[again_red, nothing]).is_green);
}

#[test]
fn what_is_no_failure_of_a_test_gets_no_second_chance() {
    let own = format!("{}\na failed beside others, and runs once more alone (moment 1 of 3): ?", scripts(&["a"]));
    let crashed = "     Running tests/faults/main.rs (target/debug/deps/faults-0123456789abcdef)\n\nrunning 9 tests";
    for (name, output) in [
        ("compile", "error: could not compile `bowline`".to_owned()),
        ("own", own),
        ("crash", [&scripts(&["a"]), crashed].join("\n")),
        ("sim", suite("tests/sim/main.rs", "sim", &["a"])),
        ("doc", format!("   Doc-tests bowline\n{}", scripts(&["a"]).split_once('\n').unwrap().1)),
    ] {
        let ran = again(name, &[], &[(&output, 101)]);
        assert!(!ran.is_green, "{name}");
        assert_eq!(ran.calls.len(), 1, "{name}");
    }
}

/// Four moments in which tests fail are too many for a machine that stood still.
#[test]
fn a_suite_that_fails_again_and_again_gets_no_second_chance() {
    let often = scripts(&["a", "b", "c", "d"]).replace("FAILED\ntest", "FAILED\nPAUSE\ntest");
    let ran = again("often", &["--test", "scripts"], &[(&often, 101), PASSES, PASSES, PASSES, PASSES]);
    assert!(!ran.is_green && ran.calls.len() == 1);
    let thrice = scripts(&["a", "b", "c", "d"]).replacen("FAILED\ntest", "FAILED\nPAUSE\ntest", 2);
    let ran = again("thrice", &["--test", "scripts"], &[(&thrice, 101), PASSES, PASSES, PASSES, PASSES]);
    assert!(ran.is_green);
    let marks: Vec<&str> = ran.retried.iter().map(|line| &line[..1]).collect();
    assert_eq!(marks, ["*", "*", "*", " "]);
}

#[test]
fn what_is_green_runs_once() {
    let ran = again("green", &["--test", "scripts"], &[(&scripts(&[]), 0)]);
    assert!(ran.is_green && ran.calls.len() == 1);
}
