//! A stream that is dialled before there is a use for it.

use std::sync::{Arc, Mutex};

use futures::channel::oneshot;

use super::super::url::target::Target;
use super::Stream;
use crate::mutex::lock;

/// A stream to this server, on which nothing has been sent yet.
pub(in crate::redis) type Open = (Arc<Target>, Stream);

/// At most one stream, for the first who takes it.
#[derive(Default)]
pub(in crate::redis) struct Ahead(Mutex<Option<oneshot::Sender<Wanted>>>);

/// Who waits for the stream.
pub(in crate::redis) type Wanted = oneshot::Sender<Open>;

impl Ahead {
    /// The task of the stream hears here who wants it.
    pub(in crate::redis) fn offer(&self) -> oneshot::Receiver<Wanted> {
        let (offer, wanted) = oneshot::channel();
        *lock(&self.0) = Some(offer);
        wanted
    }

    /// The stream, once it is open. `None`: none was offered, another one has it, or it could not be opened.
    pub(in crate::redis) async fn take(&self) -> Option<Open> {
        let offer = lock(&self.0).take()?;
        let (wanted, stream) = oneshot::channel();
        offer.send(wanted).ok()?;
        stream.await.ok()
    }
}
