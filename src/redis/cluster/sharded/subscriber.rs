//! One subscription of a shard channel.

use futures::channel::mpsc::UnboundedSender;
use futures::channel::oneshot;

use super::super::super::failure::Failure;
use crate::connection::Notice;

/// What a subscription is confirmed by.
pub(super) type Confirm = oneshot::Sender<Result<(), Failure>>;

pub(super) struct Subscriber {
    pub(super) id: u64,
    pub(super) notices: UnboundedSender<Notice>,
    /// Receives the confirmation of the subscription.
    pub(super) confirm: Option<Confirm>,
}
