//! What is asked about a client itself.

use uuid::Uuid;

use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::fields::Fields;
use super::key::{Keys, inbox, type_of};
use super::reply::ServerMillis;
use super::script::scripts;

scripts! { "client", "client": LISTENERS = "listeners", RIGHTS = "rights", TYPES = "types" }

impl Scripts<'_> {
    /// Issues every command that the scripts issue, on the scratch keys `keys` and a channel of the client's own, and
    /// leaves nothing. Returns what the server's clock shows.
    pub(crate) async fn try_rights(self, keys: &Keys, client: Uuid) -> Result<ServerMillis, Failure> {
        let channel = format!("{}:check", inbox(self.inbox_prefix, None, client));
        self.send(rights(keys, &channel)).await
    }

    /// The number of subscribers of an inbox: its client, once it has subscribed, and others with the same id.
    pub(crate) async fn listeners(self, scratch: &str, inbox: &str) -> Result<u64, Failure> {
        self.send(listeners(scratch, inbox)).await
    }
}

pub(super) fn rights<'a>(keys: &'a Keys, channel: &'a str) -> ScriptCall<'a, ServerMillis> {
    let call = ScriptCall::new(&RIGHTS, keys.all(), |fields| fields.number()).text(channel);
    keys.all().fold(call, |call, key| call.text(type_of(key)))
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
