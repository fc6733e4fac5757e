//! Servers that refuse a subscription because they are replicas.

use super::*;

/// Behind a load balancer, the next dial may lead to the primary.
#[test]
fn a_replica_is_no_refusal() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    let replica = || "%1\r\n$4\r\nrole\r\n$5\r\nslave\r\n".to_owned();
    scene.serve(move |socket, words| (socket == 3 && words[0] == "HELLO").then(|| Said::Now(replica())));
    scene.cut_last();
    for _ in 0..2 {
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
    assert_eq!(scene.node.sockets(), [1, 4]);
    // The connection for commands leaves a server that has become a replica.
    scene.serve(|socket, words| {
        (socket == 1 && words[0] == "PUBSUB").then(|| Said::Now("-MASTERDOWN a replica\r\n".to_owned()))
    });
    scene.cut_last();
    for _ in 0..2 {
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
    assert!(scene.next_at_once(&mut subscription).is_none());
    assert_eq!(scene.link.current(), 2);
}

/// Behind sentinels, the refusal comes with an explanation.
#[test]
fn a_replica_that_is_explained_is_no_refusal() {
    let mut scene = Scene::of(|lab, tasks| {
        lab.nodes[&1].alone.store(true, Ordering::SeqCst);
        let (link, connecting) = lab.connect(Arc::new(Named::new(1)), &Config::default());
        lab.run(tasks, connecting).unwrap().unwrap();
        link
    });
    let replica = |socket: usize| {
        move |at: usize, words: &[&str]| {
            let is_replica = at == socket && words[0] == "HELLO";
            is_replica.then(|| Said::Now("%1\r\n$4\r\nrole\r\n$5\r\nslave\r\n".to_owned()))
        }
    };
    // The first subscription tries again, and so does one that was cut off.
    scene.serve(replica(2));
    let mut subscription = scene.subscribe().unwrap();
    assert_eq!(scene.node.sockets(), [1, 3]);
    scene.serve(replica(4));
    scene.cut_last();
    for _ in 0..2 {
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
    assert_eq!(scene.node.sockets(), [1, 5]);
}
