//! A client whose subscription and whose commands are at two servers: what it hears through the replica must be true at
//! the master.

use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{Acquired, Forced, Lab, RELEASED, State, attempt, grant};
use crate::permits::lab::{LEASES, Permits};
use crate::support::server::Server;

/// A server that has everything the lab's has.
fn replica_of(lab: &Lab) -> Server {
    let port = lab.server.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    let mut connection = replica.client();
    let start = Instant::now();
    loop {
        let info: String = redis::cmd("INFO").arg("replication").query(&mut connection).unwrap();
        if info.contains("master_link_status:up") {
            return replica;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{info}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_grant_that_was_not_made_is_not_heard_through_a_replica() {
    let (mut lab, a, token) = Lab::held();
    let replica = replica_of(&lab);
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    let inbox = lab.listen_at_replica(&replica, 2);
    lab.acquire(&b).queued();
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.read(&inbox), [""; 0], "a message about a grant that was undone");
    lab.assert_free();
    lab.assert_queue(&[&b]);
    let counter: u64 = redis::cmd("GET").arg(&lab.keys[3]).query(&mut lab.connection).unwrap();
    assert_eq!(counter, token, "a token was spent on a grant that was not made");
    // The next waiter gets the lock. The waiter without a subscriber must not believe that it has the lock.
    lab.acquire(&c).granted();
    assert_eq!(lab.read(&inbox), [""; 0]);
    lab.release(&c);
    assert!(matches!(lab.state(&b), State::Granted(_)), "it asks, and is next");
    // A fact about the master may be heard from any server.
    assert!(matches!(lab.force_release(&b), Forced::Released { .. }));
    assert_eq!(lab.read(&inbox), [format!("revoked {}", b.id)]);
}

#[test]
fn permits_that_were_not_granted_are_not_heard_through_a_replica() {
    let mut lab = Permits::semaphore(2);
    let replica = replica_of(&lab);
    let (a, b, c) = (attempt(1, 1).units(2), attempt(2, 1), attempt(3, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b, &c]);
    let (deaf, hears) = (lab.listen_at_replica(&replica, 2), lab.listen(3));
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.read(&deaf), [""; 0]);
    assert_eq!(lab.read(&hears), [grant(&c, 0)]);
    lab.assert_held(&[&c]);
    lab.assert_queue(&[&b]);
}

/// A subscriber to all inboxes is not the client.
#[test]
fn a_pattern_is_no_subscription() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b).queued();
    let watcher = lab.listen_by_pattern(2);
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.read(&watcher), [""; 0]);
    lab.assert_free();
    lab.assert_queue(&[&b]);
    // If the server cannot count all subscribers, the client is notified in any case.
    lab.counts_everyone = false;
    assert!(matches!(lab.try_acquire(&attempt(3, 1)), Acquired::Busy { .. }));
    lab.assert_holder(&b);
}

/// Each client is asked for once, however many tickets it has, and none of the caller's.
#[test]
fn one_question_for_each_client() {
    let mut lab = Permits::semaphore(8);
    let a = attempt(1, 1).units(8);
    lab.hold(&[&a]);
    let waiters: Vec<_> = (1..=6).map(|n| attempt(if n % 2 == 0 { 2 } else { 3 }, n)).collect();
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    lab.listen(2);
    lab.count_commands();
    assert_eq!(lab.release(&a), RELEASED);
    let held: Vec<_> = waiters.iter().filter(|waiter| waiter.client == 2).collect();
    lab.assert_held(&held);
    assert_eq!(lab.executed("pubsub"), 2);
    lab.count_commands();
    assert!(matches!(lab.state(&waiters[0]), State::Granted(_)));
    // The other two tickets of that client wait behind it and had no heartbeat.
    assert_eq!(lab.executed("pubsub"), 1);
}

/// How many changes of a TTL the replica has been sent. Waits for what `connection` has written.
fn changed_ttls(connection: &mut redis::Connection, replica: &Server) -> u64 {
    let acknowledged: u64 = redis::cmd("WAIT").arg(&["1", "10000"]).query(connection).unwrap();
    assert_eq!(acknowledged, 1);
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut replica.client()).unwrap();
    let calls = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
    info.lines().filter(|line| line.starts_with("cmdstat_pexpire")).filter_map(calls).sum()
}

/// Who waits for replicas waits for their last write, so that a renewal which writes nothing would be acknowledged at
/// once.
#[test]
fn a_renewal_is_always_sent_to_the_replicas_and_shortens_nothing() {
    let (mut lab, a, _) = Lab::held();
    let replica = replica_of(&lab);
    assert_eq!(lab.renew_one(&a.clone().lease(90_000)), 1);
    for lease in [90_000, 20_000, 1] {
        let before = changed_ttls(&mut lab.connection, &replica);
        assert_eq!(lab.renew_one(&a.clone().lease(lease)), 1);
        assert!(changed_ttls(&mut lab.connection, &replica) > before, "{lease}");
        assert!(lab.lock_ttl() > 80_000, "{lease}");
    }
    let before = changed_ttls(&mut lab.connection, &replica);
    assert_eq!(lab.renew_one(&a.lease(0)), 1);
    assert_eq!(changed_ttls(&mut lab.connection, &replica), before, "a look writes nothing");
}

#[test]
fn a_renewal_of_permits_is_always_sent_to_the_replicas_and_shortens_nothing() {
    let mut lab = Permits::read_write();
    let replica = replica_of(&lab);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    assert_eq!(lab.renew_one(&a.clone().lease(90_000)), 1);
    for lease in [90_000, 20_000, 1] {
        let before = changed_ttls(&mut lab.connection, &replica);
        assert_eq!(lab.renew_one(&a.clone().lease(lease)), 1);
        assert!(changed_ttls(&mut lab.connection, &replica) > before, "{lease}");
        assert!(lab.ttl(LEASES) > 80_000 && lab.inspect().holds[0].3 > 80_000, "{lease}");
    }
    let before = changed_ttls(&mut lab.connection, &replica);
    assert_eq!(lab.renew_one(&a.lease(0)), 1);
    assert_eq!(changed_ttls(&mut lab.connection, &replica), before, "a look writes nothing");
}
