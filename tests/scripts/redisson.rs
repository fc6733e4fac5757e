//! The scripts of locks in Redisson's format: every reply, late copies, half states, and what Redisson finds. The
//! lock's script renews their holds.

use std::thread;
use std::time::{Duration, Instant};

use bowline::wire::{Request, Resource};
use redis::Value;

use crate::cluster::node;
use crate::lab::{Acquired, Around, Attempt, LEASE, Lab, attempt};
use crate::refusals::Refusal;

const CHANNEL: &str = "redisson_lock__channel:{n}";

fn lock(fenced: bool) -> Resource {
    Resource::redisson("n", fenced).unwrap()
}

/// A lab whose keys are those of a fenced lock: lock, counter. Redisson's counter has no TTL.
fn lab() -> Lab {
    on(Lab::new())
}

fn on(mut lab: Lab) -> Lab {
    lab.keys = vec!["n".to_owned(), "redisson_lock_token:{n}".to_owned()];
    lab
}

pub fn run<T>(
    lab: &mut Lab,
    script: &str,
    sent: &Request,
    read: impl FnOnce(&mut crate::lab::Words) -> T,
) -> Result<T, String> {
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run(script, &keys, &sent.words(), false, read)
}

fn acquired(lab: &mut Lab, attempt: &Attempt, fenced: bool) -> Result<Acquired, String> {
    let script = if fenced { "redisson_acquire_fenced" } else { "redisson_acquire" };
    let token = if fenced { crate::lab::Words::token } else { crate::lab::Words::any_token };
    run(lab, script, &lock(fenced).acquire(attempt.wire(), true), |words| Acquired::read(&words.word(), words, token))
}

#[track_caller]
fn acquire(lab: &mut Lab, attempt: &Attempt) -> Acquired {
    acquired(lab, attempt, false).unwrap()
}

#[track_caller]
fn acquire_fenced(lab: &mut Lab, attempt: &Attempt) -> Acquired {
    acquired(lab, attempt, true).unwrap()
}

fn read_released(words: &mut crate::lab::Words) -> bool {
    let (word, _listeners) = (words.word(), words.next::<u64>());
    match &*word {
        "RELEASED" => true,
        "NOT_HELD" => false,
        other => panic!("{other}"),
    }
}

fn released(lab: &mut Lab, attempt: &Attempt) -> Result<bool, String> {
    let sent = lock(false).sharded(lab.sharded).release(attempt.wire(), None).unwrap();
    run(lab, "redisson_release", &sent, read_released)
}

#[track_caller]
fn release(lab: &mut Lab, attempt: &Attempt) -> bool {
    released(lab, attempt).unwrap()
}

/// The owner, how often it has entered, and the rest of its lease.
fn look(lab: &mut Lab) -> (String, String, i64) {
    let sent = lock(false).inspect_shared();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("redisson_inspect", &keys, &sent.words(), true, |words| (words.word(), words.word(), words.next())).unwrap()
}

#[track_caller]
fn assert_owner(lab: &mut Lab, owner: &Attempt) {
    let (stored, entries, ttl) = look(lab);
    assert_eq!((&stored, &*entries), (&owner.id, "1"));
    assert!(ttl > 0);
}

/// A subscriber of a channel of Redisson.
pub struct Ear {
    connection: redis::Connection,
    publish: &'static str,
    channel: String,
}

impl Ear {
    fn open(lab: &Lab, publish: &'static str) -> Self {
        Self::at(lab, publish, CHANNEL)
    }

    pub fn at(lab: &Lab, publish: &'static str, channel: &str) -> Self {
        let mut connection = lab.server.client();
        let subscribe = publish.replace("PUBLISH", "SUBSCRIBE");
        let _: Value = redis::cmd(&subscribe).arg(channel).query(&mut connection).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { connection, publish, channel: channel.to_owned() }
    }

    /// The messages since the last call.
    pub fn heard(&mut self, lab: &mut Lab) -> Vec<String> {
        lab.raw(&[self.publish, &self.channel, "end"]);
        let next = || {
            let Value::Array(message) = self.connection.recv_response().unwrap() else { panic!("no message") };
            let Some(Value::BulkString(payload)) = message.into_iter().nth(2) else { panic!("no payload") };
            Some(String::from_utf8(payload).unwrap())
        };
        std::iter::from_fn(next).take_while(|message| message != "end").collect()
    }
}

