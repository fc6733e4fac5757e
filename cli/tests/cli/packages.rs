//! What packages contain.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{BOWLINE, Traces, clean, code};

#[test]
fn the_pages_and_completions_are_those_of_the_program() {
    let traces = Traces::new();
    let mut command = Command::new(BOWLINE);
    assert!(clean(&mut command).args(["generate", &traces.word("dist")]).status().unwrap().success());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&kept), names(&traces.path("dist")), "run: bowline generate cli/dist");
    for name in names(&kept) {
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).unwrap();
        assert!(read(&kept) == read(&traces.path("dist")), "{name:?} is old: run: bowline generate cli/dist");
    }
}

#[test]
fn completions_are_valid_shell() {
    let mut command = Command::new("sh");
    let checked = format!("{BOWLINE} completions bash | bash -n");
    assert!(clean(&mut command).args(["-c", &checked]).status().unwrap().success());
}

/// The codes of README.md are in the help, which is the man page as well.
#[test]
fn the_help_lists_the_exit_codes_of_the_readme() {
    let mut command = Command::new(BOWLINE);
    let (_, help, _) = code(&clean(&mut command).args(["run", "--help"]).output().unwrap());
    let readme = include_str!("../../README.md").split_once("## Exit codes").unwrap().1;
    let rows = readme.lines().filter(|line| line.starts_with('|')).skip(2).take_while(|line| line.starts_with('|'));
    let codes: Vec<&str> =
        rows.filter_map(|row| row.trim_matches(['|', ' ']).split([' ', ',']).next()).take(9).collect();
    assert!(codes.contains(&"123") && codes.contains(&"127"), "{codes:?}");
    // That of a signal is `128+n` there.
    for code in codes.iter().filter(|code| code.parse::<u8>().is_ok_and(|code| code != 128)) {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{code} "))), "{code}: {help}");
    }
}
