//! `lock_drop_waiters` and `permit_drop_waiters`: whose tickets go, what their clients are told, parts of long queues,
//! late copies, and servers that take no writes.

use bowline::wire;
use uuid::Uuid;

use crate::lab::{Attempt, Lab, State, attempt};
use crate::permits::lab::{Permits, writer};
use crate::refusals::Refusal;

/// How many tickets one call removes, and how many it looks at.
const REMOVED: u64 = 256;
const LOOKED_AT: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    Dropped { tickets: u64, next_first: u64, unseen: u64 },
    Stale,
}

/// A script, and what it is for.
type What = (&'static str, fn() -> wire::Resource);

const WAITED_FOR: [What; 3] = [
    ("lock_drop_waiters", || wire::Resource::lock("p", "n").unwrap()),
    ("permit_drop_waiters", || wire::Resource::read_write("p", "n").unwrap()),
    ("permit_drop_waiters", || wire::Resource::semaphore("p", "n", 3).unwrap()),
];

fn all(tickets: u64) -> Dropped {
    Dropped::Dropped { tickets, next_first: 0, unseen: 0 }
}

fn try_drop(
    lab: &mut Lab,
    (script, resource): What,
    client: Option<u32>,
    (first, not_after): (u64, u64),
) -> Result<Dropped, String> {
    let client = client.map(|client| attempt(client, 1).id.split(':').next().unwrap().parse::<Uuid>().unwrap());
    let sent = resource().drop_waiters(client, first, not_after).unwrap();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run(script, &keys, &sent.words(), false, |words| match &*words.word() {
        "DROPPED" => {
            let dropped = Dropped::Dropped { tickets: words.next(), next_first: words.next(), unseen: words.next() };
            assert!(!words.flag());
            dropped
        }
        "STALE" => Dropped::Stale,
        other => panic!("{other}"),
    })
}

fn drop_of(lab: &mut Lab, what: What, client: Option<u32>) -> Dropped {
    try_drop(lab, what, client, (0, 0)).unwrap()
}

/// A lab in which something is held, with these attempts in its queue, and the key of that queue.
fn waited_for(what: What, queue: &[&Attempt]) -> (Lab, String) {
    let mut lab = Lab::new();
    lab.keys = what.1().keys();
    for attempt in [&writer(1, 1).units(what_it_takes(what))].into_iter().chain(queue.iter().copied()) {
        let sent = what.1().acquire(attempt.wire(), true);
        let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
        let script = what.0.replace("drop_waiters", "acquire");
        lab.run(&script, &keys, &sent.words(), false, |words| {
            let word = words.word();
            match &*word {
                "GRANTED" => drop(words.word()),
                "QUEUED" => drop((words.next::<i64>(), words.next::<i64>(), words.flag())),
                other => panic!("{other}"),
            }
        })
        .unwrap();
    }
    let queue = lab.keys.iter().find(|key| key.ends_with(":queue")).unwrap().clone();
    (lab, queue)
}

fn what_it_takes(what: What) -> u32 {
    let is_semaphore = what.1().keys()[0].contains(":sem:");
    if is_semaphore { 3 } else { writer(1, 1).wire().amount }
}

fn left(lab: &mut Lab, queue: &str) -> Vec<String> {
    lab.list(queue).iter().map(|ticket| ticket.split('/').next().unwrap().to_owned()).collect()
}

#[test]
fn the_tickets_of_a_client_go_and_it_is_told() {
    let (b, c, d) = (attempt(2, 1), attempt(3, 1), attempt(2, 2));
    for what in WAITED_FOR {
        let (mut lab, queue) = waited_for(what, &[&b, &c, &d]);
        let (to_b, to_c) = (lab.listen(2), lab.listen(3));
        // The place behind the one that stays.
        let dropped = Dropped::Dropped { tickets: 2, next_first: 1, unseen: 0 };
        assert_eq!(drop_of(&mut lab, what, Some(2)), dropped, "{what:?}");
        assert_eq!(left(&mut lab, &queue), [&*c.id]);
        assert_eq!(lab.read(&to_b), [format!("dropped {} {}", b.id, d.id)]);
        assert_eq!(drop_of(&mut lab, what, Some(2)), Dropped::Dropped { tickets: 0, next_first: 1, unseen: 0 });
        assert_eq!(drop_of(&mut lab, what, None), all(1));
        assert_eq!(lab.read(&to_c), [format!("dropped {}", c.id)]);
        assert_eq!((lab.read(&to_b).len(), left(&mut lab, &queue).len()), (0, 0));
        assert_eq!(drop_of(&mut lab, what, None), all(0));
    }
}

#[test]
fn a_holder_keeps_what_it_has_and_a_dropped_ticket_is_gone() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    assert_eq!(drop_of(&mut lab, WAITED_FOR[0], None), all(1));
    lab.assert_holder(&a);
    assert_eq!(lab.state(&b), State::Gone);
    // It may queue up again.
    lab.acquire(&b).queued();
    lab.assert_queue(&[&b]);
}

