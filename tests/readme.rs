//! The tests that README.md names beside each guarantee are there, and are tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;

/// The second column of the table of guarantees, by the first.
fn guarantees(page: &str) -> Vec<(&str, &str)> {
    let table = page.split("\n| guarantee | shown by |\n|---|---|\n").nth(1).expect("a table of guarantees");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches(['|', ' ']).split_once(" | ").expect("two columns")).collect()
}

/// `[text](target)`, all of them.
fn links(text: &str) -> Vec<(&str, &str)> {
    text.split('[').skip(1).map(|link| link.split_once(')').unwrap().0.split_once("](").expect("a link")).collect()
}

/// Whether `name` is run in that file: a function, and either `#[test]` stands above it or a macro lists it.
fn is_a_test(source: &str, name: &str) -> bool {
    let listed = source.lines().any(|line| line.trim().trim_end_matches([',', ';']) == name);
    let function = source.lines().map(str::trim).collect::<Vec<_>>();
    let declared = format!("fn {name}(");
    let Some(line) = function.iter().position(|line| line.contains(&declared)) else { return false };
    let above = function[..line].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("///"));
    listed || above.into_iter().any(|line| *line == "#[test]")
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let guarantees = guarantees(&page);
    assert!(guarantees.len() > 5, "{guarantees:?}");
    for (guarantee, shown) in guarantees {
        let links = links(shown);
        assert!(!links.is_empty(), "nothing shows that {guarantee}");
        for (name, file) in links {
            if name == file {
                assert!(root.join(file).join("main.rs").is_file(), "{guarantee}: there are no tests in {file}");
                continue;
            }
            let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(is_a_test(&source, name), "{guarantee}: {file} has no test {name}");
        }
    }
}
