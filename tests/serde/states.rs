//! States, counters and tokens of real holds as JSON, and back.

use std::fmt::Debug;
use std::time::Duration;

use bowline::embedded::Server;
use bowline::tokio::Tokio;
use bowline::{Client, Config, HolderState, RedLock, RedLockStats, Stats, Token};
use futures::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

async fn client() -> Client {
    Server::new().client(Tokio::current().unwrap()).await.unwrap()
}

/// What is read is what was written, also by a format without types.
fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(state: &T) -> Value {
    let value = serde_json::to_value(state).unwrap();
    assert_eq!(&serde_json::from_value::<T>(value.clone()).unwrap(), state, "{value}");
    assert_eq!(&toml::from_str::<T>(&toml::to_string(state).unwrap()).unwrap(), state, "{value}");
    value
}

/// Takes out the rest of a lease, which depends on the clock.
fn remaining(value: &mut Value) -> Duration {
    let text = value.as_object_mut().unwrap().remove("remaining").unwrap();
    let holder = json!({ "client": null, "token": 1, "remaining": text });
    serde_json::from_value::<HolderState>(holder).unwrap().remaining
}

#[tokio::test]
async fn a_lock_and_its_token() {
    let client = client().await;
    let lock = client.lock("orders:42");
    assert_eq!(there_and_back(&lock.inspect().await.unwrap()), json!({ "holder": null, "waiters": 0, "queue": [] }));
    let guard = lock.lock().lease(Duration::from_secs(3_600)).await.unwrap();
    let token = guard.token();
    assert_eq!(serde_json::to_value(token).unwrap(), json!(token.get()));
    assert_eq!(serde_json::from_value::<Token>(json!(token.get())).unwrap(), token);

    let mut value = there_and_back(&lock.inspect().await.unwrap());
    let left = remaining(&mut value["holder"]);
    assert!(left > Duration::from_secs(60) && left <= Duration::from_secs(3_600), "{left:?}");
    let holder = json!({ "client": client.id().to_string(), "label": null, "token": token.get(), "idle": false });
    assert_eq!(value, json!({ "holder": holder, "waiters": 0, "queue": [] }));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn those_who_wait() {
    let client = client().await;
    let (lock, semaphore) = (client.lock("a"), client.semaphore("a", 3));
    let (guard, permits) = (lock.lock().await.unwrap(), semaphore.acquire_many(3).await.unwrap());
    let (locks, acquires) = (lock.clone(), semaphore.clone());
    let acquires = async move { acquires.acquire_many(2).await };
    let waiting = tokio::spawn(async move { futures::join!(async { locks.lock().await }, acquires) });
    while lock.inspect().await.unwrap().waiters + semaphore.inspect().await.unwrap().waiters < 2 {
        tokio::task::yield_now().await;
    }
    let waiter = |waits_for| json!([{ "client": client.id().to_string(), "label": null, "waits_for": waits_for }]);
    assert_eq!(there_and_back(&lock.inspect().await.unwrap())["queue"], waiter(json!("lock")));
    assert_eq!(there_and_back(&semaphore.inspect().await.unwrap())["queue"], waiter(json!({ "permits": 2 })));
    let names = client.names().all().await.unwrap();
    assert_eq!(there_and_back(&names[1]), json!({ "kind": "semaphore", "name": "a" }));
    let mut state = there_and_back(client.look(&names[..1]).await[0].as_ref().unwrap());
    assert!(remaining(&mut state["holds"][0]) > Duration::ZERO);
    let hold =
        json!({ "client": client.id().to_string(), "label": null, "access": "lock", "token": guard.token().get() });
    let name = json!({ "kind": "lock", "name": "a" });
    assert_eq!(state, json!({ "name": name, "holds": [hold], "waiters": 1, "queue": waiter(json!("lock")) }));
    guard.release().await.unwrap();
    permits.release().await.unwrap();
    let (guard, permits) = waiting.await.unwrap();
    guard.unwrap().release().await.unwrap();
    permits.unwrap().release().await.unwrap();
}

#[test]
fn a_number_that_is_no_token_is_refused() {
    const LARGEST: u64 = (1 << 53) - 1;
    assert_eq!(serde_json::from_value::<Token>(json!(LARGEST)).unwrap().get(), LARGEST);
    let error = serde_json::from_value::<Token>(json!(LARGEST + 1)).unwrap_err().to_string();
    assert_eq!(error, "invalid value: integer `9007199254740992`, expected a token, which is below 2^53");
    assert!(serde_json::from_value::<Token>(json!(-1)).is_err());
}

#[tokio::test]
async fn readers_permits_and_latches() {
    let client = client().await;
    let (rw_lock, semaphore, latch) = (client.rw_lock("a"), client.semaphore("a", 5), client.latch("a"));
    let reading = rw_lock.read().await.unwrap();
    let permit = semaphore.acquire_many(2).await.unwrap();

    let value = there_and_back(&rw_lock.inspect().await.unwrap());
    assert_eq!((&value["writer"], value["readers"].as_array().unwrap().len()), (&json!(null), 1));
    assert_eq!(value["readers"][0]["token"], json!(reading.token().get()));

    let mut value = there_and_back(&semaphore.inspect().await.unwrap());
    assert!(remaining(&mut value["holders"][0]) > Duration::ZERO);
    let holder = json!({ "client": client.id().to_string(), "label": null, "count": 2 });
    assert_eq!(value, json!({ "limit": 5, "used": 2, "holders": [holder], "waiters": 0, "queue": [] }));

    let none = there_and_back(&latch.inspect().await.unwrap());
    assert_eq!(none, json!({ "count": 0, "remaining": null, "waiters": 0, "queue": [] }));
    latch.try_set(3, Duration::from_secs(3_600)).await.unwrap();
    let mut value = there_and_back(&latch.inspect().await.unwrap());
    assert!(remaining(&mut value) > Duration::from_secs(60));
    assert_eq!(value, json!({ "count": 3, "waiters": 0, "queue": [] }));

    let barrier = client.barrier("a", 2);
    let none = json!({ "generation": 0, "parties": 0, "waiters": 0, "queue": [] });
    assert_eq!(there_and_back(&barrier.inspect().await.unwrap()), none);

    permit.release().await.unwrap();
    reading.release().await.unwrap();
}

#[tokio::test]
async fn what_java_shares() {
    let client = client().await;
    let lock = client.redisson().lock("a");
    assert_eq!(there_and_back(&lock.inspect().await.unwrap()), json!({ "holder": null }));
    let held = lock.lock().await.unwrap();
    let mut value = there_and_back(&lock.inspect().await.unwrap());
    assert!(remaining(&mut value["holder"]) > Duration::from_secs(1));
    assert_eq!(value["holder"]["entries"], 1);
    held.release().await.unwrap();

    let semaphore = client.redisson().permit_semaphore("b");
    let none = json!({ "available": 0, "acquired": 0, "permits": [] });
    assert_eq!(there_and_back(&semaphore.inspect().await.unwrap()), none);
    semaphore.try_set_permits(2).await.unwrap();
    let permit = semaphore.acquire().await.unwrap();
    let mut value = there_and_back(&semaphore.inspect().await.unwrap());
    assert!(remaining(&mut value["permits"][0]) > Duration::from_secs(1));
    assert_eq!(value, json!({ "available": 1, "acquired": 1, "permits": [{ "id": permit.id() }] }));
    permit.release().await.unwrap();
}

#[tokio::test]
async fn counters() {
    let client = client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let value = there_and_back(&client.stats());
    assert_eq!((&value["held"], &value["acquired"], &value["lost"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(value.as_object().unwrap().len(), 9, "{value}");
    guard.release().await.unwrap();
    // Those of a program that did not have all counters yet.
    let earlier = serde_json::from_value::<Stats>(json!({ "held": 3 })).unwrap();
    assert_eq!((earlier.held, earlier.acquired), (3, 0));
    assert_eq!(serde_json::from_value::<RedLockStats>(json!({})).unwrap(), RedLockStats::default());
}

/// One of three masters is not there. Its error is written, and none of its credentials.
#[tokio::test]
async fn a_red_lock_and_the_error_of_a_master() {
    // Nobody listens on port 1.
    let url = "redis://alice:s3cret@127.0.0.1:1";
    let config = Config::builder().connect_in_background(true).retry_timeout(Duration::from_millis(200));
    let down = bowline::tokio::connect_with(url, config.build().unwrap()).await.unwrap();
    let red_lock = RedLock::builder([client().await, down, client().await]).new_masters(true).build().unwrap();
    let guard = red_lock.lock("a").await.unwrap();
    let state = red_lock.inspect("a").await.unwrap();
    let value = serde_json::to_value(&state).unwrap();

    let masters = value["masters"].as_array().unwrap();
    assert_eq!(masters.len(), 3);
    for master in [&masters[0], &masters[2]] {
        assert_eq!((&master["vote"]["token"], &master["error"]), (&json!(guard.token().get()), &json!(null)));
    }
    let error = masters[1]["error"].as_str().unwrap();
    assert_eq!(error, format!("{:#}", state.masters[1].error.as_ref().unwrap()));
    assert!(error.contains("not connected"), "{error}");
    let stats = there_and_back(&red_lock.stats());
    assert_eq!((&stats["held"], &stats["acquired"]), (&json!(1), &json!(1)));
    for text in [value.to_string(), stats.to_string(), toml::to_string(&state).unwrap()] {
        assert!(!text.contains("s3cret") && !text.contains("alice"), "{text}");
    }
    guard.release().await.unwrap();
}

#[tokio::test]
async fn work_that_runs_once_in_a_period() {
    let client = client().await;
    let once = client.once("report", Duration::from_secs(60 * 60 * 24 * 366)).retry_on_error();
    let never = there_and_back(&once.inspect().await.unwrap());
    assert_eq!(never, json!({ "last": null, "holds_for": null }));
    let state = async || there_and_back(&once.inspect().await.unwrap());
    let outcomes = once
        .try_run(|run| {
            let (state, client) = (&state, &client);
            async move {
                let running = state().await;
                let last = &running["last"];
                assert_eq!(last["client"], json!(client.id().to_string()));
                assert_eq!((&last["token"], &last["tick"]), (&json!(run.token().get()), &json!(run.tick())));
                assert!(running["holds_for"].is_string() && last["began_ago"].is_string() && last["took"].is_null());
                assert_eq!(last["outcome"], json!("running"));
                Err::<(), _>(())
            }
        })
        .await
        .unwrap();
    assert_eq!(outcomes, Some(Err(())));
    assert_eq!(state().await["last"]["outcome"], json!("failed"));
    once.run(async |_| ()).await.unwrap();
    let done = state().await;
    assert!(done["last"]["outcome"] == json!("done") && done["last"]["took"].is_string(), "{done}");
}

#[tokio::test]
async fn the_leader_of_an_election_and_its_changes() {
    let client = client().await;
    let election = client.election("a").label("web-7");
    let mut changes = election.changes();
    let led = election.campaign().await.unwrap();
    let leader = there_and_back(&election.leader().await.unwrap().unwrap());
    assert_eq!((&leader["label"], &leader["term"]), (&json!("web-7"), &json!(led.token().get())));
    assert_eq!((&leader["client"], &leader["value"]), (&json!(client.id().to_string()), &json!(null)));
    led.publish("x").await.unwrap();
    let published = there_and_back(&election.leader().await.unwrap().unwrap());
    assert_eq!((&published["value"], &published["since"]), (&json!("x"), &leader["since"]));
    let change = there_and_back(&changes.next().await.unwrap().unwrap());
    assert_eq!(change, json!({ "elected": published }));
    let term = led.token();
    led.resign().await.unwrap();
    let change = there_and_back(&changes.next().await.unwrap().unwrap());
    assert_eq!(change, json!({ "ended": { "term": term } }));
}

#[tokio::test]
async fn decisions_of_a_rate_limiter() {
    let limiter = client().await.rate_limiter("calls", bowline::Quota::per(1, Duration::from_secs(3600)).burst(2));
    let free = there_and_back(&limiter.inspect().await.unwrap());
    let expected = json!({ "limited": false, "limit": 2, "remaining": 2, "retry_after": null, "reset_after": "0s" });
    assert_eq!(free, expected);
    assert!(limiter.check_n(2).await.unwrap().is_allowed());
    let refused = there_and_back(&limiter.check().await.unwrap());
    assert_eq!((&refused["limited"], &refused["remaining"]), (&json!(true), &json!(0)));
    assert!(refused["retry_after"].is_string() && refused["reset_after"].is_string(), "{refused}");
}
