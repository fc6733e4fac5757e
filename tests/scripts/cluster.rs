//! In a cluster a script may touch one slot only, and `PUBLISH` counts the node's own subscribers only.

use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{CANCEL_GONE, CANCEL_RELEASED, Forced, Lab, RELEASED, State, attempt, grant};
use crate::support::server::Server;

fn node() -> Server {
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
    // Nobody on this node listens for the third client: it may be on another.
    assert_eq!(lab.cancel(&b), CANCEL_RELEASED);
    lab.assert_holder(&c);
    assert!(matches!(lab.force_release(&c), Forced::Released { .. }));
    lab.assert_holder(&d);
    assert_eq!(lab.cancel(&d), CANCEL_RELEASED);
    assert_eq!(lab.cancel(&d), CANCEL_GONE);
    lab.assert_free();
}
