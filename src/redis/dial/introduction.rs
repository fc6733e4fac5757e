//! What a connection tells the server about itself, for `CLIENT LIST` and for those who read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::redis::{Cmd, Value, cmd};

use super::super::login::{self, Login};
use super::super::url::invalid;
use crate::error::Result;

/// Says `HELLO`, with the login and the name of the client if there is one, and the name of the library.
///
/// Every user may say `HELLO`, also with a name. `CLIENT SETINFO` is known since Redis 7.2, and needs a right. It is
/// left out after the first refusal, so that a user without the right has at most one entry in the ACL log.
#[derive(Default)]
pub(in crate::redis) struct Introduction {
    name: Option<Arc<str>>,
    is_refused: AtomicBool,
}

impl Introduction {
    pub(in crate::redis) fn of(name: Option<Arc<str>>) -> Self {
        Self { name, is_refused: AtomicBool::new(false) }
    }

    pub(in crate::redis) fn hello(&self, login: Option<&Login>) -> Cmd {
        let mut hello = cmd("HELLO");
        hello.arg(3);
        if let Some(login) = login {
            hello.arg("AUTH").arg(&login::words(login));
        }
        if let Some(name) = &self.name {
            hello.arg("SETNAME").arg(&**name);
        }
        hello
    }

    /// What follows the `HELLO`.
    pub(super) fn commands(&self) -> Vec<Cmd> {
        if self.is_refused.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let info = [("LIB-NAME", env!("CARGO_PKG_NAME")), ("LIB-VER", env!("CARGO_PKG_VERSION"))];
        let command = |(what, value)| {
            let mut command = cmd("CLIENT");
            command.arg("SETINFO").arg(what).arg(value);
            command
        };
        info.map(command).into()
    }

    /// Takes the replies to [`commands`](Self::commands) off the front.
    pub(super) fn read(&self, sent: usize, replies: &mut impl Iterator<Item = Value>) {
        if replies.take(sent).filter(|reply| matches!(reply, Value::ServerError(_))).count() > 0 {
            self.is_refused.store(true, Ordering::Relaxed);
        }
    }
}

/// Checks a name as servers do.
pub(in crate::redis) fn check_name(name: &str) -> Result<()> {
    if !name.is_empty() && name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
        return Ok(());
    }
    Err(invalid("the name of a client is made of letters, digits and signs of ASCII, without spaces"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Cmd) -> String {
        let packed = String::from_utf8(command.get_packed_command()).unwrap();
        packed.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_login_and_the_name_are_said_if_there_are_any() {
        let (named, alice) = (Introduction::of(Some("svc".into())), Login::new("alice", "s3cret"));
        assert_eq!(words(&Introduction::default().hello(None)), "HELLO 3");
        assert_eq!(words(&named.hello(None)), "HELLO 3 SETNAME svc");
        assert_eq!(words(&named.hello(Some(&alice))), "HELLO 3 AUTH alice s3cret SETNAME svc");
    }

    #[test]
    fn a_refusal_is_the_last_one() {
        let introduction = Introduction::default();
        let version = env!("CARGO_PKG_VERSION");
        let info = ["CLIENT SETINFO LIB-NAME bowline", &format!("CLIENT SETINFO LIB-VER {version}")];
        let said = || introduction.commands().iter().map(words).collect::<Vec<_>>();
        assert_eq!(said(), info);
        let denied = || ::redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        let mut replies = [Value::Okay, Value::Okay, denied()].into_iter();
        introduction.read(2, &mut replies);
        assert_eq!(replies.next(), Some(denied()), "the rest is not read");
        assert_eq!(said(), info, "the reply to another command does not count");
        introduction.read(2, &mut [Value::Okay, denied()].into_iter());
        assert_eq!(said(), [""; 0]);
    }

    #[test]
    fn names() {
        for good in ["svc", "a-b_c:1/2", "~"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a\n", "\u{7f}", "é"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
