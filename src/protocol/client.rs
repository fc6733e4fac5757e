//! What is asked about a client itself.

use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::fields::Fields;
use super::script::scripts;

scripts! { "client", "client": LISTENERS = "listeners", TYPES = "types" }

impl Scripts<'_> {
    /// The number of subscribers of an inbox: its client, once it has subscribed, and others with the same id.
    pub(crate) async fn listeners(self, scratch: &str, inbox: &str) -> Result<u64, Failure> {
        self.send(listeners(scratch, inbox)).await
    }
}

pub(super) fn listeners<'a>(scratch: &'a str, inbox: &'a str) -> ScriptCall<'a, u64> {
    ScriptCall::new(&LISTENERS, [scratch].into_iter(), counted).text(inbox)
}

fn counted(fields: &mut Fields<'_>) -> Option<u64> {
    let (listeners, _now) = (fields.number()?, fields.number()?);
    Some(listeners)
}

pub(super) fn types<'a>(keys: &[&'a str]) -> ScriptCall<'a, Vec<String>> {
    ScriptCall::new(&TYPES, keys.iter().copied(), each)
}

fn each(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    (0..fields.entries()).map(|_| fields.word().map(str::to_owned)).collect()
}
