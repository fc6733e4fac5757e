//! The form of the source files that rustfmt does not keep: the margin of comments, and the length of a file.

use std::path::{Path, PathBuf};

/// As `max_width` in `rustfmt.toml`, which does not count for comments.
const MARGIN: usize = 120;

/// More than one idea needs a second file.
const MOST_LINES: usize = 300;

/// The files below the folder whose names end so.
pub(super) fn sources(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path, extensions) } else { vec![path] });
    let is_source = |path: &PathBuf| extensions.iter().any(|wanted| path.extension().is_some_and(|ext| ext == *wanted));
    found.filter(is_source).collect()
}

#[test]
fn comments_end_at_the_margin() {
    let dirs = ["src", "tests", "examples", "benches", "cli", "fred", "model", "testkit"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut beyond = Vec::new();
    for file in dirs.iter().flat_map(|dir| sources(&root.join(dir), &["rs", "lua"])) {
        let source = std::fs::read_to_string(&file).unwrap();
        let longer = source.lines().enumerate().filter(|(_, line)| is_beyond(line));
        beyond.extend(longer.map(|(at, line)| format!("{}:{}: {line}", file.display(), at + 1)));
    }
    assert!(beyond.is_empty(), "comments longer than {MARGIN} characters:\n{}", beyond.join("\n"));
}

/// A row of a table cannot be broken.
fn is_beyond(line: &str) -> bool {
    let text = line.trim_start();
    let comment = text.strip_prefix("--").or_else(|| text.strip_prefix("//"));
    let comment = comment.map(|comment| comment.trim_start_matches(['/', '!']).trim_start());
    comment.is_some_and(|comment| !comment.starts_with('|')) && line.chars().count() > MARGIN
}

#[test]
fn what_is_beyond_the_margin_is_seen() {
    let words = "word ".repeat(30);
    for marker in ["//", "///", "    //!", "--"] {
        assert!(is_beyond(&format!("{marker} {words}")), "{marker}");
        assert!(!is_beyond(&format!("{marker} | {words}")), "a table after {marker}");
        assert!(!is_beyond(&format!("{marker} word")), "{marker}");
    }
    assert!(!is_beyond(&format!("let text = \"{words}\";")), "code is for rustfmt");
}

#[test]
fn files_of_the_library_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files: Vec<_> =
        ["src", "cli/src", "fred/src"].iter().flat_map(|dir| sources(&root.join(dir), &["rs"])).collect();
    let lines = |file: &Path| std::fs::read_to_string(file).unwrap().lines().count();
    let long: Vec<_> = files.iter().filter(|file| lines(file) > MOST_LINES).collect();
    assert!(!files.is_empty() && long.is_empty(), "more than {MOST_LINES} lines: {long:?}");
}
