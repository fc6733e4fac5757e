//! What a connection tells the server about itself, for `CLIENT LIST` and for those who read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::redis::{Cmd, cmd};

use super::super::url::invalid;
use crate::connection::{ConnectionError, Reply};
use crate::error::Result;

/// Says `HELLO`, with the name of the client if it has one, and the name of the library.
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

    /// Adds the name to a `HELLO` with a version.
    pub(in crate::redis) fn add_name(&self, hello: &mut Cmd) {
        if let Some(name) = &self.name {
            hello.arg("SETNAME").arg(&**name);
        }
    }

    pub(in crate::redis) fn commands(&self) -> Vec<Cmd> {
        let mut hello = cmd("HELLO");
        if self.name.is_some() {
            hello.arg(3);
            self.add_name(&mut hello);
        }
        if self.is_refused.load(Ordering::Relaxed) {
            return vec![hello];
        }
        let info = [("LIB-NAME", env!("CARGO_PKG_NAME")), ("LIB-VER", env!("CARGO_PKG_VERSION"))];
        let info = info.map(|(what, value)| {
            let mut command = cmd("CLIENT");
            command.arg("SETINFO").arg(what).arg(value);
            command
        });
        [hello].into_iter().chain(info).collect()
    }

    /// Reads the replies to as many commands, and returns that to `HELLO`.
    pub(in crate::redis) fn read(
        &self,
        sent: usize,
        replies: &mut impl Iterator<Item = std::result::Result<Reply, ConnectionError>>,
    ) -> std::result::Result<Reply, ConnectionError> {
        let mut replies = replies.take(sent);
        let hello = replies.next().unwrap_or(Ok(Reply::Nil));
        if replies.filter(std::result::Result::is_err).count() > 0 {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        hello
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

    fn words(introduction: &Introduction) -> Vec<String> {
        let packed = |command: &Cmd| String::from_utf8(command.get_packed_command()).unwrap();
        let words = |packed: String| packed.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ");
        introduction.commands().iter().map(packed).map(words).collect()
    }

    #[test]
    fn a_refusal_is_the_last_one() {
        let named = Introduction::of(Some("svc".into()));
        let version = env!("CARGO_PKG_VERSION");
        let info = ["CLIENT SETINFO LIB-NAME bowline", &format!("CLIENT SETINFO LIB-VER {version}")];
        assert_eq!(words(&Introduction::default()), [&["HELLO"], &info[..]].concat());
        assert_eq!(words(&named), [&["HELLO 3 SETNAME svc"], &info[..]].concat());
        let ok = || Ok(Reply::Bytes(b"OK".to_vec()));
        let (hello, denied) = (|| Ok(Reply::Integer(7)), || Err(ConnectionError::refused("NOPERM no")));
        let mut replies = [hello(), ok(), ok(), denied()].into_iter();
        assert_eq!(named.read(3, &mut replies), hello());
        assert_eq!(replies.next(), Some(denied()), "the rest is not read");
        assert_eq!(words(&named).len(), 3, "the reply to another command does not count");
        assert_eq!(named.read(3, &mut [hello(), ok(), denied()].into_iter()), hello());
        assert_eq!(words(&named), ["HELLO 3 SETNAME svc"]);
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
