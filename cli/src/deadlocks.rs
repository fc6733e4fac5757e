//! `deadlocks`: clients that wait for each other.

use bowline::{Client, Deadlock};
use serde::Serialize;

use crate::args::look::Deadlocks;
use crate::exit::{Failure, NO, OK};
use crate::show::{self, Style, clean};
use crate::views::{access, kind, what, who};

#[derive(Debug, Serialize)]
struct Found {
    waits: Vec<Wait>,
    /// The hold to take, for example by `release --force`.
    way_out: Option<WayOut>,
}

#[derive(Debug, Serialize)]
struct Wait {
    client: String,
    label: Option<String>,
    kind: &'static str,
    name: String,
    access: &'static str,
    permits: Option<u32>,
    held_by_next: bool,
}

#[derive(Debug, Serialize)]
struct WayOut {
    kind: &'static str,
    name: String,
    client: String,
    token: Option<u64>,
}

pub(crate) async fn deadlocks(client: &Client, args: &Deadlocks) -> Result<u8, Failure> {
    let search = client.deadlocks().starting_with(&args.start);
    let search = match args.lasting {
        Some(time) => search.lasting(time),
        None => search,
    };
    let found: Vec<Found> = search.await?.iter().map(Found::from).collect();
    if args.form.json {
        show::json(&found)?;
    } else if found.is_empty() {
        show::lines(&["no deadlock".to_owned()])?;
    } else {
        let style = Style::of_output();
        show::lines(&found.iter().flat_map(|found| found.lines(style)).collect::<Vec<_>>())?;
    }
    Ok(if found.is_empty() { OK } else { NO })
}

impl From<&Deadlock> for Found {
    fn from(deadlock: &Deadlock) -> Self {
        let waits = deadlock.waits.iter().map(|wait| {
            let (access, permits) = access(wait.waits_for);
            Wait {
                client: wait.client.to_string(),
                label: wait.label.clone(),
                kind: kind(wait.name.kind),
                name: wait.name.name.clone(),
                access,
                permits,
                held_by_next: wait.is_held,
            }
        });
        let way_out = deadlock.way_out.as_ref().map(|way_out| WayOut {
            kind: kind(way_out.name.kind),
            name: way_out.name.name.clone(),
            client: way_out.client.to_string(),
            token: way_out.token.map(|token| token.get()),
        });
        Self { waits: waits.collect(), way_out }
    }
}

impl Found {
    fn lines(&self, style: Style) -> Vec<String> {
        let mut lines = vec![style.red("deadlock")];
        for wait in &self.waits {
            let who = who(wait.label.as_deref(), Some(&wait.client));
            let next =
                if wait.held_by_next { "which the next one holds" } else { "for which the next one waits before it" };
            lines.push(format!(
                "  {who} waits for {} {} ({}), {next}",
                wait.kind,
                style.bold(&clean(&wait.name)),
                what(wait.access, wait.permits)
            ));
        }
        if let Some(WayOut { kind, name, .. }) = &self.way_out {
            let command = word(name).map(|name| format!("bowline release --force --kind {kind} {name}"));
            let by_hand = || format!("take the {kind} {} by force; its exact name is in --json", clean(name));
            lines.push(format!("  a way out: {}", command.unwrap_or_else(by_hand)));
        }
        lines
    }
}

/// The name as the last arguments of a command, which a shell takes as they stand. `None`: a name with control
/// characters, which a terminal would act on.
fn word(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    if name.contains(char::is_control) {
        None
    } else if name.starts_with('-') || !name.chars().all(is_plain) {
        Some(format!("-- '{}'", name.replace('\'', r"'\''")))
    } else {
        Some(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_name_that_is_meant() {
        for name in
            ["bob", "jobs:a-1", "it's 5 o'clock", "$(touch x) `y` \\", "--all", "'", "ä \"!\" *", "~", "=ls", "a;b"]
        {
            let script = format!("printf '%s|' {}", word(name).unwrap());
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            assert_eq!(shown.trim_start_matches("--|"), format!("{name}|"), "{script}");
        }
        assert_eq!(word("bob").as_deref(), Some("bob"));
        for name in ["a\nb", "a\u{1b}[2J", "a\u{7f}", "a\u{9b}"] {
            assert_eq!(word(name), None, "{name:?}");
        }
    }
}
