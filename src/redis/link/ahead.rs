//! The stream of the first subscription, which is dialled beside the login of the connection for commands.
//!
//! A client subscribes as soon as it has connected. With a stream that is open already, the first acquisition does not
//! wait for the handshakes of TCP and TLS once more. If nobody wants the stream within a second, it is closed. If it
//! fails, the subscription dials for itself.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select;

use super::super::dial::ahead::{Ahead, Open};
use super::super::dial::handshake::{self, Checked};
use super::super::dial::progress::DialProgress;
use super::super::dial::wishes::Wishes;
use super::super::failure::Failure;
use super::super::url::target::Target;
use super::Link;
use crate::on_drop::OnDrop;

/// How long a stream waits for its subscription. Nothing finds out whether an idle one still works.
pub(in super::super) const KEPT: Duration = Duration::from_secs(1);

impl Link {
    /// For a link whose first subscription follows the first connection at once.
    pub(in super::super) fn dialling_ahead(self) -> Self {
        Self { ahead: Some(Ahead::default()), ..self }
    }

    /// Starts the task that dials, if this link dials ahead. The task ends with the link.
    pub(super) fn dial_ahead(self: &Arc<Self>, target: &Arc<Target>) {
        let Some(ahead) = &self.ahead else { return };
        let dial = ahead.begin();
        let (link, target) = (Arc::clone(self), Arc::clone(target));
        // Made now, because the runtime may drop the task before its first poll.
        let end = OnDrop((Arc::clone(self), dial), |(link, dial)| {
            link.ahead.iter().for_each(|ahead| ahead.end(*dial, None));
        });
        self.executor.spawn(Box::pin(async move {
            let _end = end;
            select(pin!(keep(&link, dial, target)), pin!(link.closed())).await;
        }));
    }

    /// Makes the connection of a subscription, with the stream that was dialled ahead if it is still there.
    pub(in super::super) async fn dial_to_subscribe(
        &self,
        wishes: Wishes<'_>,
        progress: &Arc<DialProgress>,
    ) -> Result<Checked, Failure> {
        let ahead = match &self.ahead {
            Some(ahead) => ahead.take().await,
            None => None,
        };
        // The task that closes an old stream does not run while the runtime stands still.
        let ahead = ahead.filter(|open| self.executor.now() < open.since + KEPT);
        let Some(Open { target, stream, .. }) = ahead else { return self.dial(wishes, progress).await };
        let wishes = Wishes { dialled: Some(target.resume(stream, progress)), ..wishes };
        let made = handshake::connect(Arc::clone(&target), &*self.dialer, &self.executor, progress, (false, wishes));
        self.unless_left(&target, made).await
    }
}

/// Dials, and keeps the stream until it is taken or the time is up.
async fn keep(link: &Link, dial: u64, target: Arc<Target>) {
    let progress = Arc::default();
    // A dial that hangs leaves the subscription time for one of its own.
    let dialled = link.within(link.timeout / 2, target.dial(&*link.dialer, &progress)).await;
    let (Some(Ok(stream)), Some(ahead)) = (dialled, &link.ahead) else { return };
    ahead.end(dial, Some(Open { target, stream, since: link.executor.now() }));
    select(pin!(ahead.gone(dial)), link.executor.sleep(KEPT)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use ::tokio::io::duplex;

    use super::super::super::lab::{Lab, Tasks};
    use super::*;
    use crate::config::Config;
    use crate::runtime::Executor;

    /// The task that closes it does not run while the runtime stands still.
    #[test]
    fn a_stream_that_is_older_is_not_used() {
        for (age, dialled) in [(KEPT - Duration::from_millis(1), 0), (KEPT, 1)] {
            let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
            lab.nodes[&1].alone.store(true, Ordering::SeqCst);
            let target = Arc::new(Target::parse("redis://h:1").unwrap());
            let link = Link::new(lab.clone(), lab.clone(), Arc::new(target.clone()), &Config::default(), 7);
            let link = Arc::new(link.dialling_ahead());
            let (near, far) = duplex(1 << 10);
            let ahead = link.ahead.as_ref().unwrap();
            let dial = ahead.begin();
            ahead.end(dial, Some(Open { target, stream: Box::new(near), since: lab.now() }));
            lab.run(&mut tasks, lab.sleep(age));
            drop(far);
            let made = lab.run(&mut tasks, link.dial_to_subscribe(Wishes::default(), &Arc::default()));
            assert_eq!((made.is_ok(), lab.nodes[&1].sockets().len()), (dialled == 1, dialled));
        }
    }
}
