//! Calls: their replies, their refusals and their order.

use std::task::Poll;
use std::time::Duration;

use bowline::{Connection, Reply};
use futures::FutureExt;
use futures::future::{join, join_all};

use super::code;
use crate::support::adapters::{Keys, Runtime, acquire, acquire_all, admin, attempt_id, inspect, release, word};
use crate::support::server::Server;

pub(crate) async fn replies_and_scripts_that_the_server_lost(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let keys = Keys::of("a");
    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "BUSY");
    let inspected = inspect(&connection, &keys).await.unwrap();
    assert_eq!(inspected[0], Reply::Bytes(attempt_id("c1:1").into_bytes()));
    assert_eq!(inspected.len(), 5, "{inspected:?}");
    assert!(matches!(inspected[2], Reply::Integer(1..)), "{inspected:?}");
    admin(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(word(&release(&connection, &keys, "c1:1").await), "RELEASED");
    // The scripts that were used before the flush are loaded again, by call and by batch.
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "GRANTED");
    admin(&server, &["SCRIPT", "FLUSH"]);
    let locks = ["b", "c", "a", "d"].map(Keys::of);
    let words: Vec<_> = acquire_all(&connection, &locks, "c3:1").await.iter().map(word).collect();
    assert_eq!(words, ["GRANTED", "GRANTED", "BUSY", "GRANTED"]);
}

pub(crate) async fn every_script_is_sent_whole_once_and_by_its_sha_later(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    admin(&server, &["CONFIG", "RESETSTAT"]);
    let locks: Vec<_> = (0..10).map(|n| Keys::of(&format!("l{n}"))).collect();
    assert!(acquire_all(&connection, &locks, "c1:1").await.iter().all(|outcome| word(outcome) == "GRANTED"));
    for lock in &locks {
        assert_eq!(word(&acquire(&connection, lock, "c2:1").await), "BUSY");
    }
    assert_eq!((executed(&server, "eval"), executed(&server, "evalsha")), (1, 19));
}

/// Calls that waited for the connection, or that come before the first answer, do not each send their script whole.
pub(crate) async fn a_reconnect_sends_each_script_whole_once(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let locks: Vec<_> = (0..400).map(|n| Keys::of(&format!("l{n}"))).collect();
    for round in 0..3 {
        if round < 2 {
            server.kill();
            rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
        }
        let mut taken: Vec<_> = locks.iter().map(|keys| acquire(&connection, keys, "c1:1").boxed()).collect();
        let mut given: Vec<_> = locks.iter().map(|keys| release(&connection, keys, "c1:1").boxed()).collect();
        if round < 2 {
            for call in taken.iter_mut().chain(&mut given) {
                assert!(futures::poll!(call).is_pending());
            }
        }
        if round == 0 {
            // These include the calls that would have sent the scripts. The order in which the others are polled must
            // not matter.
            drop(taken.drain(..5));
            drop(given.drain(..5));
        }
        if round < 2 {
            server.restart();
        } else {
            admin(&server, &["CONFIG", "RESETSTAT"]);
        }
        let (taken, given) = join(join_all(taken), join_all(given)).await;
        assert!(taken.iter().chain(&given).all(Result::is_ok));
        // With several threads, two calls may both be the first one.
        let whole = executed(&server, "eval");
        assert!(whole <= 4, "{whole} of {}", 2 * locks.len());
    }
}

/// A call that sends a script whole and is dropped before it is written takes no later call's script away.
pub(crate) async fn a_dropped_call_sends_its_script_all_the_same(rt: Runtime) {
    let server = Server::start();
    for round in 0..20 {
        let connection = rt.connect(&server.url()).await;
        admin(&server, &["CONFIG", "RESETSTAT"]);
        let keys = [0, 1].map(|n| Keys::of(&format!("{round} {n}")));
        let mut first = acquire(&connection, &keys[0], "c1:1").boxed();
        let _ = futures::poll!(&mut first);
        let mut second = acquire(&connection, &keys[1], "c1:1").boxed();
        // With several threads, both may be done by now.
        let polled = futures::poll!(&mut second);
        drop(first);
        assert_eq!(word(&release(&connection, &keys[1], "c1:1").await), "RELEASED", "they kept their order");
        let outcome = if let Poll::Ready(outcome) = polled { outcome } else { second.await };
        assert_eq!(word(&outcome), "GRANTED");
        assert_eq!(executed(&server, "eval"), 2);
    }
}

