//! Scripts at the old master of a slot that is moving. It has all keys of a name, and refuses a key that a script
//! deletes and then uses again: what had been written by then would stay half done.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Call, Client, Config, Connection, ConnectionError, Lock, Notice, RedisConnection, Reply, Topology};
use futures::future::{LocalBoxFuture, join};
use futures::stream::BoxStream;

use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    a_key_that_a_script_deletes_is_refused_in_a_moving_slot,
    no_script_stops_half_way_in_a_moving_slot,
}

/// Shows that the refusals exist for which the other test looks.
async fn a_key_that_a_script_deletes_is_refused_in_a_moving_slot(_env: Env) {
    let cluster = Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"]);
    let (key, slot) = ("{a}", cluster.slot_of("{a}"));
    let from = cluster.owner_of_slot(slot);
    let mut client = cluster.node(from).client();
    redis::cmd("SET").arg(key).arg(1).arg("PX").arg(60_000).exec(&mut client).unwrap();
    cluster.open_slot(slot, from, 1 - from);
    let source = "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], '2', 'PX', 60000)";
    let refused = redis::cmd("EVAL").arg(source).arg(1).arg(key).query::<redis::Value>(&mut client).unwrap_err();
    assert!(refused.to_string().contains("non local key"), "{refused}");
}

/// A holder and a waiter of `name`, so that all keys of the name exist.
struct Contended {
    env: Env,
    cluster: Arc<Cluster>,
    client: Client,
    other: Client,
    name: &'static str,
}

type Ends = LocalBoxFuture<'static, ()>;

async fn no_script_stops_half_way_in_a_moving_slot(env: Env) {
    let cluster = Arc::new(Cluster::start(2, 0));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let client = connect(&env, &cluster, &errors).await;
    let other = connect(&env, &cluster, &errors).await;
    type Case = (&'static str, fn(Contended) -> LocalBoxFuture<'static, Ends>);
    let cases: [Case; 13] = [
        ("release-to-the-only-waiter", |scene| Box::pin(release(scene, 1))),
        ("release-to-the-first-of-two", |scene| Box::pin(release(scene, 2))),
        ("cancel-the-only-waiter", |scene| Box::pin(cancel(scene))),
        ("force-a-release", |scene| Box::pin(force_release(scene))),
        ("release-permits", |scene| Box::pin(permits(scene))),
        ("cancel-a-waiter-for-permits", |scene| Box::pin(cancel_permits(scene))),
        ("downgrade", |scene| Box::pin(downgrade(scene))),
        ("count-a-latch-down", |scene| Box::pin(latch(scene))),
        ("complete-a-barrier", |scene| Box::pin(barrier(scene, Complete::Pass))),
        ("leave-a-barrier", |scene| Box::pin(barrier(scene, Complete::Leave))),
        ("reset-a-barrier", |scene| Box::pin(barrier(scene, Complete::Reset))),
        ("break-a-barrier-and-wait", |scene| Box::pin(broken_barrier(scene, 2))),
        ("break-a-barrier-and-pass", |scene| Box::pin(broken_barrier(scene, 1))),
    ];
    for (case, prepare) in cases {
        let scene = Contended {
            env: env.clone(),
            cluster: cluster.clone(),
            client: client.clone(),
            other: other.clone(),
            name: case,
        };
        let ends = prepare(scene).await;
        let slot = cluster.slot_of(&format!("{{{case}}}"));
        let from = cluster.owner_of_slot(slot);
        cluster.open_slot(slot, from, 1 - from);
        // Waits until the slot has moved, if it has to.
        let moves = async {
            env.sleep(Duration::from_millis(300)).await;
            cluster.close_slot(slot, from, 1 - from);
        };
        env.soon(case, join(ends, moves)).await;
    }
    client.close().await;
    other.close().await;
    let errors = errors.lock().unwrap();
    assert!(errors.is_empty(), "{errors:#?}");
}

