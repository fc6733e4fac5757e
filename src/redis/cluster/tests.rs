use std::sync::Mutex;
use std::time::Instant;

use super::super::lab::{Lab, Said, Tasks, ms};
use super::*;
use crate::connection::Reply;
use crate::mutex::lock;
use crate::protocol::Script;

mod acknowledged;
mod channels;
mod follow;
mod late;
mod links;
mod messages;
mod two;

/// A client of the lab's cluster, and its tasks.
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    cluster: Cluster,
}

impl Scene {
    /// Node 1 is the master, and nodes 2 and 3 could take its place.
    fn new() -> Self {
        Self::of(&[1, 2, 3])
    }

    /// Other nodes are not in the map.
    fn of(ports: &[u16]) -> Self {
        Self::connect(Lab::new(ports, 1))
    }

    /// The nodes have shard channels.
    fn sharded() -> Self {
        let lab = Lab::new(&[1, 2, 3], 1);
        lab.nodes.values().for_each(|node| node.sharded.store(true, Ordering::SeqCst));
        Self::connect(lab)
    }

    /// Each answer takes that long.
    fn over(round_trip: Duration) -> Self {
        let lab = Lab::new(&[1, 2, 3], 1);
        slow(&lab, round_trip);
        Self::connect(lab)
    }

    fn connect(lab: Arc<Lab>) -> Self {
        Self::connect_to(lab, "redis-cluster://h:1")
    }

    fn connect_to(lab: Arc<Lab>, seeds: &str) -> Self {
        Self::with(lab, seeds, &Config::default(), 7)
    }

    /// The number decides in which order nodes are asked.
    fn with(lab: Arc<Lab>, seeds: &str, config: &Config, number: u64) -> Self {
        let mut tasks = Tasks::new();
        let seeds = Seeds::parse(seeds).unwrap();
        let connecting = Cluster::connect(lab.clone(), lab.clone(), seeds, config, number);
        let (cluster, _) = lab.run(&mut tasks, connecting).unwrap();
        Self { lab, tasks, cluster }
    }

    fn run<T>(&mut self, work: impl AsyncFnOnce(&Cluster) -> T) -> T {
        self.lab.run(&mut self.tasks, work(&self.cluster))
    }

    fn sleep(&mut self, time: Duration) {
        self.lab.run(&mut self.tasks, self.lab.sleep(time));
    }
}

/// Lets each answer of each node take that long.
fn slow(lab: &Lab, round_trip: Duration) {
    lab.nodes.values().for_each(|node| *lock(&node.round_trip) = round_trip);
}

/// Runs one call.
async fn call(cluster: &Cluster) -> Answer {
    call_of(cluster, "{a}").await
}

async fn call_of(cluster: &Cluster, key: &str) -> Answer {
    let script = Script::all().next().unwrap();
    cluster.run(Call::new(script, &[key], &[])).await
}

/// All nodes say `fail` for a minute, while a client calls again and again.
#[test]
fn a_cluster_that_fails_is_read_seldom_and_over_connections_that_are_kept() {
    let mut scene = Scene::new();
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
    lab.nodes[&3].dead.store(true, Ordering::SeqCst);
    for node in lab.nodes.values() {
        node.up.store(false, Ordering::SeqCst);
        (*lock(&node.logins), *lock(&node.readings)) = (0, 0);
    }
    let start = lab.now();
    scene.lab.run(&mut scene.tasks, async {
        while lab.now() < start + Duration::from_secs(60) {
            assert!(matches!(call(cluster).await, Err(ConnectionError::Refused { .. })));
        }
    });
    let (logins, readings) = (lab.sum(|node| &node.logins), lab.sum(|node| &node.readings));
    assert!(logins <= 2, "{logins} logins: one node had no link, and one cannot be dialled");
    assert!((20..=60).contains(&readings), "{readings} answers about the map");
    // The nodes accept calls again, and the client notices at once.
    lab.nodes.values().for_each(|node| node.up.store(true, Ordering::SeqCst));
    scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
}

