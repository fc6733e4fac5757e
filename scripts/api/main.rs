//! Compares the public API in a file of rustdoc's JSON with the lines of docs/api.txt; see `scripts/public-api`.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use public_api::Builder;

/// Traits that the compiler implements by itself and that no user of the library names.
const NOISE: [&str; 4] = ["Freeze", "UnsafeUnpin", "UnwindSafe", "RefUnwindSafe"];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [json, listing, options @ ..] = &*arguments else {
        return Err("usage: bowline-api <rustdoc's JSON> <listing> [--write]".into());
    };
    let document: serde_json::Value = serde_json::from_slice(&fs::read(json)?)?;
    let format = document["format_version"].as_u64();
    if format != Some(rustdoc_types::FORMAT_VERSION.into()) {
        let read = rustdoc_types::FORMAT_VERSION;
        println!("skipped: this rustdoc writes format {format:?}, and the crate public-api reads {read}");
        return Ok(ExitCode::SUCCESS);
    }
    let found = lines(json)?;
    if options == ["--write"] {
        fs::write(listing, found.join("\n") + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let expected = fs::read_to_string(listing)?;
    let expected: Vec<&str> = expected.lines().collect();
    let removed =
        expected.iter().filter(|line| !found.iter().any(|other| other == *line)).map(|line| format!("- {line}"));
    let added = found.iter().filter(|line| !expected.contains(&line.as_str())).map(|line| format!("+ {line}"));
    let changes: Vec<String> = removed.chain(added).collect();
    if changes.is_empty() {
        println!("the public API is {listing}: {} lines", found.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", changes.join("\n"));
    Ok(ExitCode::FAILURE)
}

fn lines(json: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let api = Builder::from_rustdoc_json(json).omit_blanket_impls(true).build()?;
    let lines = api.items().map(ToString::to_string);
    let noise = |line: &str| NOISE.iter().any(|name| line.contains(&format!("::{name} for ")));
    Ok(lines.filter(|line| !noise(line)).collect())
}
