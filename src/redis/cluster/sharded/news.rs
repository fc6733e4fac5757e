//! What a change of the table sends to the subscriptions. It is sent after the table is unlocked: sending runs wakers,
//! which are foreign code and may use the connection.

use futures::channel::mpsc::UnboundedSender;

use super::super::super::failure::Failure;
use super::subscriber::{Confirm, Subscriber};
use crate::connection::Notice;

/// In the order of sending.
#[derive(Default)]
pub(super) struct News(Vec<Told>);

enum Told {
    Notice(UnboundedSender<Notice>, Notice),
    Confirmed(Confirm, Result<(), Failure>),
    /// The drop of the sender wakes the receiver, too.
    Ended(Subscriber),
}

impl News {
    pub(super) fn notice(&mut self, to: &UnboundedSender<Notice>, notice: Notice) {
        self.0.push(Told::Notice(to.clone(), notice));
    }

    /// Confirms the subscription. Returns whether it had not been confirmed before.
    pub(super) fn confirm(&mut self, subscriber: &mut Subscriber) -> bool {
        let confirm = subscriber.confirm.take();
        let is_new = confirm.is_some();
        confirm.into_iter().for_each(|confirm| self.confirmed(confirm, Ok(())));
        is_new
    }

    pub(super) fn confirmed(&mut self, to: Confirm, outcome: Result<(), Failure>) {
        self.0.push(Told::Confirmed(to, outcome));
    }

    pub(super) fn ended(&mut self, subscribers: impl IntoIterator<Item = Subscriber>) {
        self.0.extend(subscribers.into_iter().map(Told::Ended));
    }

    pub(super) fn tell(self) {
        for told in self.0 {
            // An error means that the receiver is gone.
            match told {
                Told::Notice(to, notice) => drop(to.unbounded_send(notice)),
                Told::Confirmed(to, outcome) => drop(to.send(outcome)),
                Told::Ended(subscriber) => drop(subscriber),
            }
        }
    }
}
