//! What the command line can say. The sentences are those of the help and of the man page.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

use crate::exit::{FAILED, NOT_KNOWN};

pub(crate) mod health;
pub(crate) mod look;
pub(crate) mod run;

/// Runs commands under distributed locks on Redis, and shows who holds and who waits.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) servers: Servers,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(run::Run),
    Inspect(look::Inspect),
    Watch(look::Watch),
    Ls(look::Ls),
    Release(look::Release),
    Deadlocks(look::Deadlocks),
    Leader(look::Leader),
    #[command(subcommand)]
    Latch(look::Latch),
    Ping(health::Ping),
    Doctor(health::Doctor),
    #[cfg(feature = "top")]
    Top(health::Top),
    /// Writes the completions for a shell.
    Completions {
        shell: clap_complete::Shell,
    },
    /// Writes the man pages and all completions into a folder, for packages.
    #[command(hide = true)]
    Generate {
        folder: PathBuf,
    },
}

/// Where to connect. An option wins over the environment, and the environment over the file.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct Servers {
    /// The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name,
    /// redis-cluster://host,host. A password in an argument is visible to other users of this machine: use
    /// --password-file or the environment.
    #[arg(long, global = true, env = "BOWLINE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout.
    // Clap refuses an empty path, and an empty variable is one.
    #[arg(long, global = true, env = "BOWLINE_CONFIG", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) config: Option<OsString>,

    /// The user on the servers.
    #[arg(long, global = true, env = "BOWLINE_USERNAME", value_name = "NAME")]
    pub(crate) username: Option<String>,

    /// A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself.
    #[arg(long, global = true, env = "BOWLINE_PASSWORD_FILE", value_name = "FILE")]
    pub(crate) password_file: Option<String>,

    /// The certificates of the authorities to trust, in PEM, instead of those of the system.
    #[arg(long, global = true, env = "BOWLINE_CACERT", value_name = "FILE")]
    pub(crate) cacert: Option<String>,

    /// The client's own certificate, in PEM.
    #[arg(long, global = true, env = "BOWLINE_CERT", value_name = "FILE")]
    pub(crate) cert: Option<String>,

    /// The key of the client's own certificate, in PEM.
    #[arg(long, global = true, env = "BOWLINE_KEY", value_name = "FILE")]
    pub(crate) key: Option<String>,

    /// The start of all keys. Programs with another prefix do not see these locks. The default is bowline.
    #[arg(long, global = true, env = "BOWLINE_PREFIX", value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
}

/// The exit code for arguments that are wrong. Monitors take the one of other verbs for something else.
pub(crate) fn code_of_misuse(words: impl Iterator<Item = OsString>) -> u8 {
    let found = Arguments::command().ignore_errors(true).try_get_matches_from(words);
    match found {
        Ok(found) if found.subcommand_name() == Some("doctor") => NOT_KNOWN,
        _ => FAILED,
    }
}

/// The message about wrong arguments. What was written is not repeated if it may contain a password: a URL, or a part
/// of one, in a wrong place.
pub(crate) fn explain(error: &clap::Error, mut words: impl Iterator<Item = OsString>) -> String {
    let may_be_url = |word: OsString| {
        let word = word.to_string_lossy();
        word.contains("://") || word.contains('@')
    };
    // The other kinds quote what was written.
    let names_options_only = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::ArgumentConflict
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if names_options_only || !words.any(may_be_url) {
        return error.render().to_string();
    }
    // What could have been written is no secret.
    let valid = error.get(ContextKind::ValidValue).map(ToString::to_string).filter(|valid| !valid.is_empty());
    let valid = valid.map_or_else(String::new, |valid| format!("\n  [possible values: {valid}]"));
    let usage = error.get(ContextKind::Usage).map_or_else(String::new, |usage| format!("\n\n{usage}"));
    format!("error: {} (not shown: it may contain a password){valid}{usage}", error.kind())
}

/// A time such as `1h 30m`, `10s` or `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    // humantime 2.4 panics at some sums that are too long, and at no single part.
    let mut sum = Duration::ZERO;
    for part in parts(text) {
        let part = humantime::parse_duration(part);
        let part = part.map_err(|error| format!("{error}; write it as 10s, 250ms or 1h 30m"))?;
        sum = sum.checked_add(part).ok_or("the time is too long")?;
    }
    Ok(sum)
}

/// A time that is more than nothing.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| if time.is_zero() { Err("must be more than 0s".to_owned()) } else { Ok(time) })
}

/// The numbers of a time, each with its unit.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut last) = (Vec::new(), 0, ' ');
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        if c.is_ascii_digit() && last.is_alphabetic() {
            parts.push(&text[start..at]);
            start = at;
        }
        last = c;
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_part_or_several() {
        for text in ["10s", "250ms", "1h 30m", "1h30m", " 1 h 30 m ", "1 0s", "1.5h 2us", "3µs4ns", "0s"] {
            assert_eq!(duration(text), Ok(humantime::parse_duration(text).unwrap()), "{text:?}");
        }
        for text in ["", " ", "soon", "10", "1h 30", "1h x", "h", "1h, 30m", "-1s"] {
            let told = duration(text).unwrap_err();
            assert!(humantime::parse_duration(text).is_err() && told.contains("write it as 10s"), "{text:?}: {told}");
        }
    }

    #[test]
    fn a_time_that_is_too_long_is_an_error() {
        let longest = "18446744073709551615s 999999999ns";
        assert_eq!(duration(longest), Ok(Duration::MAX));
        for more in [" 1ns", " 1s", " 1000000000ns", "1ns x"] {
            assert!(duration(&format!("{longest}{more}")).is_err(), "{more}");
        }
        assert!(duration("18446744073709551616s").is_err());
    }
}
