//! Eight tasks of ours beside eight threads of Java.

use std::sync::{Arc, Mutex};

use bowline::Redisson;
use futures::future::{join_all, try_join_all};

use crate::scene::{LEASE, Scene, within};

everywhere! {
    a_counter_loses_nothing,
    tokens_grow_under_contention,
}

const OF_EACH: usize = 8;
const ROUNDS: usize = 40;

/// Adds one to the counter by a read and a write, which only a lock makes one step.
async fn count(redisson: Redisson, connection: redis::Connection, counter: &'static str) {
    let connection = Arc::new(Mutex::new(connection));
    let lock = redisson.lock("contended");
    for _ in 0..ROUNDS {
        let guard = lock.lock().await.unwrap();
        let connection = Arc::clone(&connection);
        let counted = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap();
            let value: Option<u64> = redis::cmd("GET").arg(counter).query(&mut *connection).unwrap();
            redis::cmd("SET").arg(counter).arg(value.unwrap_or_default() + 1).exec(&mut *connection).unwrap();
        });
        counted.await.unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

async fn a_counter_loses_nothing(scene: &Scene) {
    const COUNTER: &str = "counter";
    scene.allow_forever(COUNTER);
    let other = scene.client(LEASE).await;
    let javas = (0..OF_EACH)
        .map(|n| scene.java.ask(&format!("worker{n}"), &format!("lock contend contended {ROUNDS} {COUNTER}")));
    let javas = try_join_all(javas.collect::<Vec<_>>());
    let ours = (0..OF_EACH).map(|n| {
        let client = if n % 2 == 0 { &scene.client } else { &other };
        tokio::spawn(count(client.redisson(), scene.connection(COUNTER), COUNTER))
    });
    // Java takes longer to begin.
    crate::scene::eventually("Java counts", async || counted(scene, COUNTER) > 0).await;
    // When one side is done, the other one must not have starved meanwhile: each hand-off budget of ours, of at most
    // 32, leaves a turn to Java.
    let of_java = async {
        let done = javas.await;
        (done, counted(scene, COUNTER))
    };
    let of_ours = async {
        let done = join_all(ours.collect::<Vec<_>>()).await;
        (done, counted(scene, COUNTER))
    };
    let both = async { futures::join!(of_java, of_ours) };
    let ((javas, by_java), (ours, by_ours)) = within(2 * LEASE, "all have counted", both).await;
    let slower = by_java.min(by_ours) - OF_EACH * ROUNDS;
    println!("{slower} of {} by the slower side when the other one was done", OF_EACH * ROUNDS);
    assert!(slower >= OF_EACH * ROUNDS / 32, "{slower}");
    assert_eq!(javas.unwrap().len(), OF_EACH);
    ours.into_iter().for_each(Result::unwrap);
    assert_eq!(counted(scene, COUNTER), 2 * OF_EACH * ROUNDS);
    redis::cmd("DEL").arg(COUNTER).exec(&mut scene.connection(COUNTER)).unwrap();
}

fn counted(scene: &Scene, counter: &str) -> usize {
    let counted: Option<usize> = redis::cmd("GET").arg(counter).query(&mut scene.connection(counter)).unwrap();
    counted.unwrap_or_default()
}

/// Each holder adds its token to a list. Tokens that are out of order would be there.
async fn tokens_grow_under_contention(scene: &Scene) {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let javas = async {
        for _ in 0..ROUNDS {
            let token = scene.java.ask("t", "fenced lockAndGetToken fenced").await.unwrap();
            tokens.lock().unwrap().push(token.parse::<u64>().unwrap());
            scene.java.ask("t", "fenced unlock fenced").await.unwrap();
        }
    };
    let ours = (0..4).map(|_| {
        let (lock, tokens) = (scene.redisson().fenced_lock("fenced"), Arc::clone(&tokens));
        tokio::spawn(async move {
            for _ in 0..ROUNDS {
                let guard = lock.lock().await.unwrap();
                tokens.lock().unwrap().push(guard.token().get());
                guard.release().await.unwrap();
            }
        })
    });
    let ours = join_all(ours.collect::<Vec<_>>());
    let ((), ours) = within(2 * LEASE, "all have a token", async { futures::join!(javas, ours) }).await;
    ours.into_iter().for_each(Result::unwrap);
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), 5 * ROUNDS);
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
}
