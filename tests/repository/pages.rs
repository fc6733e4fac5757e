//! What README.md and the other pages refer to is there: tests, files, headings.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Markdown of the repository, by its path.
fn pages() -> Vec<(PathBuf, String)> {
    let folders = ["", "docs", "src/links", "benches", "cli"];
    let files = folders.into_iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|ext| ext == "md"));
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The page without its blocks of code and `code`, whose brackets are no links.
fn prose(page: &str) -> String {
    let outside = page.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    outside.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// `[label]: target`, the first of each label, as Markdown has it.
fn definitions(page: &str) -> HashMap<&str, &str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.fold(HashMap::new(), |mut all, (label, target)| {
        all.entry(label).or_insert(target.trim());
        all
    })
}

/// The text and the target of each `[text](target)`, `[text][label]` and `[label]`.
fn links<'a>(text: &'a str, definitions: &HashMap<&'a str, &'a str>) -> Vec<(&'a str, &'a str)> {
    let found = text.split('[').skip(1).filter_map(|link| {
        let (text, rest) = link.split_once(']')?;
        if let Some(target) = rest.strip_prefix('(') {
            return Some((text, target.split_once(')')?.0));
        }
        // Here the label after a text is a link of its own, so the text before it is none.
        definitions.get(text).map(|target| (text, *target)).filter(|_| !rest.starts_with(": "))
    });
    found.chain(definitions.iter().map(|(label, target)| (*label, *target))).collect()
}

/// A heading as GitHub makes it an anchor.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_matches(['#', ' ']).chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn is_there(page: &Path, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    let has_heading = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
    };
    path.exists() && (heading.is_empty() || has_heading())
}

/// Whether rustdoc may show it: a link to somewhere else, to a place in the same page, to a path of Rust, or a picture
/// that the page carries itself.
fn works_in_rustdoc(target: &str) -> bool {
    let rust = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '(' | ')' | '!' | '@' | '<' | '>');
    let elsewhere = ["https://", PICTURE].into_iter().any(|start| target.starts_with(start));
    elsewhere || target.starts_with('#') || target.chars().all(rust)
}

/// What the URL of a picture begins with in rustdoc, which has no file to show.
const PICTURE: &str = "data:image/svg+xml,";

/// The description and the label of each `![description][label]`.
fn pictures(page: &str) -> Vec<(&str, &str)> {
    let found = page.split("![").skip(1).filter_map(|image| image.split_once(']'));
    found
        .map(|(text, rest)| (text, rest.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or("")))
        .collect()
}

/// The docs in a source file.
fn doc_comments(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let docs = lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    docs.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_relative_link_of_a_page_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let (mut dead, mut followed) = (Vec::new(), 0);
    for (path, page) in pages.iter().filter(|(path, _)| !path.starts_with(root().join("src"))) {
        let page = prose(page);
        for (_, target) in links(&page, &definitions(&page)).into_iter().filter(|(_, target)| !target.contains("://")) {
            followed += 1;
            if !is_there(path, target) {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(followed > 40, "{followed}");
}

#[test]
fn what_rustdoc_shows_has_no_link_into_the_repository() {
    // In the order of src/lib.rs. rustdoc checks the paths of Rust, and `scripts/links` checks rustdoc's output.
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let mut shown = Vec::new();
    for (targets, page) in [("src/links/readme.md", "README.md"), ("src/links/guide.md", "docs/guide.md")] {
        let parts = [read("src/links/pictures.md"), read(targets), read(page)];
        shown.push((page.to_owned(), prose(&parts.join("\n"))));
    }
    for path in sources(&root().join("src"), &["rs"]) {
        shown.push((path.display().to_string(), prose(&doc_comments(&fs::read_to_string(&path).unwrap()))));
    }
    let (mut dead, mut followed) = (Vec::new(), 0);
    for (path, docs) in &shown {
        for (_, target) in links(docs, &definitions(docs)) {
            followed += 1;
            if !works_in_rustdoc(target) {
                dead.push(format!("{path}: {target}"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(followed > 100, "{followed}");
}

#[test]
fn every_label_of_a_page_is_defined_in_it() {
    let mut labels = 0;
    let mut undefined = Vec::new();
    for (path, page) in pages().iter().filter(|(path, _)| !path.starts_with(root().join("src"))) {
        let page = prose(page);
        let definitions = definitions(&page);
        for label in page.split("][").skip(1).filter_map(|rest| rest.split(']').next()) {
            labels += 1;
            if !definitions.contains_key(label) {
                undefined.push(format!("{}: {label}", path.display()));
            }
        }
    }
    assert!(undefined.is_empty(), "GitHub shows them as they stand: {undefined:#?}");
    assert!(labels > 100, "{labels}");
}

#[test]
fn what_rustdoc_shows_as_a_picture_is_the_file_that_github_shows() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let carried = read("src/links/pictures.md");
    let carried = definitions(&carried);
    for path in ["README.md", "docs/guide.md"] {
        let page = read(path);
        let (pictures, targets) = (pictures(&page), definitions(&page));
        assert!(!pictures.is_empty(), "{path} has no picture");
        for (description, label) in pictures {
            assert!(description.len() > 20, "{path}: {label} is not described for those who do not see it");
            // The label is `docs/a.svg` on every page, so that one definition serves both pages of rustdoc.
            let file = root().join(path).parent().unwrap().join(targets[label]);
            assert_eq!(file.canonicalize().unwrap(), root().join(label).canonicalize().unwrap(), "{path}: {label}");
            let url = carried.get(label).unwrap_or_else(|| panic!("{label} is not in src/links: run scripts/pictures"));
            let data = url.strip_prefix(PICTURE).unwrap();
            let shown = percent_encoding::percent_decode_str(data).decode_utf8().unwrap();
            let svg = read(label).lines().map(str::trim).collect::<Vec<_>>().join(" ");
            assert!(shown == svg, "{label} has changed: run scripts/pictures");
        }
    }
}

/// The second column of the table of guarantees, by the first.
fn guarantees(page: &str) -> Vec<(&str, &str)> {
    let table = page.split("\n| guarantee | shown by |\n|---|---|\n").nth(1).expect("a table of guarantees");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches(['|', ' ']).split_once(" | ").expect("two columns")).collect()
}

/// What a row names, and the file that it is in: `[name][file]`, or `[folder]` for all tests there.
fn named(shown: &str) -> Vec<(&str, &str)> {
    let each = shown.split(", ").map(|link| link.trim_matches(['[', ']']));
    each.map(|link| link.split_once("][").unwrap_or((link, link))).collect()
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
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let (guarantees, definitions) = (guarantees(&page), definitions(&page));
    assert!(guarantees.len() > 5, "{guarantees:?}");
    for (guarantee, shown) in guarantees {
        for (name, file) in named(shown) {
            let target = format!("../{file}");
            assert_eq!(definitions.get(file), Some(&target.as_str()), "{guarantee}: {name} is no link to {file}");
            if name == file {
                assert!(root().join(file).join("main.rs").is_file(), "{guarantee}: there are no tests in {file}");
                continue;
            }
            let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(is_a_test(&source, name), "{guarantee}: {file} has no test {name}");
        }
    }
}
