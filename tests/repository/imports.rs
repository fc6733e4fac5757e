//! Which file of the library imports which. An import of a re-exported item counts as one of the file that defines the
//! item, and a re-export counts as an import only if the file uses the name itself. So a parent module that only
//! declares and re-exports its children is in no circle. Unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::files::sources;

/// A module by its path, such as `engine::lease`; the crate's root is empty.
pub(super) type Module = Vec<String>;

/// Every module with a file of its own, and the modules that it imports.
pub(super) type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// What one file says.
#[derive(Debug, Default)]
struct File {
    /// Full paths of all that it names in other modules.
    names: BTreeSet<Vec<String>>,
    /// What it re-exports: the name here, and the full path of the original.
    reexports: BTreeMap<String, Vec<String>>,
}

pub(super) fn of_the_library(src: &Path) -> Imports {
    let sources = sources(src, &["rs"]).into_iter().filter_map(|path| {
        let module = module_of(path.strip_prefix(src).unwrap())?;
        Some((module, fs::read_to_string(&path).unwrap()))
    });
    imports(&sources.collect())
}

/// `None` for unit tests.
fn module_of(file: &Path) -> Option<Module> {
    let mut module: Module = file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    module.retain(|part| part != "lib");
    (!module.iter().any(|part| part == "tests")).then_some(module)
}

/// By module, the source of its file.
pub(super) fn imports(sources: &BTreeMap<Module, String>) -> Imports {
    let files: BTreeMap<_, _> =
        sources.iter().map(|(module, source)| (module, parse(module, &without_tests(source)))).collect();
    let imports = files.iter().map(|(module, file)| {
        let imported = file.names.iter().map(|name| resolve(&files, name));
        ((*module).clone(), imported.filter(|other| other != *module).collect())
    });
    imports.collect()
}

/// The module that defines what the path names.
fn resolve(files: &BTreeMap<&Module, File>, path: &[String]) -> Module {
    let mut path = path.to_vec();
    // The most steps that a chain of re-exports may have.
    for _ in 0..8 {
        let length = (0..=path.len()).rev().find(|n| files.contains_key(&path[..*n].to_vec())).unwrap();
        let (module, rest) = (path[..length].to_vec(), &path[length..]);
        let original = rest.first().and_then(|item| files[&module].reexports.get(item));
        match original {
            Some(original) => path = [original, &rest[1..]].concat(),
            None => return module,
        }
    }
    panic!("{path:?} is re-exported in a circle");
}

/// The code without comments and without items for tests.
fn without_tests(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut parts = code.split("#[cfg(test)]");
    let mut kept = parts.next().unwrap().to_owned();
    parts.for_each(|part| kept.push_str(&part[item_end(part)..]));
    kept
}

/// Where the item that the code begins with ends.
fn item_end(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn parse(module: &[String], code: &str) -> File {
    let mut file = File::default();
    let children = words_after(code, "mod ").filter(|(_, rest)| rest.starts_with(';'));
    let roots: Vec<String> = children.map(|(name, _)| name).chain(["crate", "super"].map(str::to_owned)).collect();
    for root in &roots {
        let start = format!("{root}::");
        let starts = code.match_indices(&start).filter(|(at, _)| begins_a_path(code, *at));
        for (at, _) in starts {
            let paths = trees(&code[at..]).into_iter().map(|(path, name)| (absolute(module, &path), name));
            let is_reexport = statement(code, at).is_some_and(|before| before.starts_with("pub"));
            for (path, name) in paths {
                if is_reexport {
                    file.reexports.insert(name.clone(), path.clone());
                }
                if !is_reexport || is_used(code, &name) {
                    file.names.insert(path);
                }
            }
        }
    }
    file
}

fn words_after<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = (String, &'a str)> {
    code.match_indices(keyword).filter(|(at, _)| begins_a_path(code, *at)).map(move |(at, _)| {
        let rest = &code[at + keyword.len()..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let after = &rest[name.len()..];
        (name, after)
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn begins_a_path(code: &str, at: usize) -> bool {
    // `pub(in crate::x)` is not an import.
    let before = &code[..at];
    before.chars().next_back().is_none_or(|c| !is_word(c) && c != ':') && !before.ends_with("(in ")
}

/// Whether the name stands anywhere but in its own declaration.
fn is_used(code: &str, name: &str) -> bool {
    let ends = |at: usize| code[at + name.len()..].chars().next().is_none_or(|c| !is_word(c));
    let uses = code.match_indices(name).filter(|(at, _)| ends(*at));
    uses.filter(|(at, _)| code[..*at].chars().next_back().is_none_or(|c| !is_word(c))).nth(1).is_some()
}

/// The words before a path if it stands in a `use` declaration.
fn statement(code: &str, at: usize) -> Option<&str> {
    let before = &code[..at];
    let start = before.rfind([';', '}', ']', '\n']).map_or(0, |end| end + 1);
    let words = before[start..].trim();
    words.ends_with("use").then_some(words)
}

/// The paths of a use tree, each with the name that it has here.
fn trees(code: &str) -> Vec<(Vec<String>, String)> {
    let first: String = code.chars().take_while(|c| is_word(*c)).collect();
    let rest = &code[first.len()..];
    let Some(rest) = rest.strip_prefix("::") else {
        let alias = rest.strip_prefix(" as ").map(|rest| rest.chars().take_while(|c| is_word(*c)).collect());
        return vec![(vec![first.clone()], alias.unwrap_or(first))];
    };
    let tails = match rest.strip_prefix('{') {
        Some(group) => members(group).into_iter().flat_map(trees).collect(),
        None if rest.starts_with(is_word) => trees(rest),
        None => vec![(Vec::new(), first.clone())],
    };
    let join = |(tail, name): (Vec<String>, String)| match tail.first().map(String::as_str) {
        Some("self") => (vec![first.clone()], first.clone()),
        _ => ([vec![first.clone()], tail].concat(), name),
    };
    tails.into_iter().map(join).collect()
}

/// What stands between commas up to the end of the group.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                members.push(group[start..at].trim());
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

fn absolute(module: &[String], path: &[String]) -> Vec<String> {
    let mut base = match path[0].as_str() {
        "crate" => Vec::new(),
        "super" => module[..module.len() - 1].to_vec(),
        child => [module, &[child.to_owned()]].concat(),
    };
    for part in &path[1..] {
        match part.as_str() {
            "super" => drop(base.pop()),
            part => base.push(part.to_owned()),
        }
    }
    base
}