async fn connect(env: &Env, cluster: &Cluster, errors: &Arc<Mutex<Vec<String>>>) -> Client {
    let config = Config::default();
    let inner = env.open(&cluster.user_url(), &config).await.unwrap();
    let connection = Listening { inner, errors: Arc::clone(errors) };
    Client::connect(env.executor(), Arc::new(connection), config).await.unwrap()
}

/// Writes down what scripts failed with: while the cluster is up, only those that stopped half-way do.
#[derive(Debug)]
struct Listening {
    inner: RedisConnection,
    errors: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Connection for Listening {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let answer = self.inner.run(call).await;
        if let Err(error @ (ConnectionError::Unknown(_) | ConnectionError::Refused { .. })) = &answer {
            self.errors.lock().unwrap().push(format!("{}: {error}", call.script.name()));
        }
        answer
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.inner.why_down(key)
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn close(&self) {
        self.inner.close();
    }
}

impl Contended {
    fn lock(&self) -> Lock {
        self.client.lock(self.name)
    }

    async fn queued(&self, waiters: u64) {
        let lock = self.lock();
        self.env.eventually("queued", async || lock.inspect().await.unwrap().waiters == waiters).await;
    }
}

async fn release(scene: Contended, waiters: u64) -> Ends {
    let held = scene.lock().lock().await.unwrap();
    let mut waiting = Vec::new();
    for n in 1..=waiters {
        let lock = scene.other.lock(scene.name);
        waiting.push(scene.env.spawn(async move { lock.lock().fair().await.unwrap().release().await.unwrap() }));
        scene.queued(n).await;
    }
    Box::pin(async move {
        held.release().await.unwrap();
        futures::future::join_all(waiting).await;
    })
}

async fn cancel(scene: Contended) -> Ends {
    let held = scene.lock().lock().await.unwrap();
    let lock = scene.other.lock(scene.name);
    let (give_up, given_up) = futures::channel::oneshot::channel::<()>();
    let waiting = scene.env.spawn(async move {
        let waiting = Box::pin(lock.lock().into_future());
        futures::future::select(waiting, given_up).await;
    });
    scene.queued(1).await;
    Box::pin(async move {
        give_up.send(()).unwrap();
        waiting.await;
        scene.queued(0).await;
        held.release().await.unwrap();
    })
}

async fn force_release(scene: Contended) -> Ends {
    let held = scene.lock().lock().await.unwrap();
    let lock = scene.other.lock(scene.name);
    let waiting = scene.env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() });
    scene.queued(1).await;
    Box::pin(async move {
        scene.lock().force_release().await.unwrap();
        held.lost().await;
        waiting.await;
    })
}

async fn permits(scene: Contended) -> Ends {
    let held = scene.client.semaphore(scene.name, 2).acquire_many(2).await.unwrap();
    let semaphore = scene.other.semaphore(scene.name, 2);
    let waiting = scene.env.spawn(async move { semaphore.acquire().await.unwrap().release().await.unwrap() });
    let semaphore = scene.client.semaphore(scene.name, 2);
    scene.env.eventually("queued", async || semaphore.inspect().await.unwrap().waiters == 1).await;
    Box::pin(async move {
        held.release().await.unwrap();
        waiting.await;
    })
}

async fn cancel_permits(scene: Contended) -> Ends {
    let held = scene.client.semaphore(scene.name, 2).acquire_many(2).await.unwrap();
    let semaphore = scene.other.semaphore(scene.name, 2);
    let (give_up, given_up) = futures::channel::oneshot::channel::<()>();
    let waiting = scene.env.spawn(async move {
        let waiting = Box::pin(semaphore.acquire().into_future());
        futures::future::select(waiting, given_up).await;
    });
    let semaphore = scene.client.semaphore(scene.name, 2);
    scene.env.eventually("queued", async || semaphore.inspect().await.unwrap().waiters == 1).await;
    Box::pin(async move {
        give_up.send(()).unwrap();
        waiting.await;
        scene.env.eventually("left", async || semaphore.inspect().await.unwrap().waiters == 0).await;
        held.release().await.unwrap();
    })
}

