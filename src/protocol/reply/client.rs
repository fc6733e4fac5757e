//! What the script about a client replies.

use super::{UnexpectedReply, decode};
use crate::connection::Reply;
use crate::protocol::Script;

pub(crate) fn listeners(script: &Script, reply: &Reply) -> Result<u64, UnexpectedReply> {
    decode(script, reply, |fields| {
        let (listeners, _now) = (fields.number()?, fields.number()?);
        Some(listeners)
    })
}