#[test]
fn one_owner_at_a_time() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    assert_eq!(look(&mut lab), (String::new(), String::new(), -2));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    assert_owner(&mut lab, &a);
    assert!((1..=LEASE as i64).contains(&acquire(&mut lab, &b).busy()));
    assert!(!release(&mut lab, &b), "another owner's");
    assert_owner(&mut lab, &a);
    assert!(release(&mut lab, &a));
    assert_eq!(lab.server.keys(), Vec::<String>::new());
    assert_eq!(acquire(&mut lab, &b), Acquired::Granted(0));
}

/// A fenced lock and another one of the same name are one lock.
#[test]
fn both_locks_of_a_name_exclude_each_other() {
    let mut lab = lab();
    lab.server.allow_forever("redisson_lock_token:{n}");
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    acquire(&mut lab, &a).granted();
    acquire_fenced(&mut lab, &b).busy();
    assert!(release(&mut lab, &a));
    assert_eq!(acquire_fenced(&mut lab, &b), Acquired::Granted(1));
    acquire(&mut lab, &a).busy();
}

#[test]
fn tokens_go_on_from_the_counter() {
    let mut lab = lab();
    lab.server.allow_forever("redisson_lock_token:{n}");
    for (n, span, token) in [(1, 1, 1), (2, 32, 2), (3, 1, 34)] {
        let holder = attempt(1, n).span(span);
        assert_eq!(acquire_fenced(&mut lab, &holder), Acquired::Granted(token));
        assert_owner(&mut lab, &holder);
        assert_eq!(acquire_fenced(&mut lab, &holder), Acquired::Granted(token), "a second copy");
        assert!(release(&mut lab, &holder));
    }
    // As Redisson counts.
    lab.raw(&["INCR", "redisson_lock_token:{n}"]);
    assert_eq!(acquire_fenced(&mut lab, &attempt(1, 4)), Acquired::Granted(36));
    // Without the counter, a second copy of the call reserves anew.
    lab.raw(&["DEL", "redisson_lock_token:{n}"]);
    assert_eq!(acquire_fenced(&mut lab, &attempt(1, 4)), Acquired::Granted(1));
    lab.raw(&["SET", "redisson_lock_token:{n}", "5"]);
    assert_eq!(acquire_fenced(&mut lab, &attempt(1, 4).span(32)), Acquired::Granted(6), "it cannot have reserved 32");
}

#[test]
fn a_second_copy_of_a_call_changes_nothing() {
    let mut lab = lab();
    lab.server.allow_forever("redisson_lock_token:{n}");
    let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    lab.twice(100, |lab| acquire_fenced(lab, &a));
    let (first, second) = lab.twice(0, |lab| release(lab, &a));
    assert!(first && !second);
    lab.twice(100, |lab| acquire(lab, &b));
    acquire(&mut lab, &c).busy();
    assert!(!release(&mut lab, &a), "of somebody who has released");
    assert_owner(&mut lab, &b);
    // A copy that is late, whose lease is shorter.
    acquire(&mut lab, &attempt(2, 1).lease(100)).granted();
    assert!(lab.ttl(0) > 20_000, "a second copy shortens no lease");
    acquire(&mut lab, &attempt(2, 1).lease(60_000)).granted();
    assert!(lab.ttl(0) > 30_000);
}

#[test]
fn a_request_that_comes_too_late_takes_nothing() {
    let mut lab = lab();
    lab.server.allow_forever("redisson_lock_token:{n}");
    let late = attempt(1, 1).not_after(1);
    for fenced in [false, true] {
        assert_eq!(acquired(&mut lab, &late, fenced), Ok(Acquired::Stale));
        assert_eq!(lab.server.keys(), Vec::<String>::new());
        acquired(&mut lab, &attempt(1, 1), fenced).unwrap().granted();
        acquired(&mut lab, &late, fenced).unwrap().granted();
        assert!(release(&mut lab, &attempt(1, 1)));
        lab.raw(&["DEL", "redisson_lock_token:{n}"]);
    }
}