#[test]
fn those_behind_a_big_request_are_served_when_it_is_dropped() {
    let mut lab = Permits::semaphore(3);
    let (a, big, small) = (attempt(1, 1), attempt(2, 1).units(3), attempt(3, 1));
    lab.hold(&[&a]);
    lab.queue(&[&big, &small]);
    let _inbox = lab.listen(3);
    assert_eq!(drop_of(&mut lab, WAITED_FOR[2], Some(2)), Dropped::Dropped { tickets: 1, next_first: 1, unseen: 0 });
    lab.assert_held(&[&a, &small]);
    lab.assert_queue(&[]);
}

/// A call takes so long that others wait, so it does a part.
#[test]
fn a_long_queue_takes_several_calls() {
    let what = WAITED_FOR[0];
    let (mut lab, queue) = waited_for(what, &[]);
    let tickets = lab.keys[2].clone();
    lab.checked = false;
    let ticket = |client: u32, n: u64| format!("{}/30000/1", attempt(client, n).id);
    // In one step, because no key may ever be seen without a TTL.
    const PUT: &str =
        "for n = 2, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[n]) redis.call('ZADD', KEYS[2], ARGV[1], ARGV[n]) end
        redis.call('PEXPIRE', KEYS[1], 3600000) redis.call('PEXPIRE', KEYS[2], 3600000)";
    let put = |lab: &mut Lab, all: &[String]| {
        let later = (lab.now() + 600_000).to_string();
        for some in all.chunks(500) {
            let words = ["EVAL", PUT, "2", &queue, &tickets, &later].into_iter();
            lab.raw(&words.chain(some.iter().map(|ticket| &**ticket)).collect::<Vec<_>>());
        }
    };
    let mut waiting: Vec<String> = (1..=REMOVED + 44).map(|n| ticket(2, n)).collect();
    waiting.extend((1..=LOOKED_AT).map(|n| ticket(3, n)));
    waiting.push(ticket(2, REMOVED + 45));
    put(&mut lab, &waiting);
    let inbox = lab.listen(2);
    // The head is removed, so that the next call begins there again.
    let first = drop_of(&mut lab, what, Some(2));
    assert_eq!(first, Dropped::Dropped { tickets: REMOVED, next_first: 0, unseen: LOOKED_AT + 45 });
    let second = try_drop(&mut lab, what, Some(2), (0, 0)).unwrap();
    assert_eq!(second, Dropped::Dropped { tickets: 44, next_first: LOOKED_AT - 44, unseen: 45 });
    let third = try_drop(&mut lab, what, Some(2), (LOOKED_AT - 44, 0)).unwrap();
    assert_eq!(third, Dropped::Dropped { tickets: 1, next_first: LOOKED_AT, unseen: 0 });
    // Of all clients the same.
    let told = lab.read(&inbox);
    assert_eq!(told.iter().map(|message| message.split(' ').count() - 1).collect::<Vec<_>>(), [256, 44, 1]);
    assert_eq!(
        drop_of(&mut lab, what, None),
        Dropped::Dropped { tickets: REMOVED, next_first: 0, unseen: LOOKED_AT - REMOVED }
    );
}

#[test]
fn a_late_copy_drops_nothing() {
    let b = attempt(2, 1);
    for what in WAITED_FOR {
        let (mut lab, queue) = waited_for(what, &[&b]);
        let past = lab.past();
        assert_eq!(try_drop(&mut lab, what, None, (0, past)), Ok(Dropped::Stale));
        assert_eq!(left(&mut lab, &queue), [&*b.id]);
        let later = lab.now() + 60_000;
        assert_eq!(try_drop(&mut lab, what, None, (0, later)), Ok(all(1)));
    }
}

#[test]
fn what_no_script_wrote_stays() {
    let b = attempt(2, 1);
    for what in WAITED_FOR {
        let (mut lab, queue) = waited_for(what, &[&b]);
        lab.checked = false;
        let tickets = queue.replace(":queue", ":tickets");
        lab.raw(&["LPUSH", &queue, "garbage"]);
        lab.raw(&["ZADD", &tickets, "9999999999999", "garbage"]);
        assert_eq!(drop_of(&mut lab, what, None), Dropped::Dropped { tickets: 1, next_first: 1, unseen: 0 });
        assert!(!left(&mut lab, &queue).contains(&b.id));
        // Two keys that differ are no queue.
        lab.raw(&["RPUSH", &queue, "more"]);
        assert_eq!(drop_of(&mut lab, what, None), all(0));
        assert_eq!(lab.list(&queue), [""; 0]);
        for at in [0, 2] {
            let (mut lab, _) = waited_for(what, &[&b]);
            lab.checked = false;
            let key = lab.keys[at].clone();
            lab.set_wrong(&key);
            assert_eq!(try_drop(&mut lab, what, None, (0, 0)), Err("WRONGTYPE".to_owned()), "{what:?} {key}");
        }
    }
}

#[test]
fn a_server_that_takes_no_writes_says_nothing_of_waiters() {
    for refusal in Refusal::ALL {
        for what in WAITED_FOR {
            let mut lab = Lab::on(Refusal::server());
            if !refusal.applies(&lab) {
                continue;
            }
            lab.keys = what.1().keys();
            refusal.begin(&mut lab);
            assert_eq!(try_drop(&mut lab, what, None, (0, 0)), Err(refusal.code()), "{refusal:?} {what:?}");
            refusal.end(&mut lab);
            assert_eq!(drop_of(&mut lab, what, None), all(0));
        }
    }
}
