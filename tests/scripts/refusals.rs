//! A server that takes no writes, for reasons of its own: it has not said that a hold, a ticket or a queue is not
//! there.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{Around, Lab, State, attempt, keys_of};
use crate::permits::lab::{ALL, Changed, Permits, writer};
use crate::support::server::Server;

/// Why a real server refuses what would write.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// `min-replicas-to-write`. Redis 6.2 does not look at it in scripts.
    TooFewReplicas,
    /// It was made a replica; its master is gone, and what it has may be old.
    Replica,
    /// A snapshot could not be written.
    DiskFull,
}

/// For as long as the file is a directory no snapshot can be written.
const SNAPSHOT: &str = "taken.rdb";

impl Refusal {
    pub const ALL: [Self; 3] = [Self::TooFewReplicas, Self::Replica, Self::DiskFull];

    pub fn server() -> Server {
        Server::start_with(&["--dbfilename", SNAPSHOT])
    }

    pub fn code(self) -> String {
        let code = match self {
            Self::TooFewReplicas => "NOREPLICAS",
            Self::Replica => "READONLY",
            Self::DiskFull => "MISCONF",
        };
        code.to_owned()
    }

    /// Whether the server knows it for what scripts do.
    pub fn applies(self, lab: &Lab) -> bool {
        !(matches!(self, Self::TooFewReplicas) && lab.server.version().starts_with("redis 6"))
    }

    pub fn begin(self, lab: &mut Lab) {
        match self {
            Self::TooFewReplicas => drop(lab.raw(&["CONFIG", "SET", "min-replicas-to-write", "1"])),
            Self::Replica => drop(lab.raw(&["REPLICAOF", "127.0.0.1", "1"])),
            Self::DiskFull => {
                fs::create_dir(lab.server.dir().join(SNAPSHOT)).unwrap();
                lab.raw(&["CONFIG", "SET", "save", "3600 1000000"]);
                lab.raw(&["BGSAVE"]);
                let start = Instant::now();
                while !info(lab).contains("rdb_last_bgsave_status:err") {
                    assert!(start.elapsed() < Duration::from_secs(30), "{}", info(lab));
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    pub fn end(self, lab: &mut Lab) {
        match self {
            Self::TooFewReplicas => drop(lab.raw(&["CONFIG", "SET", "min-replicas-to-write", "0"])),
            Self::Replica => drop(lab.raw(&["REPLICAOF", "NO", "ONE"])),
            Self::DiskFull => drop(lab.raw(&["CONFIG", "SET", "save", ""])),
        }
    }
}

fn info(lab: &mut Lab) -> String {
    redis::cmd("INFO").arg("persistence").query(&mut lab.connection).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug + PartialEq>(answer: Result<T, String>, refusal: Refusal) {
    assert_eq!(answer, Err(refusal.code()));
}

#[test]
fn a_refused_renewal_of_a_lock_is_no_loss() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b) = (attempt(1, 1).lease(60_000), attempt(2, 1));
        lab.acquire(&a).granted();
        lab.acquire(&b).queued();
        let (held, gone, wrong) = (lab.keys[0].clone(), keys_of("gone")[0].clone(), keys_of("wrong")[0].clone());
        lab.set_wrong(&wrong);
        refusal.begin(&mut lab);
        let before = lab.dump();
        for (key, lease) in [(&held, 60_000), (&gone, 60_000), (&gone, 0), (&wrong, 60_000)] {
            refused(lab.try_renew(&[(key, &a.id, lease)]), refusal);
        }
        refused(lab.try_renew(&[(&held, &b.id, 0)]), refusal);
        assert_eq!(lab.renew(&[(&held, &a.id, 0)]), [1], "who only looks, and finds it, needs no write");
        before.assert_same(&lab.dump(), 0);
        refusal.end(&mut lab);
        assert_eq!(lab.renew(&[(&held, &a.id, 60_000), (&gone, &a.id, 0), (&wrong, &a.id, 60_000)]), [1, 0, -1]);
        lab.assert_holder(&a);
        assert_eq!(lab.state(&b), State::Waiting);
    }
}

/// Stored in full, and stored short.
#[test]
fn a_refused_renewal_of_permits_is_no_loss() {
    for refusal in Refusal::ALL {
        for (a, in_full) in [(attempt(1, 1), true), (writer(1, 1), false)] {
            let mut lab = Permits::read_write_on(Lab::on(Refusal::server()));
            if !refusal.applies(&lab) {
                continue;
            }
            let renew = if in_full { Permits::try_renew } else { Permits::try_renew_short };
            // The checks store a hold in full.
            lab.checked = in_full;
            let (a, b) = (a.lease(60_000), attempt(2, 1));
            lab.hold(&[&a]);
            let held = lab.keys.clone();
            lab.rename("wrong");
            let wrong = lab.keys.clone();
            lab.set_wrong(0);
            lab.rename("n");
            refusal.begin(lab.lab());
            let before = lab.dump();
            for (keys, id, lease) in
                [(&held, &a.id, 60_000), (&held, &b.id, 60_000), (&held, &b.id, 0), (&wrong, &a.id, 60_000)]
            {
                refused(renew(&mut lab, &[(keys, id, lease)]), refusal);
            }
            assert_eq!(renew(&mut lab, &[(&held, &a.id, 0)]), Ok(vec![1]));
            before.assert_same(&lab.dump(), 0);
            refusal.end(lab.lab());
            let holds = [(&held[..], &*a.id, 60_000), (&held, &b.id, 0), (&wrong, &a.id, 60_000)];
            assert_eq!(renew(&mut lab, &holds), Ok(vec![1, 0, -1]));
            lab.assert_held(&[&a]);
        }
    }
}

/// What is not there might be there at the master.
#[test]
fn nothing_about_a_lock_is_absent() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1).max_waiters(1));
        for queued in [false, true] {
            if queued {
                lab.acquire(&a).granted();
                lab.acquire(&b).queued();
            }
            refusal.begin(&mut lab);
            let before = lab.dump();
            refused(lab.release_and_queue(&c, None), refusal);
            refused(lab.release_and_queue(&c, Some(&attempt(3, 2))), refusal);
            refused(lab.cancel_ticket(&c.ticket(), false), refusal);
            refused(lab.try_heartbeat(&[&c]), refusal);
            refused(lab.try_heartbeat(&[&b]), refusal);
            refused(lab.try_force_release(&c), refusal);
            refused(lab.try_ask_ahead(&c, 1, &attempt(3, 2)), refusal);
            for mode in ["try", "wait"] {
                refused(lab.acquire_as(mode, &c), refusal);
            }
            before.assert_same(&lab.dump(), 0);
            refusal.end(&mut lab);
            if matches!(refusal, Refusal::DiskFull) && !queued {
                fs::remove_dir(lab.server.dir().join(SNAPSHOT)).unwrap();
            }
        }
        lab.assert_holder(&a);
        lab.assert_queue(&[&b]);
        assert_eq!(lab.renew_one(&a), 1);
    }
}

