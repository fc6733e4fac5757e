//! The connections to the sentinels: made anew, found out about, and given up.

use super::*;
use crate::redis::lab::{lasting, late, soon};

#[test]
fn the_pauses_grow_until_a_connection_to_a_sentinel_has_lasted() {
    let mut scene = Scene::new(&[1], &[1]);
    scene.locate().unwrap();
    let cut = |scene: &mut Scene| {
        let (node, began) = (scene.node(1), scene.lab.now());
        let asked = scene.asked(1, "SENTINEL MASTER").len();
        node.cut(node.sockets()[0]);
        while scene.asked(1, "SENTINEL MASTER").len() == asked {
            scene.sleep(ms(1));
        }
        scene.lab.now() - began
    };
    let pauses: Vec<Duration> = (0..9).map(|_| cut(&mut scene)).collect();
    assert!(soon().contains(&pauses[0]), "{pauses:?}");
    assert!(pauses[7] >= late() && pauses[8] >= late(), "{pauses:?}");
    scene.sleep(lasting() - ms(10));
    assert!(cut(&mut scene) >= late(), "it did not last for long enough");
    scene.sleep(lasting());
    assert!(soon().contains(&cut(&mut scene)), "it has lasted");
}

/// It may be one with TLS, and is asked once more over another socket. One that has been logged in to is not.
#[test]
fn only_the_first_login_asks_whether_a_sentinel_uses_tls() {
    for was_up in [false, true] {
        let mut scene = Scene::new(&[1], &[1]);
        let node = scene.node(1);
        if was_up {
            scene.locate().unwrap();
        }
        let before = *lock(&node.logins);
        let hangs_up = Arc::downgrade(&node);
        node.answers(move |socket, _| {
            hangs_up.upgrade().unwrap().cut(socket);
            Some(Said::Now(String::new()))
        });
        if was_up {
            node.cut(1);
        }
        // Time for the first attempt, or for the pause before another one and for that.
        scene.sleep(if was_up { *soon().end() } else { *soon().start() });
        assert_eq!(*lock(&node.logins) - before, if was_up { 1 } else { 2 }, "{was_up}");
    }
}

#[test]
fn a_sentinel_that_another_one_names_is_watched_until_it_is_gone() {
    let mut scene = Scene::new(&[1, 2, 9], &[1]);
    scene.says(1).others = vec![("id2", 2)];
    // The first one, by another of its addresses.
    scene.says(2).others = vec![("id1", 9)];
    scene.locate().unwrap();
    scene.sleep(ms(1));
    assert_eq!([1, 2, 9].map(|port| scene.node(port).sockets().len()), [1, 1, 0]);
    let node = scene.node(2);
    node.dead.store(true, Ordering::SeqCst);
    node.cut(node.sockets()[0]);
    scene.says(1).others.clear();
    scene.sleep(ms(60_000));
    node.dead.store(false, Ordering::SeqCst);
    scene.sleep(ms(5000));
    assert_eq!([1, 2, 9].map(|port| scene.node(port).sockets().len()), [1, 0, 0]);
}
