//! Messages through shard channels, which the scripts of a cluster send if the prefix of the inboxes has a hash tag.

use std::time::Duration;

use bowline::wire;
use redis::{Connection, Value};
use uuid::Uuid;

use crate::cluster::node;
use crate::lab::{Attempt, Forced, Lab, RELEASED, attempt};
use crate::permits::lab::Permits;

/// `None` on servers that have none.
fn lab() -> Option<Lab> {
    let server = node();
    if !server.has_shard_channels() {
        return None;
    }
    let mut lab = Lab::on(server);
    lab.sharded = true;
    Some(lab)
}

fn lock() -> wire::Resource {
    crate::lab::lock("n").sharded(true)
}

/// One subscription of a client.
struct Inbox(Connection);

impl Inbox {
    fn open(lab: &Lab, command: &str, channel: &str) -> Self {
        let mut connection = lab.server.client();
        let confirmed: Value = redis::cmd(command).arg(channel).query(&mut connection).unwrap();
        assert!(matches!(confirmed, Value::Array(_)), "{confirmed:?}");
        connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self(connection)
    }

    /// In the slot of the resource.
    fn of(lab: &Lab, resource: &wire::Resource, client: &Attempt) -> Self {
        Self::open(lab, "SSUBSCRIBE", &resource.inbox(uuid(client)))
    }

    /// The next message, without the server's time.
    fn read(&mut self) -> String {
        let Value::Array(message) = self.0.recv_response().unwrap() else { panic!("no message") };
        let Some(Value::BulkString(payload)) = message.into_iter().nth(2) else { panic!("no payload") };
        String::from_utf8(payload).unwrap()
    }
}

fn uuid(attempt: &Attempt) -> Uuid {
    attempt.id.split(':').next().unwrap().parse().unwrap()
}

/// The words of a grant are a token, a time and an attempt id.
fn granted(message: &str) -> &str {
    message.split(' ').nth(2).unwrap()
}

#[test]
fn the_first_waiter_that_reads_its_inbox_is_granted_and_told() {
    let Some(mut lab) = lab() else { return };
    let [holder, absent, elsewhere, waiter] = [1, 2, 3, 4].map(|client| attempt(client, 1));
    // Subscribers of the inbox without a slot, or of another slot's inbox, get no message about this name.
    let plain = crate::lab::lock("n").inbox(uuid(&elsewhere));
    let _plain = Inbox::open(&lab, "SUBSCRIBE", &plain);
    let _other = Inbox::of(&lab, &crate::lab::lock("m").sharded(true), &elsewhere);
    let mut inbox = Inbox::of(&lab, &lock(), &waiter);
    lab.acquire(&holder).token();
    for attempt in [&absent, &elsewhere, &waiter] {
        lab.acquire(attempt).queued();
    }
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_holder(&waiter);
    lab.assert_queue(&[&absent, &elsewhere]);
    assert_eq!(granted(&inbox.read()), waiter.id);
}

#[test]
fn permits_are_told_in_the_same_way() {
    let Some(lab) = lab() else { return };
    let mut lab = Permits::read_write_on(lab);
    let permits = wire::Resource::read_write("p", "n").unwrap().sharded(true);
    let (holder, absent, waiter) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    let mut inbox = Inbox::of(&lab, &permits, &waiter);
    let holder = holder.units(1 << 20);
    lab.hold(&[&holder]);
    lab.queue(&[&absent, &waiter]);
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_held(&[&waiter]);
    assert_eq!(granted(&inbox.read()), waiter.id);
}

#[test]
fn so_are_those_who_wait_for_a_latch() {
    let Some(mut lab) = lab() else { return };
    let latch = wire::Resource::latch("p", "n").unwrap().sharded(true);
    let waiter = attempt(2, 1);
    let mut inbox = Inbox::of(&lab, &latch, &waiter);
    let copy = |n| wire::Copy { client: Uuid::from_u128(1), n, not_after: 0, known_until: 0, resent: false };
    for sent in
        [latch.set(copy(1), 1, Duration::from_secs(60)), latch.acquire(waiter.wire(), true), latch.count_down(copy(2))]
    {
        run(&mut lab, &sent);
    }
    assert_eq!(inbox.read(), format!("open {}", waiter.id));
}

/// A holder that has not waited reads no inbox of the slot.
#[test]
fn a_revocation_goes_to_the_inbox_without_a_slot() {
    let Some(mut lab) = lab() else { return };
    let holder = attempt(1, 1);
    let mut inbox = Inbox::open(&lab, "SUBSCRIBE", &crate::lab::lock("n").inbox(uuid(&holder)));
    lab.acquire(&holder).token();
    assert!(matches!(lab.force_release(&holder), Forced::Released { .. }));
    assert_eq!(inbox.read(), format!("revoked {}", holder.id));
}

/// What may not be sent undoes the grant, as with the other command.
#[test]
fn a_message_that_is_refused_is_no_grant() {
    let Some(mut lab) = lab() else { return };
    let (holder, waiter) = (attempt(1, 1), attempt(2, 1));
    let _inbox = Inbox::of(&lab, &lock(), &waiter);
    lab.acquire(&holder).token();
    lab.acquire(&waiter).queued();
    lab.raw(&["ACL", "SETUSER", "default", "-spublish"]);
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_free();
    lab.assert_queue(&[&waiter]);
    lab.raw(&["ACL", "SETUSER", "default", "+spublish"]);
}

fn run(lab: &mut Lab, request: &wire::Request) -> Value {
    let (keys, args) = (request.keys(), request.words());
    let mut command = redis::cmd("EVAL");
    command.arg(request.script.source()).arg(keys.len()).arg(keys).arg(args);
    command.query(&mut lab.connection).unwrap()
}
