//! Subscribers and proofs that a server refuses, and the names of probes.

use super::*;

/// A replica is tried again, because the next dial may lead to the primary. Another refusal would be the same.
#[test]
fn a_server_that_refuses_a_subscriber_is_not_asked_again() {
    for (refusal, is_final) in [("NOPERM no", true), ("READONLY You can't write against a read only replica.", false)] {
        let mut scene = Scene::new();
        scene.serve(move |_, words| (words[0] == "HELLO").then(|| Said::Now(format!("-{refusal}\r\n"))));
        let began = scene.lab.now();
        let Err(failure) = scene.subscribe() else { panic!("it was refused") };
        assert!(failure.to_string().contains(refusal), "{failure}");
        let limit = if is_final { Duration::ZERO } else { scene.link.timeout };
        assert_eq!(scene.lab.now() - began, limit, "{refusal}");
    }
}

/// The right to ask for a proof is taken away, and given back.
#[test]
fn a_socket_whose_proof_was_refused_is_kept() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    let sockets = scene.subscribed.load(Ordering::SeqCst);
    scene.serve(|_, words| (words[0] == "PUBSUB").then(|| Said::Now("-NOPERM no\r\n".to_owned())));
    scene.link.suspect(scene.link.current(), Failure::Io("by the test".to_owned()));
    assert!(matches!(scene.next(&mut subscription), Notice::Refused(_)));
    scene.sleep(ms(3000));
    scene.serve(|_, _| None);
    assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), sockets);
}

/// The server may still count a socket that is gone.
#[test]
fn each_socket_has_a_probe_of_its_own() {
    let [first, second] = [(); 2].map(|()| proof::probe("p:inbox"));
    assert!(first.starts_with("p:inbox:") && second.starts_with("p:inbox:"), "{first}: a right to p:inbox* covers it");
    assert_ne!(first, second);
}
