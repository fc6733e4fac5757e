use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::channel::oneshot::{self, Receiver};

use super::super::places::tests::map_of;
use super::*;
use crate::connection::ConnectionError;

const CHANNEL: &str = "p:inbox:{3}:client";

struct Subscribed {
    id: u64,
    notices: UnboundedReceiver<Notice>,
    confirmed: Receiver<Result<(), Failure>>,
}

fn name() -> Arc<str> {
    CHANNEL.into()
}

fn host(port: u16) -> Host {
    Host::new("127.0.0.1", port)
}

fn subscribe(table: &mut Table) -> Option<Subscribed> {
    let (sender, notices) = mpsc::unbounded();
    let (confirm, confirmed) = oneshot::channel();
    table.told(|table| table.add(&name(), sender, confirm)).map(|id| Subscribed { id, notices, confirmed })
}

impl Table {
    /// The slot of the channel belongs to this master.
    fn with_slot_at(port: u16) -> Self {
        let mut table = Self::default();
        table.moves_to(port);
        table
    }

    fn moves_to(&mut self, port: u16) {
        self.told(|table| table.places.follow(&map_of([port, 9])));
    }

    /// Changes the table, and tells the subscriptions.
    fn told<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let changed = change(self);
        self.take_news().tell();
        changed
    }
}

impl Subscribed {
    fn is_confirmed(&mut self) -> bool {
        matches!(self.confirmed.try_recv(), Ok(Some(Ok(()))))
    }

    fn notices(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }
}

fn refusal() -> Failure {
    Failure::Refused(ConnectionError::refused("NOPERM no"))
}

#[test]
fn a_subscription_is_confirmed_once_and_then_has_gaps() {
    let mut table = Table::with_slot_at(1);
    let mut first = subscribe(&mut table).unwrap();
    assert_eq!(table.channels[&name()].slot, 1584);
    assert!(!first.is_confirmed());
    table.told(|table| table.subscribed(&name(), &host(1)));
    assert!(first.is_confirmed() && first.notices().is_empty());
    table.told(|table| table.deliver(CHANNEL, &host(1), b"m".to_vec()));
    table.told(|table| table.left(CHANNEL, &host(1)));
    table.moves_to(2);
    table.told(|table| table.subscribed(&name(), &host(2)));
    table.told(|table| table.deliver(CHANNEL, &host(2), b"n".to_vec()));
    let message = |text: &str| Notice::Message(text.as_bytes().to_vec());
    assert_eq!(first.notices(), [message("m"), Notice::Gap, Notice::Gap, message("n")]);
}

#[test]
fn a_second_subscription_shares_the_first() {
    let mut table = Table::with_slot_at(1);
    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.subscribed(&name(), &host(1)));
    let mut second = subscribe(&mut table).unwrap();
    assert!(second.is_confirmed());
    table.told(|table| table.remove(&name(), first.id));
    table.told(|table| table.deliver(CHANNEL, &host(1), b"m".to_vec()));
    assert_eq!((first.notices().len(), second.notices().len()), (0, 1));
    assert_eq!(table.channels.len(), 1);
    table.told(|table| table.remove(&name(), second.id));
    assert_eq!(table.channels.len(), 0);
}

/// The new master may confirm before the client notices that the old one's socket is useless.
#[test]
fn the_end_of_an_old_subscription_does_not_end_the_new_one() {
    let mut table = Table::default();
    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.subscribed(&name(), &host(1)));
    table.told(|table| table.subscribed(&name(), &host(2)));
    assert_eq!(first.notices(), [Notice::Gap]);
    table.told(|table| table.left(CHANNEL, &host(1)));
    table.told(|table| table.left_all(&host(1)));
    assert_eq!(first.notices(), []);
    // A message of the old master may be about a grant that is lost.
    table.told(|table| table.deliver(CHANNEL, &host(1), b"m".to_vec()));
    assert_eq!(first.notices(), []);
    table.told(|table| table.left_all(&host(2)));
    assert_eq!(first.notices(), [Notice::Gap]);
}

/// A master that stood still is replaced, and confirms what was asked before.
#[test]
fn a_late_confirmation_of_a_former_master_does_not_count() {
    let mut table = Table::with_slot_at(1);
    let mut first = subscribe(&mut table).unwrap();
    table.moves_to(3);
    table.told(|table| table.confirmed(&name(), &host(1)));
    assert!(!first.is_confirmed());
    table.told(|table| table.confirmed(&name(), &host(3)));
    assert!(first.is_confirmed());
    table.told(|table| table.confirmed(&name(), &host(1)));
    table.told(|table| table.left(CHANNEL, &host(1)));
    table.told(|table| table.deliver(CHANNEL, &host(3), b"m".to_vec()));
    assert_eq!(first.notices(), [Notice::Message(b"m".to_vec())]);
}

/// A master that stood still has been replaced, and sends what it had to send, before the socket is given up.
#[test]
fn a_message_of_a_former_master_is_not_delivered() {
    let mut table = Table::with_slot_at(1);
    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.confirmed(&name(), &host(1)));
    table.moves_to(3);
    table.told(|table| table.deliver(CHANNEL, &host(1), b"m".to_vec()));
    assert_eq!(first.notices(), []);
}

#[test]
fn a_refusal_ends_what_was_never_confirmed_and_is_told_once_to_the_others() {
    let mut table = Table::default();
    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.refused(CHANNEL, &refusal()));
    assert!(matches!(first.confirmed.try_recv(), Ok(Some(Err(Failure::Refused(_))))));
    assert_eq!(table.channels.len(), 0);

    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.subscribed(&name(), &host(1)));
    table.told(|table| table.left(CHANNEL, &host(1)));
    for _ in 0..2 {
        table.told(|table| table.refused(CHANNEL, &refusal()));
    }
    let notices = first.notices();
    assert!(matches!(notices[..], [Notice::Gap, Notice::Refused(_)]), "{notices:?}");
    table.told(|table| table.subscribed(&name(), &host(1)));
    table.told(|table| table.refused(CHANNEL, &refusal()));
    let notices = first.notices();
    assert!(matches!(notices[..], [Notice::Gap, Notice::Refused(_)]), "{notices:?}");
}

#[test]
fn the_last_trouble_is_known_until_it_is_over() {
    let mut table = Table::default();
    let _first = subscribe(&mut table).unwrap();
    table.failed(CHANNEL, &Failure::Io("gone".to_owned()));
    assert_eq!(table.trouble(CHANNEL).map(|failure| failure.to_string()), Some("gone".to_owned()));
    table.told(|table| table.subscribed(&name(), &host(1)));
    assert!(table.trouble(CHANNEL).is_none());
}

#[test]
fn a_closed_table_ends_every_subscription_and_takes_no_other() {
    let mut table = Table::default();
    let mut first = subscribe(&mut table).unwrap();
    table.told(|table| table.close());
    assert!(first.confirmed.try_recv().is_err(), "it is cancelled");
    assert!(subscribe(&mut table).is_none());
}
