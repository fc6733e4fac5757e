//! The table of shard channels, shared by the subscriptions and the task that keeps them.

use std::sync::{Arc, Mutex};

use event_listener::{Event, EventListener};
use rustc_hash::FxHashSet;

use super::super::host::Host;
use super::table::Table;
use crate::mutex::lock;

#[derive(Default)]
pub(in super::super) struct Channels {
    table: Mutex<Table>,
    /// Notified when a channel has become wanted at a master at which none was wanted before.
    pub(super) new: Event,
}

impl Channels {
    /// Reads or changes the table. Tells the subscriptions what has changed for them, and wakes the masters whose
    /// wanted channels have changed.
    pub(in super::super) fn look<T>(&self, look: impl FnOnce(&mut Table) -> T) -> T {
        let (looked, news, (woken, is_new)) = {
            let mut table = lock(&self.table);
            (look(&mut table), table.take_news(), table.places.take_woken())
        };
        news.tell();
        woken.iter().for_each(|event| {
            event.notify(usize::MAX);
        });
        if is_new {
            self.new.notify(usize::MAX);
        }
        looked
    }

    /// Returns a listener for changes of the channels that are wanted at this master.
    pub(super) fn listen(&self, host: &Host) -> EventListener {
        self.look(|table| table.places.listen(host))
    }

    /// The channels that are wanted at this master.
    pub(super) fn wanted_at(&self, host: &Host) -> FxHashSet<Arc<str>> {
        self.look(|table| table.places.wanted(host).cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use futures::channel::mpsc::{self, UnboundedReceiver};
    use futures::channel::oneshot::{self, Receiver};
    use futures::{FutureExt, StreamExt};

    use super::*;
    use crate::connection::{ConnectionError, Notice};
    use crate::redis::cluster::sharded::places::tests::map_of;
    use crate::redis::failure::Failure;

    const NAME: &str = "p:inbox:{3}:client";

    /// A waker that uses the table at once.
    #[derive(Default)]
    struct Uses {
        channels: Channels,
        woken: AtomicUsize,
    }

    impl Wake for Uses {
        fn wake(self: Arc<Self>) {
            assert!(self.channels.table.try_lock().is_ok(), "the table is locked");
            self.woken.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Subscribed {
        id: u64,
        notices: UnboundedReceiver<Notice>,
        confirmed: Receiver<Result<(), Failure>>,
    }

    fn subscribe(uses: &Uses) -> Subscribed {
        let ((sender, notices), (confirm, confirmed)) = (mpsc::unbounded(), oneshot::channel());
        let id = uses.channels.look(|table| table.add(&NAME.into(), sender, confirm)).unwrap();
        Subscribed { id, notices, confirmed }
    }

    impl Uses {
        /// Polls with `waits`, and checks that the change wakes.
        fn wakes(self: &Arc<Self>, waits: impl FnOnce(&mut Context<'_>), change: impl FnOnce(&mut Table)) {
            let (before, waker) = (self.woken.load(Ordering::SeqCst), Waker::from(Arc::clone(self)));
            waits(&mut Context::from_waker(&waker));
            self.channels.look(change);
            assert!(self.woken.load(Ordering::SeqCst) > before, "the change wakes the waiter");
        }
    }

    #[test]
    fn those_who_are_told_may_use_the_table() {
        let (uses, [one, other]) = (Arc::new(Uses::default()), [1, 2].map(|port| Host::new("127.0.0.1", port)));
        let (name, refusal) = (Arc::from(NAME), Failure::Refused(ConnectionError::refused("NOPERM no")));
        let confirmed = |of: &mut Subscribed, change: &dyn Fn(&mut Table)| {
            uses.wakes(|context| assert!(of.confirmed.poll_unpin(context).is_pending()), change);
        };
        let notified = |of: &mut Subscribed, change: &dyn Fn(&mut Table)| {
            uses.wakes(|context| while of.notices.poll_next_unpin(context).is_ready() {}, change);
        };
        uses.channels.look(|table| table.places.follow(&map_of([1, 2])));
        let mut first = subscribe(&uses);
        let id = first.id;
        confirmed(&mut first, &|table| table.subscribed(&name, &one));
        notified(&mut first, &|table| table.deliver(NAME, &one, b"m".to_vec()));
        notified(&mut first, &|table| table.subscribed(&name, &other));
        notified(&mut first, &|table| table.left(NAME, &other));
        notified(&mut first, &|table| table.subscribed(&name, &one));
        notified(&mut first, &|table| table.left_all(&one));
        notified(&mut first, &|table| table.refused(NAME, &refusal));
        notified(&mut first, &|table| table.remove(&name, id));
        let mut second = subscribe(&uses);
        confirmed(&mut second, &|table| table.refused(NAME, &refusal));
        let mut third = subscribe(&uses);
        notified(&mut third, &|table| table.close());
    }
}
