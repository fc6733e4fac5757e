//! A module of the library imports from its own layer and from lower ones, by the list in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What implements the traits for others: above everything it needs, and named by nobody else.
const ADAPTERS: &str = "adapters";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Number(u32),
    Adapter,
}

/// From the lines `- <layer>: <module>, <module> ...` under the heading "Layers".
fn layers(page: &str) -> BTreeMap<String, Layer> {
    let section = page.split("\n## Layers\n").nth(1).expect("a section on layers").split("\n## ").next().unwrap();
    let mut layers = BTreeMap::new();
    for line in section.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (layer, modules) = line.split_once(": ").expect("a layer and its modules");
        let layer = if layer == ADAPTERS { Layer::Adapter } else { Layer::Number(layer.parse().unwrap()) };
        for module in modules.split(", ") {
            assert_eq!(layers.insert(module.to_owned(), layer), None, "{module} stands in two layers");
        }
    }
    layers
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The modules that stand after `crate::` in the code, without its tests.
fn imports(code: &str) -> BTreeSet<String> {
    let code = code.split("#[cfg(test)]").next().unwrap();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let module = |path: &str| path.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect::<String>();
    let modules = |rest: &str| match rest.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap().split(',').map(|path| module(path.trim())).collect(),
        None => vec![module(rest)],
    };
    code.split("crate::").skip(1).flat_map(modules).filter(|name| !name.is_empty()).collect()
}

#[test]
fn imports_go_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let layers = layers(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    let mut modules = BTreeSet::new();
    let mut wrong = Vec::new();
    for path in sources(&root.join("src")) {
        let file = path.strip_prefix(root.join("src")).unwrap();
        let module = file.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" || path.ends_with("tests.rs") {
            continue;
        }
        modules.insert(module.to_owned());
        let Some(own) = layers.get(module) else {
            wrong.push(format!("{module} is in no layer"));
            continue;
        };
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let allowed = match (own, layers.get(&import)) {
                (_, None) => false,
                (Layer::Adapter, Some(_)) => true,
                // The facade for programs without a runtime chooses one.
                (_, Some(Layer::Adapter)) => module == "blocking",
                (Layer::Number(own), Some(Layer::Number(other))) => other <= own,
            };
            if !allowed {
                wrong.push(format!("src/{} imports {import}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed: BTreeSet<String> = layers.into_keys().collect();
    assert_eq!(listed, modules, "the list in ARCHITECTURE.md names what is there");
}

#[test]
fn the_test_sees_imports() {
    let code = "use crate::{Error, sync::lock, token};\nuse crate::key::Keys;\nfn f() { crate::lease::g() } // crate::no\n/// crate::doc\n\
        #[cfg(test)]\nmod tests { use crate::client; }";
    assert_eq!(imports(code), ["key", "lease", "no", "sync", "token"].map(str::to_owned).into());
    let page = "# A\n\n## Layers\n\nText.\n\n- 0: a, b\n- 1: c\n- adapters: d\n\n## Tests\n\n- 7: e\n";
    let expected = [("a", 0), ("b", 0), ("c", 1)].map(|(name, layer)| (name.to_owned(), Layer::Number(layer)));
    let mut expected = BTreeMap::from(expected);
    expected.insert("d".to_owned(), Layer::Adapter);
    assert_eq!(layers(page), expected);
}
