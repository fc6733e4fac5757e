//! What `Cargo.toml` says, the pages say too: features, dependencies, what is packed, and how much a build brings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use toml::{Table, Value};

/// Crates that are linked into a program with the default features on this machine, bowline included.
const MOST_CRATES: usize = 69;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest() -> Table {
    page("Cargo.toml").parse().unwrap()
}

/// What a command of cargo prints, without the network.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(arguments).args(["--offline", "--locked"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The features, and what each switches on.
fn features(manifest: &Table) -> BTreeMap<String, Vec<String>> {
    manifest["features"].clone().try_into().unwrap()
}

/// Features whose names begin with `_` are for the library's own tests.
fn public_features(manifest: &Table) -> BTreeSet<String> {
    features(manifest).into_keys().filter(|name| name != "default" && !name.starts_with('_')).collect()
}

/// The dependencies of every build, and those that a feature switches on.
fn dependencies(manifest: &Table) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut all = manifest["dependencies"].as_table().unwrap().clone();
    for target in manifest["target"].as_table().unwrap().values() {
        all.extend(target["dependencies"].as_table().unwrap().clone());
    }
    let is_optional = |value: &Value| value.get("optional").and_then(Value::as_bool).unwrap_or_default();
    let (optional, always): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, value)| is_optional(value));
    let names = |of: Vec<(String, Value)>| of.into_iter().map(|(name, _)| name).collect();
    (names(always), names(optional))
}

/// The public features that switch this dependency on, by themselves or by internal features.
fn switched_on_by(dependency: &str, features: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let wanted = format!("dep:{dependency}");
    let by = |wanted: &str| -> Vec<&String> {
        let found = features.iter().filter(|(_, on)| on.iter().any(|name| name == wanted));
        found.map(|(name, _)| name).collect()
    };
    let (internal, public): (Vec<_>, Vec<_>) = by(&wanted).into_iter().partition(|name| name.starts_with('_'));
    internal.into_iter().flat_map(|name| by(name)).chain(public).cloned().collect()
}

/// The rows of the table below a heading, without its head.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let below = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let table = below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The names in backquotes of a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn each_public_feature_is_in_the_table_of_the_readme() {
    let rows = rows(&page("README.md"), "### Cargo features");
    let shown: Vec<String> = rows.iter().flat_map(|row| names(&row[0])).collect();
    let once: BTreeSet<String> = shown.iter().cloned().collect();
    assert_eq!(once.len(), shown.len(), "a feature is there twice: {shown:?}");
    assert_eq!(once, public_features(&manifest()));
    assert!(rows.iter().all(|row| row.len() == 2 && row[1].len() > 20), "{rows:?}");
}

#[test]
fn each_dependency_has_a_reason() {
    let (manifest, page) = (manifest(), page("docs/dependencies.md"));
    let (always, optional) = dependencies(&manifest);
    let of_every_build = rows(&page, "## Of every build");
    let of_a_feature = rows(&page, "## Of a feature");
    let shown = |rows: &[Vec<String>]| rows.iter().flat_map(|row| names(&row[0])).collect::<Vec<_>>();
    assert_eq!(shown(&of_every_build), Vec::from_iter(always), "those of every build, in order");
    assert_eq!(shown(&of_a_feature), Vec::from_iter(optional), "those of a feature, in order");
    for row in &of_a_feature {
        let features: BTreeSet<String> = names(&row[1]).into_iter().collect();
        assert_eq!(features, switched_on_by(&names(&row[0])[0], &self::features(&manifest)), "{row:?}");
    }
    for row in of_every_build.iter().chain(&of_a_feature) {
        assert!(row.last().unwrap().len() > 10, "a reason: {row:?}");
    }
}

#[test]
fn a_default_build_brings_few_crates() {
    let tree =
        cargo(&["tree", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}"]);
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.split(" (").next().unwrap_or(line)).collect();
    assert!(crates.iter().any(|name| name.starts_with("redis v")), "{crates:?}");
    assert!(crates.len() <= MOST_CRATES, "{} crates: {crates:?}", crates.len());
}