async fn downgrade(scene: Contended) -> Ends {
    let writer = scene.client.rw_lock(scene.name).write().await.unwrap();
    let lock = scene.other.rw_lock(scene.name);
    let waiting = scene.env.spawn(async move { lock.read().await.unwrap().release().await.unwrap() });
    let lock = scene.client.rw_lock(scene.name);
    scene.env.eventually("queued", async || lock.inspect().await.unwrap().waiters == 1).await;
    Box::pin(async move {
        let reader = writer.downgrade().await.unwrap();
        waiting.await;
        reader.release().await.unwrap();
    })
}

async fn latch(scene: Contended) -> Ends {
    let latch = scene.client.latch(scene.name);
    latch.try_set(2, Duration::from_secs(60)).await.unwrap();
    latch.count_down().await.unwrap();
    let other = scene.other.latch(scene.name);
    let waiting = scene.env.spawn(async move { other.wait().await.unwrap() });
    scene.env.eventually("waits", async || latch.inspect().await.unwrap().waiters == 1).await;
    Box::pin(async move {
        latch.count_down().await.unwrap();
        waiting.await;
        latch.delete().await.unwrap();
    })
}

/// How the generation of a barrier ends.
#[derive(Clone, Copy, PartialEq)]
enum Complete {
    Pass,
    Leave,
    Reset,
}

async fn barrier(scene: Contended, how: Complete) -> Ends {
    let (barrier, other) = (scene.client.barrier(scene.name, 2), scene.other.barrier(scene.name, 2));
    // What remembers the ends of generations has to be there, too.
    join(barrier.wait().into_future(), other.wait().into_future()).await.0.unwrap();
    let (give_up, given_up) = futures::channel::oneshot::channel::<()>();
    let waiting = scene.env.spawn(async move {
        match futures::future::select(other.wait().into_future(), given_up).await {
            futures::future::Either::Left((told, _)) => Some(told.map_err(|error| error.kind())),
            futures::future::Either::Right(_) => None,
        }
    });
    scene.env.eventually("waits", async || barrier.inspect().await.unwrap().waiters == 1).await;
    Box::pin(async move {
        match how {
            Complete::Pass => {
                let passed = barrier.wait().await.unwrap();
                assert_eq!(waiting.await.unwrap().unwrap().generation(), passed.generation());
            }
            Complete::Leave => {
                give_up.send(()).unwrap();
                assert!(waiting.await.is_none());
                scene.env.eventually("left", async || barrier.inspect().await.unwrap().waiters == 0).await;
            }
            Complete::Reset => {
                assert!(barrier.reset().await.unwrap());
                assert_eq!(waiting.await.unwrap().unwrap_err(), bowline::ErrorKind::Broken);
            }
        }
    })
}

/// One waits whose lease has ended. The arrival that finds it waits with others, or passes alone.
async fn broken_barrier(scene: Contended, parties: u32) -> Ends {
    let (barrier, other) = (scene.client.barrier(scene.name, parties), scene.other.barrier(scene.name, 2));
    let both = scene.client.barrier(scene.name, 2);
    join(both.wait().into_future(), other.wait().into_future()).await.0.unwrap();
    let waiting = scene.env.spawn({
        let other = other.clone();
        async move { other.wait().await.map_err(|error| error.kind()) }
    });
    scene.env.eventually("waits", async || both.inspect().await.unwrap().waiters == 1).await;
    let tickets = format!("bowline:barrier:{{{}}}:tickets", scene.name);
    let mut node = scene.cluster.node(scene.cluster.owner_of_slot(scene.cluster.slot_of(&tickets))).client();
    let ids: Vec<String> = redis::cmd("ZRANGE").arg(&tickets).arg(0).arg(-1).query(&mut node).unwrap();
    redis::cmd("ZADD").arg(&tickets).arg("XX").arg(1).arg(&ids[0]).exec(&mut node).unwrap();
    Box::pin(async move {
        let arrival = scene.env.spawn(barrier.wait().into_future());
        assert_eq!(waiting.await.unwrap_err(), bowline::ErrorKind::Broken);
        if parties == 2 {
            other.wait().await.unwrap();
        }
        arrival.await.unwrap();
    })
}
