//! What is asked about a client itself.

use std::slice::from_ref;
use std::time::Duration;

use uuid::Uuid;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::fields::Fields;
use super::key::{Keys, Named, inbox, type_of};
use super::reply::ServerMillis;
use super::script::scripts;

scripts! {
    "client", "client":
    ASK = "ask",
    LABEL = "label",
    LABELS = "labels",
    LISTENERS = "listeners",
    RIGHTS = "rights",
    TYPES = "types",
}

impl Scripts<'_> {
    /// Issues every command that the scripts issue, on the scratch keys `keys` and a channel of the client's own, and
    /// leaves nothing. The keys are in one slot. Returns what the server's clock shows.
    pub(crate) async fn try_rights(self, keys: &[Keys], client: Uuid) -> Result<ServerMillis, Failure> {
        let channel = format!("{}:check", inbox(self.inbox_prefix, None, client));
        self.send(rights(keys, &channel)).await
    }

    /// Calls the script that [`try_rights`](Self::try_rights) has brought to the server, and tries nothing. The call
    /// needs the right to `EVALSHA`.
    pub(crate) async fn try_calling(self, keys: &Keys) -> Result<ServerMillis, Failure> {
        self.send(rights(from_ref(keys), "")).await
    }

    /// The number of subscribers of an inbox: its client, once it has subscribed, and others with the same id.
    pub(crate) async fn listeners(self, scratch: &str, inbox: &str) -> Result<u64, Failure> {
        self.send(listeners(scratch, inbox)).await
    }

    /// Asks the clients of these holds to release them.
    pub(crate) async fn ask_to_release(self, keys: &Keys, ids: &[AttemptId]) -> Result<ServerMillis, Failure> {
        self.send(ask(keys, self.inbox_prefix, ids)).await
    }

    /// Stores the label of a client for a time, or removes it if the time is zero.
    pub(crate) async fn store_label(
        self,
        labels: &Named,
        client: Uuid,
        (ttl, not_after): (Duration, ServerMillis),
        label: &str,
    ) -> Result<ServerMillis, Failure> {
        self.send(store_label(labels, client, (ttl, not_after), label)).await
    }

    /// The labels of clients, in their order. A client without one has an empty label.
    pub(crate) async fn labels(self, labels: &Named, clients: &[Uuid]) -> Result<Vec<String>, Failure> {
        self.send(read_labels(labels, clients)).await
    }
}

pub(super) fn ask<'a>(keys: &'a Keys, inbox_prefix: &'a str, ids: &[AttemptId]) -> ScriptCall<'a, ServerMillis> {
    let call = ScriptCall::new(&ASK, [keys.main()].into_iter(), |fields| fields.number()).text(inbox_prefix);
    call.each(ids, |call, id| call.id(*id))
}

pub(super) fn store_label<'a>(
    labels: &'a Named,
    client: Uuid,
    (ttl, not_after): (Duration, ServerMillis),
    label: &'a str,
) -> ScriptCall<'a, ServerMillis> {
    ScriptCall::new(&LABEL, labels.of_labels(), |fields| fields.number())
        .client(client)
        .millis(ttl)
        .number(not_after)
        .text(label)
}

pub(super) fn read_labels<'a>(labels: &'a Named, clients: &[Uuid]) -> ScriptCall<'a, Vec<String>> {
    ScriptCall::new(&LABELS, labels.of_labels(), |fields| {
        fields.number()?;
        each(fields)
    })
    .each(clients, |call, client| call.client(*client))
}

pub(super) fn rights<'a>(keys: &'a [Keys], channel: &'a str) -> ScriptCall<'a, ServerMillis> {
    let all = || keys.iter().flat_map(Keys::all);
    let call = ScriptCall::new(&RIGHTS, all(), |fields| fields.number()).text(channel);
    all().fold(call, |call, key| call.text(type_of(key)))
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
