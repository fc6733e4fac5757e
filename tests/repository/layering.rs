//! A module of the library imports from its own layer and from lower ones, by the list in ARCHITECTURE.md, and no files
//! import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::imports::{Imports, Module, imports, of_the_library};

/// Adapters implement the traits for others: they may import everything, and only the crate's root names them.
const ADAPTERS: &str = "adapters";

/// Circles that are still to be cut. The list only shrinks: a circle that is gone has to go from here, too.
const KNOWN_CIRCLES: [&[&str]; 0] = [];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Number(u32),
    Adapter,
}

/// From the lines `- <layer>: <module>, <module> ...` under the heading "Layers".
fn layers(page: &str) -> BTreeMap<Module, Layer> {
    let section = page.split("\n## Layers\n").nth(1).expect("a section on layers").split("\n## ").next().unwrap();
    let mut layers = BTreeMap::new();
    for line in section.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (layer, modules) = line.split_once(": ").expect("a layer and its modules");
        let layer = if layer == ADAPTERS { Layer::Adapter } else { Layer::Number(layer.parse().unwrap()) };
        for module in modules.split(", ") {
            assert_eq!(layers.insert(path(module), layer), None, "{module} stands in two layers");
        }
    }
    layers
}

fn path(module: &str) -> Module {
    module.split('/').map(str::to_owned).collect()
}

/// The entry of the list for the module, which is its own or that of a module above it.
fn entry<'a>(layers: &'a BTreeMap<Module, Layer>, module: &Module) -> Option<(&'a Module, Layer)> {
    let above = (1..=module.len()).rev().map(|length| module[..length].to_vec());
    above.into_iter().find_map(|module| layers.get_key_value(&module)).map(|(module, layer)| (module, *layer))
}

fn the_library() -> Imports {
    of_the_library(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn imports_go_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let layers = layers(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    for (module, imported) in the_library().iter().filter(|(module, _)| !module.is_empty()) {
        let Some((own_entry, own)) = entry(&layers, module) else {
            wrong.push(format!("{} is in no layer", module.join("/")));
            continue;
        };
        used.insert(own_entry);
        for other in imported.iter().filter(|other| !other.is_empty()) {
            let allowed = match (own, entry(&layers, other)) {
                (_, None) => false,
                (Layer::Adapter, Some(_)) => true,
                // The facade for programs without a runtime chooses one itself.
                (_, Some((_, Layer::Adapter))) => module[0] == "blocking",
                (Layer::Number(own), Some((_, Layer::Number(other)))) => other <= own,
            };
            if !allowed {
                wrong.push(format!("{} imports {}", module.join("/"), other.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed: BTreeSet<&Module> = layers.keys().collect();
    assert_eq!(listed, used, "the list in ARCHITECTURE.md names what is there");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let known: BTreeSet<BTreeSet<Module>> =
        KNOWN_CIRCLES.iter().map(|circle| circle.iter().map(|module| path(module)).collect()).collect();
    assert_eq!(circles(&the_library()), known);
}

/// Sets of modules that reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reached_from(imports, module))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let others = reached[module].iter().filter(|other| reached[*other].contains(module));
        others.map(|other| (*other).clone()).collect()
    };
    imports.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

fn reached_from<'a>(imports: &'a Imports, module: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&Module> = imports[module].iter().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(&imports[next]);
        }
    }
    reached
}

/// What the modules import, each written as `module: module, module`.
fn seen(sources: &[(&str, &str)]) -> Vec<String> {
    let named = |module: &str| if module == "lib" { Vec::new() } else { path(module) };
    let sources = sources.iter().map(|(module, source)| (named(module), (*source).to_owned())).collect();
    let line = |(module, imported): (&Module, &BTreeSet<Module>)| {
        let imported: Vec<_> = imported.iter().map(|other| other.join("/")).collect();
        format!("{}: {}", module.join("/"), imported.join(", "))
    };
    imports(&sources).iter().map(line).filter(|line| !line.ends_with(": ")).collect()
}

#[test]
fn the_test_sees_imports() {
    let seen = seen(&[
        ("lib", "mod a;\nmod b;\nmod c;\npub use c::{Open, deep::Hidden as Shown};"),
        ("a", "use crate::{Shown, b};\nmod one;\nmod two;\nfn f() { one::g(); crate::c::deep::h() }"),
        ("a/one", "use super::two::{self, Two as Other};\n// crate::c\n/// [x](crate::c)\nfn g() {}"),
        ("a/two", "#[cfg(test)]\nfn t() { if true { crate::b::x() } }\nuse crate::c::Open;\n#[cfg(test)]\nmod tests;"),
        ("b", "#[cfg(test)]\nmod tests { use crate::a; }"),
        ("c", "pub(crate) mod deep;\npub struct Open;"),
        ("c/deep", "use super::super::b;"),
    ]);
    let expected = ["a: a/one, b, c/deep", "a/one: a/two", "a/two: c", "c/deep: b"].map(str::to_owned).to_vec();
    assert_eq!(seen, expected);
}

#[test]
fn the_test_sees_circles() {
    let imports = |pairs: &[(&str, &str)]| -> Imports {
        let others =
            |module: &str| pairs.iter().filter(move |(from, _)| *from == module).map(|(_, to)| path(to)).collect();
        ["a", "b", "c", "d"].into_iter().map(|module| (path(module), others(module))).collect()
    };
    assert!(circles(&imports(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "a")])).is_empty());
    let found = circles(&imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]));
    assert_eq!(found, BTreeSet::from([["a", "b", "c"].map(path).into()]));
}

#[test]
fn the_test_reads_the_list() {
    let page = "# A\n\n## Layers\n\nText.\n\n- 0: a, b/c\n- 1: b\n- adapters: d\n\n## Tests\n\n- 7: e\n";
    let layers = layers(page);
    let layer = |module| entry(&layers, &path(module)).map(|(_, layer)| layer);
    assert_eq!(layer("a/x"), Some(Layer::Number(0)));
    assert_eq!(layer("b/c"), Some(Layer::Number(0)));
    assert_eq!(layer("b/x"), Some(Layer::Number(1)));
    assert_eq!(layer("d"), Some(Layer::Adapter));
    assert_eq!(layer("e"), None);
}