/// After a flush, those under way find out one after the other, and one of them is enough.
pub(crate) async fn a_flush_sends_each_script_whole_few_times(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let locks: Vec<_> = (0..400).map(|n| Keys::of(&format!("l{n}"))).collect();
    assert_eq!(word(&acquire(&connection, &Keys::of("a"), "c1:1").await), "GRANTED");
    admin(&server, &["SCRIPT", "FLUSH"]);
    admin(&server, &["CONFIG", "RESETSTAT"]);
    let outcomes = join_all(locks.iter().map(|keys| acquire(&connection, keys, "c1:1"))).await;
    assert!(outcomes.iter().all(|outcome| word(outcome) == "GRANTED"));
    let whole = executed(&server, "eval");
    assert!(whole <= 4, "{whole} of {}", locks.len());
}

/// How often the server has executed the command.
pub(crate) fn executed(server: &Server, command: &str) -> u32 {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse::<u32>().unwrap())
}

pub(crate) async fn refusals_have_the_servers_code_and_stay_with_their_call(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let wrong = Keys::of("wrong");
    admin(&server, &["SET", wrong.lock(), "x", "PX", "60000"]);
    assert_eq!(code(&acquire(&connection, &wrong, "c1:1").await.unwrap_err()), "WRONGTYPE");
    let outcomes = acquire_all(&connection, &[Keys::of("a"), wrong, Keys::of("b")], "c1:1").await;
    assert_eq!(word(&outcomes[0]), "GRANTED");
    assert_eq!(code(outcomes[1].as_ref().unwrap_err()), "WRONGTYPE");
    assert_eq!(word(&outcomes[2]), "GRANTED");
    assert!(connection.run_batch(&[]).await.is_empty());
}

pub(crate) async fn calls_run_in_the_order_they_are_polled(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let keys = Keys::of("a");
    for round in 0..20 {
        // The first round matters too, because the server has none of the scripts then.
        let (first, second) = (format!("c1:{round}"), format!("c2:{round}"));
        let taken = join(acquire(&connection, &keys, &first), release(&connection, &keys, &first));
        let again = join(acquire(&connection, &keys, &second), release(&connection, &keys, &second));
        let ((a, b), (c, d)) = join(taken, again).await;
        assert_eq!([a, b, c, d].each_ref().map(word), ["GRANTED", "RELEASED", "GRANTED", "RELEASED"]);
    }
}

pub(crate) async fn many_calls_keep_their_order_too(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let (keys, ids) = (Keys::of("a"), (0..400).map(|n| format!("c1:{n}")).collect::<Vec<_>>());
    let pairs = ids.iter().map(|id| join(acquire(&connection, &keys, id), release(&connection, &keys, id)));
    // More calls than are sent at once. None may overtake an earlier one that waits to be sent.
    for (n, (acquired, released)) in join_all(pairs).await.into_iter().enumerate() {
        assert_eq!((word(&acquired), word(&released)), ("GRANTED".into(), "RELEASED".into()), "{n}");
    }
}

pub(crate) async fn many_calls_at_once(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let locks: Vec<_> = (0..500).map(|n| Keys::of(&format!("l{n}"))).collect();
    let outcomes = join_all(locks.iter().map(|keys| acquire(&connection, keys, "c1:1"))).await;
    assert!(outcomes.iter().all(|outcome| word(outcome) == "GRANTED"));
}

pub(crate) async fn dropped_calls_leave_the_connection_in_step(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    for n in 0..50_u32 {
        let (dropped, kept) = (Keys::of(&format!("d{n}")), Keys::of(&format!("k{n}")));
        let mut call = acquire(&connection, &dropped, "c1:1").boxed();
        let _ = futures::poll!(&mut call);
        if n % 2 == 0 {
            rt.executor.sleep(Duration::from_micros(u64::from(n) * 20)).await;
        }
        drop(call);
        assert_eq!(word(&acquire(&connection, &kept, "c2:1").await), "GRANTED");
        assert_eq!(inspect(&connection, &kept).await.unwrap()[0], Reply::Bytes(attempt_id("c2:1").into_bytes()));
    }
}
