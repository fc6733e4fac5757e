//! Explains refusals of a server to the people who set it up.

use super::error::ConnectionError;
use crate::protocol::{CALLS, Script};

/// What to change so that a client can connect. `prefix` is that of its keys. `None` if the server's message is clear
/// enough.
pub(crate) fn explain(error: &ConnectionError, prefix: &str) -> Option<String> {
    let ConnectionError::Refused { code, message } = error else { return None };
    Some(match code.as_str() {
        "READONLY" | "MASTERDOWN" | "UNBLOCKED" => "this is a replica; connect to its primary".to_owned(),
        "WRONGPASS" => "the user's name or password is wrong".to_owned(),
        "DENIED" => "the server is in protected mode: without a password, it serves its own machine only".to_owned(),
        "NOAUTH" => "the server asks for a password, but the URL has none".to_owned(),
        "NOPERM" => format!("{}; docs/acl.md lists the rights that bowline needs", missing_right(message, prefix)),
        _ => return None,
    })
}

/// Since 6.2 servers say "... permissions to <action>", or "... can't <action>" about a command inside a script.
fn missing_right(message: &str, prefix: &str) -> String {
    let what =
        ["permissions to ", "can't "].iter().find_map(|before| message.split_once(before)).map_or("", |(_, to)| to);
    let mut quoted = what.splitn(3, '\'');
    let (before, named) = (quoted.next().unwrap_or(""), quoted.next());
    let after = quoted.next().unwrap_or("");
    let is_about = |thing: &str| before.contains(thing) || after.contains(thing);
    let at = denied_at(message);
    if before.starts_with("run") {
        let by =
            at.as_ref().map_or(String::new(), |(script, line)| format!(", which the script {script} calls: {line}"));
        let command = match (named, &at) {
            (Some(command), _) => command.to_uppercase(),
            (None, Some((_, line))) => called(line),
            (None, None) => "a command".to_owned(),
        };
        return format!("the user may not run {command}{by}");
    }
    match named {
        Some(channel) if is_about("channel") => format!("the user may not use the channel {channel}"),
        None if is_about("channel") => format!("the user may not use the channels {prefix}:inbox:*"),
        Some(key) if is_about("key") => format!("the user may not use the key {key}"),
        None if is_about("key") => format!("the user may not use the keys {prefix}:*"),
        _ => "the user lacks a right".to_owned(),
    }
}

/// The name of the script that was refused a command, and the source line of that command. The server sends only the
/// number of the line: since 7.0 as `script: <sha1>, on @user_script:<line>.`, before as
/// `(call to f_<sha1>): @user_script:<line>:`.
fn denied_at(message: &str) -> Option<(&'static str, &'static str)> {
    let script = Script::all().find(|script| message.contains(script.sha1()))?;
    let (_, place) = message.split_once("@user_script:")?;
    let digits = place.split(|c: char| !c.is_ascii_digit()).next()?;
    let line = script.source().lines().nth(digits.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some((script.name(), line.trim()))
}

/// The commands in a line of Lua. Any of them may be the refused one.
fn called(line: &str) -> String {
    let parts: Vec<&str> = line.split("('").collect();
    let calls = parts.windows(2).filter(|pair| CALLS.iter().any(|call| pair[0].ends_with(call)));
    calls.filter_map(|pair| pair[1].split('\'').next()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(line: &str) -> String {
        explain(&ConnectionError::refused(line), "bowline").unwrap_or_default()
    }

    /// The messages of Redis 6.2, 7.0 and 7.2 and of Valkey.
    #[test]
    fn a_missing_right_is_named() {
        for (line, right) in [
            ("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", "run EVALSHA"),
            ("NOPERM User keymaster has no permissions to run the 'evalsha' command", "run EVALSHA"),
            ("NOPERM this user has no permissions to access one of the keys used as arguments", "the keys bowline:*"),
            ("NOPERM No permissions to access a key", "the keys bowline:*"),
            ("NOPERM User a has no permissions to access the 'channel' key", "the key channel"),
            ("NOPERM this user has no permissions to access one of the channels used as arguments", "bowline:inbox:*"),
            ("NOPERM No permissions to access a channel", "the channels bowline:inbox:*"),
            ("NOPERM User a has no permissions to access the 'a:key' channel", "the channel a:key"),
            ("ERR ACL failure in script: User a has no permissions to run the 'set' command script: x", "run SET"),
            ("ERR The user executing the script can't publish to the channel mentioned in the command", "inbox:*"),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the command",
                "keys",
            ),
        ] {
            let explained = explained(line);
            assert!(explained.contains(right) && explained.contains("docs/acl.md"), "{line}: {explained}");
        }
    }

    /// The server names the line but not the command.
    #[test]
    fn a_command_missing_in_a_script_is_read_from_its_line() {
        let calls = |line: &&str| line.contains(&format!("{}('", CALLS[0]));
        let script = Script::all().next().unwrap();
        let (number, line) = script.source().lines().enumerate().find(|(_, line)| calls(line)).unwrap();
        let (sha, number) = (script.sha1(), number + 1);
        let command = called(line);
        for refusal in [
            format!(
                "ERR The user executing the script can't run this command or subcommand script: {sha}, on @user_script:{number}."
            ),
            format!(
                "ERR Error running script (call to f_{sha}): @user_script:{number}: @user_script: {number}: The user executing the script can't run this command or subcommand"
            ),
        ] {
            let explained = explained(&refusal);
            assert!(
                explained.contains(&format!("run {command}, ")) && explained.contains(script.name()),
                "{explained}"
            );
        }
    }

    #[test]
    fn other_refusals() {
        assert!(explained("READONLY You can't write against a read only replica.").contains("this is a replica"));
        assert!(explained("WRONGPASS invalid username-password pair").contains("password is wrong"));
        assert!(explained("DENIED Redis is running in protected mode").contains("its own machine only"));
        assert!(explained("NOAUTH Authentication required.").contains("asks for a password"));
        assert_eq!(explained("LOADING Redis is loading"), "");
    }
}