/// All clients of a cluster wait while it is in `fail`, so none of them calls all the time.
#[test]
fn a_call_that_no_node_accepts_is_sent_seldom() {
    let limit = Duration::from_secs(3);
    let mut sent = [0, 0];
    for acknowledged in [false, true] {
        let mut scene = Scene::new();
        scene.run(call).unwrap();
        scene.lab.nodes.values().for_each(|node| node.up.store(false, Ordering::SeqCst));
        let (before, began) = (scene.lab.sum(|node| &node.scripts), scene.lab.now());
        scene.run(async |cluster| {
            let script = Script::all().next().unwrap();
            let calls = [Call::new(script, &["{a}"], &[])];
            match acknowledged {
                true => assert!(cluster.run_acknowledged(&calls, 1, limit).await.remove(0).is_err()),
                false => assert!(cluster.run(calls[0]).await.is_err()),
            }
        });
        assert_eq!(scene.lab.now() - began, limit, "acknowledged: {acknowledged}");
        sent[usize::from(acknowledged)] = scene.lab.sum(|node| &node.scripts) - before;
    }
    assert!(sent.iter().all(|sent| (5..25).contains(sent)), "{sent:?}");
}

/// The pause of a refused call ends no later than the first reading that finds the cluster well.
#[test]
fn a_refused_call_is_sent_again_after_a_reading() {
    for down in (500..2_500).step_by(100).map(Duration::from_millis) {
        let mut scene = Scene::new();
        scene.run(call).unwrap();
        let (lab, read) = (Arc::clone(&scene.lab), Arc::<Mutex<Option<Instant>>>::default());
        for node in lab.nodes.values() {
            let (clock, read, healed) = (Arc::clone(&lab.clock), Arc::clone(&read), lab.now() + down);
            node.up.store(false, Ordering::SeqCst);
            node.answers(move |_, words| {
                if words == ["CLUSTER", "INFO"] && clock.now() >= healed {
                    lock(&read).get_or_insert(clock.now());
                }
                None
            });
        }
        let heal = async {
            lab.sleep(down).await;
            lab.nodes.values().for_each(|node| node.up.store(true, Ordering::SeqCst));
        };
        let (answer, ()) = scene.lab.run(&mut scene.tasks, futures::future::join(call(&scene.cluster), heal));
        answer.unwrap();
        let read = lock(&read).unwrap_or_else(|| lab.now());
        assert_eq!(lab.now() - read, Duration::ZERO, "down for {down:?}: the call slept on after the reading");
    }
}

/// Nodes that say `fail` refuse one call again and again. The time limit may pass while one of these answers is on the
/// way.
#[test]
fn a_call_that_was_handed_over_a_moment_before_its_time_is_over_says_nothing_about_the_link() {
    let mut scene = Scene::new();
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
    let (lab, node) = (&lab, &lab.nodes[&1]);
    *lock(&node.logins) = 0;
    let freeze = |after| {
        lab.nodes.values().for_each(|node| node.up.store(false, Ordering::SeqCst));
        async move {
            lab.sleep(after).await;
            node.frozen.store(true, Ordering::SeqCst);
        }
    };
    let limit = Config::default().command_timeout;
    // Calls are sent again after at most 625 ms.
    for (silence, logins) in [(ms(450), 0), (limit, 1)] {
        // In some of these rounds, the last request is on the way when the time limit passes.
        for _ in 0..5 {
            let (answer, ()) =
                scene.lab.run(&mut scene.tasks, futures::future::join(call(cluster), freeze(limit - silence)));
            assert!(answer.is_err());
            node.thaw();
            node.up.store(true, Ordering::SeqCst);
            scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
        }
        assert_eq!(*lock(&node.logins), logins * 5, "{silence:?}");
    }
}
