//! Who hands over writes the new hold before the old one goes: a key that was deleted is not written again in one
//! script. A cluster that is moving the slot would refuse that half-way.

use redis::{Connection, Value};

use crate::lab::{Attempt, CANCEL_RELEASED, Forced, Lab, RELEASED, attempt};
use crate::permits::lab::{LEASES, PERMITS, Permits, writer};

/// Sees every command that a server executes.
pub struct Monitor(Connection);

impl Monitor {
    pub fn of(lab: &Lab) -> Self {
        let mut connection = lab.server.client();
        connection.send_packed_command(&redis::cmd("MONITOR").get_packed_command()).unwrap();
        assert_eq!(connection.recv_response().unwrap(), Value::Okay);
        Self(connection)
    }

    /// What scripts have called since the last time, on that key: the commands in their order.
    pub fn calls(&mut self, lab: &mut Lab, key: &str) -> Vec<String> {
        lab.raw(&["ECHO", "the end"]);
        let mut calls = Vec::new();
        loop {
            let line: String = redis::from_redis_value(self.0.recv_response().unwrap()).unwrap();
            if line.contains("the end") {
                return calls;
            }
            let mut words = line.split('"').skip(1).step_by(2);
            let command = words.next().unwrap().to_uppercase();
            if line.contains(" lua] ") && words.any(|word| word == key) {
                calls.push(command);
            }
        }
    }
}

/// It is written, then the old hold goes, and the key is there all the time.
#[track_caller]
pub fn assert_written_before_dropped(calls: &[String], write: &str, drop: &str) {
    assert!(calls.iter().all(|call| call != "DEL" && call != "UNLINK"), "{calls:?}");
    let written = calls.iter().position(|call| call == write);
    let dropped = calls.iter().rposition(|call| call == drop);
    assert!(written.is_some() && written < dropped, "{calls:?}");
}

#[test]
fn the_next_hold_of_a_lock_is_written_before_the_old_one_goes() {
    let ways: [fn(&mut Lab, &Attempt); 3] = [
        |lab, a| assert_eq!(lab.release(a), RELEASED),
        |lab, a| assert_eq!(lab.cancel(a), CANCEL_RELEASED),
        |lab, a| assert!(matches!(lab.force_release(a), Forced::Released { .. })),
    ];
    for way in ways {
        let (mut lab, a, _) = Lab::held();
        let b = attempt(2, 1);
        lab.acquire(&b).queued();
        lab.listen(2);
        lab.checked = false;
        let mut monitor = Monitor::of(&lab);
        way(&mut lab, &a);
        let key = lab.keys[0].clone();
        assert_written_before_dropped(&monitor.calls(&mut lab, &key), "HSET", "HDEL");
        lab.checked = true;
        lab.assert_holder(&b);
        // No ticket waits behind it, so its release leaves only the counter.
        lab.release(&b);
        assert_eq!(lab.server.keys(), [lab.keys[3].clone()]);
    }
}

#[test]
fn the_next_hold_of_permits_is_written_before_the_old_one_goes() {
    let ways: [fn(&mut Permits, &Attempt); 3] = [
        |lab, a| assert_eq!(lab.release(a), RELEASED),
        |lab, a| assert_eq!(lab.cancel(a), CANCEL_RELEASED),
        |lab, a| assert_eq!(lab.force_release(&[a]).0, 1),
    ];
    for way in ways {
        let mut lab = Permits::read_write();
        let (a, b, c) = (writer(1, 1), attempt(2, 1), attempt(2, 2));
        lab.hold(&[&a]);
        lab.queue(&[&b, &c]);
        lab.listen(2);
        lab.checked = false;
        for (key, write, drop) in [(PERMITS, "HSET", "HDEL"), (LEASES, "ZADD", "ZREM")] {
            let mut monitor = Monitor::of(&lab);
            way(&mut lab, &a);
            let key = lab.keys[key].clone();
            assert_written_before_dropped(&monitor.calls(&mut lab, &key), write, drop);
            lab.checked = true;
            lab.assert_held(&[&b, &c]);
            assert_eq!(lab.raw_used(), 2);
            // The same for the other key.
            lab.release(&b);
            lab.release(&c);
            lab.hold(&[&a]);
            lab.queue(&[&b, &c]);
            lab.checked = false;
        }
    }
}

/// The same attempt id is released and queued up again: the hold that it gets is not the one that goes.
#[test]
fn a_hold_that_follows_itself_stays() {
    let (mut lab, a, token) = Lab::held();
    let again = lab.release_for(&a, &a);
    assert!(matches!(again, crate::lab::Released::Granted(next) if next > token), "{again:?}");
    lab.assert_holder(&a);
    let mut lab = Permits::semaphore(3);
    let (a, b) = (attempt(1, 1).units(3), attempt(1, 1).units(2));
    lab.hold(&[&a]);
    assert!(matches!(lab.release_and_queue(&a, Some(&b)), Ok(crate::lab::Released::Granted(0))));
    lab.assert_held(&[&b]);
    assert_eq!(lab.raw_used(), 2);
}