#[test]
fn a_release_publishes_once_what_redisson_reads() {
    let mut lab = lab();
    let mut ear = Ear::open(&lab, "PUBLISH");
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    acquire(&mut lab, &a).granted();
    assert!(release(&mut lab, &a) && !release(&mut lab, &a) && !release(&mut lab, &b));
    assert_eq!(ear.heard(&mut lab), ["0"]);
    // A cancel is a release, and so is what a cohort does between two of its members.
    for sent in [lock(false).cancel(a.wire(), true), lock(false).release(a.wire(), Some(b.wire())).unwrap()] {
        acquire(&mut lab, &a).granted();
        assert_eq!(run(&mut lab, "redisson_release", &sent, read_released), Ok(true));
        assert_eq!(run(&mut lab, "redisson_release", &sent, read_released), Ok(false));
        assert_eq!(ear.heard(&mut lab), ["0"]);
    }
}

#[test]
fn a_release_publishes_to_a_shard_channel() {
    let server = node();
    if !server.has_shard_channels() {
        return;
    }
    let mut lab = on(Lab::on(server));
    lab.sharded = true;
    let (mut ear, mut other) = (Ear::open(&lab, "SPUBLISH"), Ear::open(&lab, "PUBLISH"));
    acquire(&mut lab, &attempt(1, 1)).granted();
    assert!(release(&mut lab, &attempt(1, 1)));
    assert_eq!(ear.heard(&mut lab), ["0"]);
    assert_eq!(other.heard(&mut lab), Vec::<String>::new());
}

/// `forceUnlock` takes whatever is there. This takes it from one owner.
#[test]
fn an_owner_of_java_is_released_by_its_name() {
    let mut lab = lab();
    let mut ear = Ear::open(&lab, "PUBLISH");
    let java = "87fd5d7c-3e4f-4a51-8a5c-5a2d4ee0cbb1:58";
    // In one step, because a key without a TTL is a mistake at any time.
    let held = "redis.call('HSET', KEYS[1], ARGV[1], '2') return redis.call('PEXPIRE', KEYS[1], '30000')";
    lab.raw(&["EVAL", held, "1", "n", java]);
    let (owner, entries, ttl) = look(&mut lab);
    assert_eq!((&*owner, &*entries), (java, "2"));
    assert!(ttl > 0);
    acquire(&mut lab, &attempt(1, 1)).busy();
    let force = |owner: &str| lock(false).force_release_shared(owner, 0);
    let late = lock(false).force_release_shared(java, 1);
    assert_eq!(run(&mut lab, "redisson_release", &late, |words| words.word()), Ok("STALE".to_owned()));
    assert_eq!(look(&mut lab).0, java, "a late copy ends nothing");
    assert_eq!(run(&mut lab, "redisson_release", &force("another"), read_released), Ok(false));
    assert_eq!(run(&mut lab, "redisson_release", &force(java), read_released), Ok(true));
    assert_eq!(run(&mut lab, "redisson_release", &force(java), read_released), Ok(false));
    assert_eq!(ear.heard(&mut lab), ["0"]);
    acquire(&mut lab, &attempt(1, 1)).granted();
}

/// What has no TTL is waited for by messages alone.
#[test]
fn a_lock_without_a_ttl_is_busy() {
    let mut lab = lab();
    lab.checked = false;
    lab.server.allow_forever("n");
    lab.raw(&["HSET", "n", "somebody:1", "1"]);
    assert_eq!(acquire(&mut lab, &attempt(1, 1)).busy(), -1);
}

/// In a cluster in which Redisson may have shard channels, and this client has none.
#[test]
fn a_release_can_publish_both_ways() {
    let server = node();
    if !server.has_shard_channels() {
        return;
    }
    let mut lab = on(Lab::on(server));
    let (mut sharded, mut other) = (Ear::open(&lab, "SPUBLISH"), Ear::open(&lab, "PUBLISH"));
    acquire(&mut lab, &attempt(1, 1)).granted();
    let both = lock(false).counts_everyone(false).release(attempt(1, 1).wire(), None).unwrap();
    assert_eq!(run(&mut lab, "redisson_release", &both, read_released), Ok(true));
    assert_eq!((sharded.heard(&mut lab), other.heard(&mut lab)), (vec!["0".to_owned()], vec!["0".to_owned()]));
}

