use std::time::Duration;

use super::*;
use crate::context::tests::{Setup, setup};
use crate::runtime::Executor;

#[test]
fn of_several_requests_without_an_answer_the_first_one_counts() {
    let Setup { context, executor, keys, .. } = setup();
    let master = Master::new(HoldSource::new(context));
    let [first, second, now] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
    assert_eq!(master.unable_since(&keys, true, now), None);
    assert!(master.set_down(None, true, second));
    assert!(!master.set_down(None, true, first), "it is down already");
    assert_eq!(master.unable_since(&keys, true, now), Some(first));
    master.set_down(None, true, now);
    assert_eq!(master.unable_since(&keys, true, now), Some(first));
    master.set_up();
    assert_eq!(master.unable_since(&keys, true, now), None);
    assert_eq!(master.unable_since(&keys, false, second), Some(second), "it has not been up for long enough");
    master.set_down(None, false, now);
    assert_eq!(master.unable_since(&keys, false, now), Some(second));
    master.set_up();
    master.unable_since(&keys, false, first);
    master.set_down(None, true, second);
    assert_eq!(master.unable_since(&keys, true, now), Some(second), "it has been able in between");
}

/// A master that has not been up for long enough does not serve the keys either.
#[test]
fn a_doubt_counts_from_when_it_began() {
    let Setup { context, executor, keys, .. } = setup();
    let master = Master::new(HoldSource::new(context));
    let [first, second, now] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
    let until = now + Duration::from_secs(9);
    master.unable_since(&keys, false, second);
    master.add_doubt(&keys, None, (first, now, until));
    assert_eq!(master.unable_since(&keys, false, now), Some(first));
    assert_eq!(master.unable_since(&keys, true, now), Some(first));
    assert_eq!(master.unable_since(&keys, true, now), Some(first));
}
#[test]
fn a_master_is_asked_unless_it_is_down_or_in_doubt() {
    let Setup { context, executor, keys, .. } = setup();
    let master = Master::new(HoldSource::new(context));
    let [now, until, then] = [0, 1, 2].map(|secs| executor.now() + Duration::from_secs(secs));
    let asked = |now| (master.serves(&keys, now), master.may_serve(&keys, now));
    let why = Some((ErrorKind::Denied, "by the test".to_owned()));
    assert_eq!(asked(now), (true, true));
    master.add_doubt(&keys, why.clone(), (now, now, until));
    assert_eq!((asked(now), master.refusal(&keys, now)), ((false, false), why.clone()));
    assert_eq!((asked(then), master.refusal(&keys, then)), ((true, false), None), "the doubt is remembered");
    master.set_heard(now);
    assert_eq!(asked(then), (true, false), "it may still deny the name");
    master.served(&keys);
    assert_eq!(asked(then), (true, true));
    master.add_doubt(&keys, None, (now, now, until));
    master.set_heard(now);
    assert_eq!(asked(now), (true, true), "it is not silent");
    master.set_refusal(why.clone());
    assert_eq!((asked(now), master.refusal(&keys, now)), ((true, true), None), "it is up");
    master.set_down(None, true, now);
    assert_eq!((asked(now), master.refusal(&keys, now)), ((false, false), None));
    master.set_refusal(why.clone());
    assert_eq!(master.refusal(&keys, now), why);
    master.set_up();
    assert_eq!(asked(now), (true, true));
}

#[test]
fn a_master_is_a_single_server() {
    assert_eq!(unsuitable(Topology::single_server()), None);
    assert!(unsuitable(Topology::cluster()).is_some_and(|why| why.contains("cluster")));
    let behind = Topology { fails_over: true, ..Topology::single_server() };
    assert!(unsuitable(behind).is_some_and(|why| why.contains("failover")));
}

#[test]
fn one_check_is_under_way_and_the_next_one_is_not_too_soon() {
    let Setup { context, executor, .. } = setup();
    let master = Master::new(HoldSource::new(context));
    let [before, now, after] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
    assert!(master.begin_check(Some(before), now), "the first one");
    assert!(!master.begin_check(None, after), "it is under way");
    master.end_check();
    assert!(!master.begin_check(Some(before), after), "the last one is recent");
    for since in [Some(now), Some(after), None] {
        assert!(master.begin_check(since, now));
        master.end_check();
    }
    master.set_down(None, true, now);
    assert!(!master.begin_check(None, after), "a master that is down is probed");
    assert!(!master.is_heard_after(before));
    master.set_heard(now);
    assert_eq!([before, now, after].map(|time| master.is_heard_after(time)), [true, false, false]);
}