#[test]
fn what_users_need_is_packed_and_nothing_else() {
    let listed = cargo(&["package", "--list", "--allow-dirty"]);
    let listed: Vec<&str> = listed.lines().collect();
    let alone = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
    let alone = [&alone[..], &["SECURITY.md", "Cargo.toml"]].concat();
    let by_cargo = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];
    for file in &alone {
        assert!(listed.contains(file), "{file} is missing");
    }
    for file in &listed {
        let is_source = file.starts_with("src/") || file.starts_with("examples/");
        let is_page = file.starts_with("docs/") && [".md", ".svg"].iter().any(|end| file.ends_with(end));
        assert!(is_source || is_page || alone.contains(file) || by_cargo.contains(file), "{file} is packed");
        let large = fs::metadata(root().join(file)).is_ok_and(|file| file.len() > 100_000);
        assert!(!large || by_cargo.contains(file), "{file} is large");
    }
    // All that the source includes is packed with it.
    let included = listed.iter().filter(|file| file.ends_with(".rs")).flat_map(|file| included(file));
    let missing: Vec<String> = included.filter(|file| !listed.contains(&file.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The files that this one includes by `include_str!`.
fn included(file: &str) -> Vec<String> {
    let (source, folder) = (page(file), root().join(file).parent().unwrap().to_owned());
    let paths = source.split("include_str!(\"").skip(1).filter_map(|rest| rest.split_once("\")")).map(|(path, _)| path);
    let absolute =
        paths.map(|path| fs::canonicalize(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}")));
    let root = fs::canonicalize(root()).unwrap();
    absolute.map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_lowest_rust_is_the_same_everywhere() {
    let manifest = manifest();
    let package = manifest["package"].as_table().unwrap();
    let lowest = package["rust-version"].as_str().unwrap();
    assert!(page("README.md").contains(&format!("minimum supported Rust version is {lowest}")), "README.md");
    assert!(page("docs/dependencies.md").contains(&format!("`rust-version` is {lowest}")), "docs/dependencies.md");
    assert!(page(".github/workflows/ci.yml").contains(&format!("toolchain install {lowest} ")), "the workflow");
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        let member: Table = page(&format!("{}/Cargo.toml", member.as_str().unwrap())).parse().unwrap();
        assert_eq!(member["package"]["rust-version"].as_str(), Some(lowest), "{member:?}");
    }
}

#[test]
fn there_is_one_address_of_the_repository() {
    let manifest = manifest();
    let address = manifest["package"]["repository"].as_str().unwrap();
    let (hoster, path) = address.split_at(address.len() - "/bowline".len());
    assert_eq!(path, "/bowline", "{address}");
    for file in ["SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"] {
        assert!(page(file).contains(&format!("{hoster}/bowline/security")), "{file}");
    }
    for part in ["documentation", "homepage", "license", "description", "readme", "keywords", "categories"] {
        assert!(manifest["package"].get(part).is_some(), "{part}");
    }
}

#[test]
fn workflows_call_scripts_that_exist() {
    for file in ["ci", "nightly"] {
        let workflow = page(&format!(".github/workflows/{file}.yml"));
        let scripts = workflow.split("scripts/").skip(1).map(|rest| rest.split([' ', '`', '\n']).next().unwrap());
        let scripts: BTreeSet<&str> = scripts.collect();
        assert!(!scripts.is_empty(), "{file}");
        for script in scripts {
            assert!(root().join("scripts").join(script).is_file(), "{file}: scripts/{script}");
        }
        for variable in workflow.split("BOWLINE_").skip(1) {
            let name: String = variable.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
            let readers = [
                "tests/sim/main.rs",
                "tests/differential/main.rs",
                "tests/differential/agree.rs",
                "testkit/src/deployment.rs",
                "testkit/src/env/application.rs",
                "tests/faults/processes/jobs.rs",
            ];
            let is_read = readers.iter().any(|test| page(test).contains(&format!("\"BOWLINE_{name}\"")))
                || page("scripts/test").contains(&format!("${{BOWLINE_{name}:-}}"));
            assert!(is_read, "{file}: nothing reads BOWLINE_{name}");
        }
    }
}