/// Redis 6.2 knows no shard channels, and the release works all the same.
#[test]
fn a_server_without_shard_channels_publishes_one_way() {
    let mut lab = lab();
    let mut ear = Ear::open(&lab, "PUBLISH");
    acquire(&mut lab, &attempt(1, 1)).granted();
    let both = lock(false).counts_everyone(false).release(attempt(1, 1).wire(), None).unwrap();
    assert_eq!(run(&mut lab, "redisson_release", &both, read_released), Ok(true));
    assert_eq!(ear.heard(&mut lab), ["0"]);
}

/// Such as that of a read-write lock of Redisson.
#[test]
fn a_hash_that_is_no_lock_is_an_error() {
    let mut lab = lab();
    lab.checked = false;
    let reader = "87fd5d7c-3e4f-4a51-8a5c-5a2d4ee0cbb1:58";
    for hash in [&["mode", "read", reader, "1"][..], &["mode", "read"]] {
        lab.raw(&["DEL", "n"]);
        // In one step, because somebody looks for keys without a TTL.
        let store = "redis.call('HSET', KEYS[1], unpack(ARGV)) redis.call('PEXPIRE', KEYS[1], 30000)";
        lab.raw(&[&["EVAL", store, "1", "n"], hash].concat());
        let sent = lock(false).inspect_shared();
        assert_eq!(run(&mut lab, "redisson_inspect", &sent, |words| words.word()), Err("WRONGTYPE".to_owned()));
        assert!(acquire(&mut lab, &attempt(1, 1)).busy() > 0);
    }
}

#[test]
fn the_locks_script_renews() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    acquire(&mut lab, &a.clone().lease(10_000)).granted();
    assert_eq!(lab.renew(&[("n", &a.id, 60_000), ("n", &b.id, 60_000)]), [1, 0]);
    assert!(lab.ttl(0) > 30_000);
    assert_owner(&mut lab, &a);
    assert_eq!(lab.renew(&[("other", &a.id, 60_000)]), [0]);
}

#[test]
fn an_expired_hold_is_free() {
    let mut lab = lab();
    acquire(&mut lab, &attempt(1, 1).lease(50)).granted();
    let start = Instant::now();
    while acquire(&mut lab, &attempt(2, 1)) != Acquired::Granted(0) {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!release(&mut lab, &attempt(1, 1)));
    assert_owner(&mut lab, &attempt(2, 1));
}

#[test]
fn a_key_of_another_type_is_an_error_and_stays() {
    for fenced in [false, true] {
        let mut lab = lab();
        lab.set_wrong("n");
        lab.assert_refused("WRONGTYPE", |lab| acquired(lab, &attempt(1, 1), fenced));
        lab.assert_refused("WRONGTYPE", |lab| released(lab, &attempt(1, 1)));
    }
    // A counter that does not count leaves no hold.
    let mut lab = lab();
    lab.server.allow_forever("redisson_lock_token:{n}");
    lab.raw(&["SET", "redisson_lock_token:{n}", "x"]);
    lab.assert_refused("ERR", |lab| acquired(lab, &attempt(1, 1), true));
}

#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b) = (attempt(1, 1).lease(60_000), attempt(2, 1));
        acquire(&mut lab, &a).granted();
        refusal.begin(&mut lab);
        for fenced in [false, true] {
            assert_eq!(acquired(&mut lab, &b, fenced), Err(refusal.code()));
            let script = if fenced { "redisson_acquire_fenced" } else { "redisson_acquire" };
            let free = Resource::redisson("free", fenced).unwrap().acquire(b.wire(), true);
            assert_eq!(run(&mut lab, script, &free, |words| words.word()), Err(refusal.code()));
        }
        assert_eq!(released(&mut lab, &a), Err(refusal.code()));
        assert_eq!(released(&mut lab, &b), Err(refusal.code()), "what it does not have may be at its master");
        refusal.end(&mut lab);
        assert!(release(&mut lab, &a));
        assert_eq!(lab.server.keys(), Vec::<String>::new());
    }
}
