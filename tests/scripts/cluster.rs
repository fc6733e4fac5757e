//! In a cluster a script may touch one slot only, and `PUBLISH` counts the node's own subscribers only.

use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{CANCEL_GONE, CANCEL_RELEASED, Forced, Lab, RELEASED, State, attempt, grant};
use crate::latch::lab::{Counted, Deleted, Latch, Set, State as LatchState, call};
use crate::permits::lab::{Permits, SPAN, writer};
use crate::support::server::Server;

pub fn node() -> Server {
    let server = Server::start_with(&["--cluster-enabled", "yes"]);
    let mut client = server.client();
    let slots: Vec<u32> = (0..16_384).collect();
    redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(&mut client).unwrap();
    let start = Instant::now();
    while !redis::cmd("CLUSTER").arg("INFO").query::<String>(&mut client).unwrap().contains("cluster_state:ok") {
        assert!(start.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    server
}

#[test]
fn every_script_keeps_to_the_slot_of_the_name() {
    let mut lab = Lab::on(node());
    lab.counts_everyone = false;
    let (a, b, c, d) = (attempt(1, 1), attempt(2, 1), attempt(3, 1), attempt(4, 1));
    let inbox = lab.listen(2);
    lab.acquire(&a).token();
    for waiter in [&b, &c, &d] {
        lab.acquire(waiter).queued();
    }
    assert_eq!(lab.renew_one(&a), 1);
    assert_eq!(lab.release(&a), RELEASED);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&b, token)]);
    assert_eq!(lab.state(&b), State::Granted(token));
    // The third client has no subscriber on this node, but may have one on another.
    assert_eq!(lab.cancel(&b), CANCEL_RELEASED);
    lab.assert_holder(&c);
    assert!(matches!(lab.force_release(&c), Forced::Released { .. }));
    lab.assert_holder(&d);
    assert_eq!(lab.cancel(&d), CANCEL_RELEASED);
    assert_eq!(lab.cancel(&d), CANCEL_GONE);
    lab.assert_free();
}

#[test]
fn so_do_permits() {
    let mut lab = Permits::read_write_on(Lab::on(node()));
    lab.counts_everyone = false;
    let (w, r, other, next) = (writer(1, 1), attempt(1, 2), attempt(2, 1), writer(3, 1));
    lab.hold(&[&w]);
    lab.queue(&[&other, &next]);
    let inbox = lab.listen(2);
    let token = lab.change(&w, &r).token() + SPAN - 1;
    lab.assert_held(&[&r, &other]);
    assert_eq!(lab.read(&inbox), [grant(&other, token)]);
    assert_eq!((lab.renew_one(&r), lab.state(&other)), (1, State::Granted(token)));
    lab.expire_hold(&other);
    assert_eq!(lab.cancel(&r), CANCEL_RELEASED);
    lab.assert_held(&[&next]);
    assert_eq!(lab.release(&next), RELEASED);
    assert_eq!(lab.set_limit(7), crate::permits::lab::LIMIT);
}

#[test]
fn so_do_latches() {
    let mut lab = Latch::on(Lab::on(node()));
    let a = attempt(2, 1);
    assert_eq!(lab.set(&call(1), 2), Set::Set);
    lab.queue(&[&a, &attempt(3, 1)]);
    let inbox = lab.listen(2);
    assert!(lab.cancel(&attempt(3, 1)));
    assert_eq!((lab.count_down(&call(2)), lab.heartbeat(&[&a])), (Counted::Count(1), vec![LatchState::Waiting]));
    assert_eq!(lab.count_down(&call(3)), Counted::Count(0));
    assert_eq!(lab.read(&inbox), [format!("open {}", a.id)]);
    assert_eq!((lab.inspect().count, lab.delete(&call(4))), (0, Deleted::Deleted));
}
