//! `deadlocks`: clients that wait for each other.

use bowline::{Client, Deadlock};
use serde::Serialize;

use crate::args::Servers;
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

pub(crate) async fn deadlocks(client: &Client, servers: &Servers, args: &Deadlocks) -> Result<u8, Failure> {
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
        let (style, place) = (Style::of_output(), Place::of(servers, std::env::var("BOWLINE_URL").ok().as_deref()));
        show::lines(&found.iter().flat_map(|found| found.lines(style, &place)).collect::<Vec<_>>())?;
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
    fn lines(&self, style: Style, place: &Place) -> Vec<String> {
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
            let by_hand = || format!("take the {kind} {} by force; its exact name is in --json", clean(name));
            let way_out =
                word(name).map_or_else(by_hand, |name| place.call(&format!("release --force --kind {kind} {name}")));
            lines.push(format!("  a way out: {way_out}"));
        }
        lines
    }
}

/// How another call finds the same servers and names.
struct Place {
    /// The options to repeat, each with a space behind it.
    options: String,
    /// Those to repeat that are not shown: they may contain a password, or are no text that a terminal may show.
    hidden: Vec<&'static str>,
}

impl Place {
    /// `by_environment` is the URL that the next call has by itself.
    fn of(servers: &Servers, by_environment: Option<&str>) -> Self {
        let Servers { url, config, username, password_file, cacert, cert, key, prefix } = servers;
        let config = config.as_ref().map(|path| path.to_string_lossy().into_owned());
        let url = url.as_ref().filter(|url| by_environment != Some(url));
        let mut place = Self { options: String::new(), hidden: Vec::new() };
        for (option, value) in [
            ("--config", config.as_ref()),
            ("--url", url),
            ("--username", username.as_ref()),
            ("--password-file", password_file.as_ref()),
            ("--cacert", cacert.as_ref()),
            ("--cert", cert.as_ref()),
            ("--key", key.as_ref()),
            ("--prefix", prefix.as_ref()),
        ] {
            let Some(value) = value else { continue };
            // Passwords stand before the host, or among the settings.
            let is_secret = option == "--url" && value.contains(['@', '?']);
            // A replacement character shows that the path is no text.
            match quoted(value).filter(|_| !is_secret && !value.contains('\u{fffd}')) {
                Some(value) => place.options.push_str(&format!("{option}={value} ")),
                None => place.hidden.push(option),
            }
        }
        place
    }

    fn call(&self, verb: &str) -> String {
        let hidden = self.hidden.join(" and ");
        let with = if hidden.is_empty() { hidden } else { format!("  (with the same {hidden})") };
        format!("bowline {}{verb}{with}", self.options)
    }
}

/// The name as the last arguments of a command, which a shell takes as they stand. `None`: a name with control
/// characters, which a terminal would act on.
fn word(name: &str) -> Option<String> {
    let quoted = quoted(name)?;
    Some(if name.starts_with('-') || quoted != name { format!("-- {quoted}") } else { quoted })
}

/// The text as a shell takes it. `None`: a text with control characters.
fn quoted(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    if text.contains(char::is_control) {
        None
    } else if text.is_empty() || !text.chars().all(is_plain) {
        Some(format!("'{}'", text.replace('\'', r"'\''")))
    } else {
        Some(text.to_owned())
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
        assert_eq!(word("--all").as_deref(), Some("-- --all"));
        for name in ["a\nb", "a\u{1b}[2J", "a\u{7f}", "a\u{9b}"] {
            assert_eq!(word(name), None, "{name:?}");
        }
    }

    #[test]
    fn another_call_finds_the_same_servers_and_names() {
        let call = |servers: &Servers| Place::of(servers, Some("redis://env/")).call("ls");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(call(&Servers { url: text("redis://env/"), ..Servers::default() }), "bowline ls");
        let servers = Servers {
            url: text("redis://other:1/2"),
            config: Some("/etc/it's.toml".into()),
            prefix: text("two words"),
            ..Servers::default()
        };
        let shown = r"bowline --config='/etc/it'\''s.toml' --url=redis://other:1/2 --prefix='two words' ls";
        assert_eq!(call(&servers), shown);
        for url in ["redis://u:hunter2@h/", "unix:///x.sock?user=u&pass=hunter2", "u:hunter2@h"] {
            let servers = Servers { url: text(url), prefix: text("p"), ..Servers::default() };
            assert_eq!(call(&servers), "bowline --prefix=p ls  (with the same --url)", "{url}");
        }
    }
}