#[test]
fn nothing_about_permits_is_absent() {
    for refusal in Refusal::ALL {
        let mut lab = Permits::read_write_on(Lab::on(Refusal::server()));
        lab.limit = 2;
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b, c) = (attempt(1, 1).units(2), attempt(2, 1), attempt(3, 1).max_waiters(1));
        for queued in [false, true] {
            if queued {
                lab.hold(&[&a]);
                lab.queue(&[&b]);
            }
            refusal.begin(lab.lab());
            let before = lab.dump();
            refused(lab.release_and_queue(&c, None), refusal);
            refused(lab.release_and_queue(&c, Some(&attempt(3, 2))), refusal);
            refused(lab.cancel_ticket(&lab.ticket(&c), false), refusal);
            refused(lab.try_heartbeat(&[&c]), refusal);
            refused(lab.try_heartbeat(&[&b]), refusal);
            refused::<Changed>(lab.try_change(&c, &attempt(3, 2)), refusal);
            refused(lab.try_ask_ahead(&c, 1, 32, &attempt(3, 2).units(ALL).limit(ALL)), refusal);
            refused(lab.try_go_on(&c, &[]), refusal);
            if queued {
                // Others wait.
                refused(lab.try_go_on(&a, &[]), refusal);
            }
            for mode in ["try", "wait"] {
                refused(lab.acquire_as(mode, &c), refusal);
                refused(lab.acquire_as(mode, &c.clone().units(3)), refusal);
            }
            before.assert_same(&lab.dump(), 0);
            refusal.end(lab.lab());
            if matches!(refusal, Refusal::DiskFull) && !queued {
                fs::remove_dir(lab.server.dir().join(SNAPSHOT)).unwrap();
            }
        }
        lab.assert_held(&[&a]);
        lab.assert_queue(&[&b]);
        assert_eq!(lab.renew_one(&a), 1);
    }
}
