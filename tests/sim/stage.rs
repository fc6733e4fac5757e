//! Where a scene is played: a few processes of the simulated world, and a script that says what happens to them.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config, Executor, Lock, LockGuard, RwLock, Semaphore};
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use uuid::Uuid;

use crate::cluster::{Cluster, connect};
use crate::executor::{Machine, Process, WORLD, on_new_machine};
use crate::fleet::Fleet;
use crate::guard::What;
use crate::network::{Link, SimConnection};
use crate::nodes::BUS;
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::world::MS;

/// The lock of all scenes.
pub const NAME: &str = "scene";

/// A lease that nothing in a scene waits for.
pub const LONG: Duration = Duration::from_secs(30);

/// No scene takes longer.
const LIMIT: Duration = Duration::from_secs(300);

/// What must hold, or how it does not: it starts with the invariant's number, if it has one.
pub type Played = Result<(), String>;

pub struct Stage {
    pub machine: Arc<Machine>,
    pub server: Arc<SimServer>,
    /// All servers of the scene, whose judges are asked.
    servers: Servers,
    scripts: Scripts,
    /// The world's, which no fault touches.
    executor: Arc<dyn Executor>,
    /// Nothing takes longer on its way between a process and the server.
    pub hop: Duration,
    pub random: Random,
    links: Vec<Arc<Link>>,
    clusters: Vec<Arc<Cluster>>,
    clients: Vec<Client>,
}

type Servers = Arc<Mutex<Vec<Arc<SimServer>>>>;

/// Plays the scene with that seed, which decides every delay and whose turn it is. Returns its history too.
pub fn play(seed: u64, scene: fn(Stage) -> BoxFuture<'static, Played>, scripts: Scripts) -> (Played, String) {
    on_new_machine(seed, |machine| play_on(machine, seed, scene, scripts))
}

fn play_on(
    machine: &Arc<Machine>,
    seed: u64,
    scene: fn(Stage) -> BoxFuture<'static, Played>,
    scripts: Scripts,
) -> (Played, String) {
    let server = SimServer::new(machine, scripts.clone());
    let servers: Servers = Arc::new(Mutex::new(vec![server.clone()]));
    let executor = machine.process(WORLD);
    let mut random = Random::new(!seed);
    let hop = *random.pick(&[MS / 2, 2 * MS, 20 * MS]);
    let ended = Arc::new(Mutex::new(None));
    let (stage, played) = ((machine.clone(), servers.clone(), executor.clone()), ended.clone());
    executor.spawn(Box::pin(async move {
        let (machine, servers, executor) = stage;
        let stage = Stage {
            machine,
            server,
            servers,
            scripts,
            executor,
            hop,
            random,
            links: Vec::new(),
            clusters: Vec::new(),
            clients: Vec::new(),
        };
        let outcome = scene(stage).await;
        *played.lock().unwrap() = Some(outcome);
    }));
    let violation = || servers.lock().unwrap().iter().find_map(|server| server.violation());
    let stuck = machine.run_until(LIMIT, || violation().is_some() || ended.lock().unwrap().is_some());
    let outcome = ended.lock().unwrap().take();
    let outcome = match (violation(), outcome) {
        (Some(violation), _) => Err(violation),
        (None, Some(outcome)) => outcome,
        (None, None) => Err(format!("I3 the scene came to no end: {stuck:?}")),
    };
    (outcome, machine.take_history())
}

impl Stage {
    /// Starts another process. The first is number 1.
    pub async fn enter(&mut self, lease: Duration) -> Process {
        self.enter_acknowledged(lease, 0).await
    }

    /// The same; so many replicas must acknowledge each of its grants.
    pub async fn enter_acknowledged(&mut self, lease: Duration, replicas: u32) -> Process {
        let process = self.links.len() + 1;
        let link = Link::new(&self.machine, self.server.clone(), process, MS / 10, self.hop);
        self.links.push(link.clone());
        let id = Uuid::from_u64_pair(self.random.next(), self.random.next() | 1);
        self.server.judge.introduce(id.to_string(), process, link.clone(), self.hop);
        let executor = self.machine.process(process);
        let config = Config::builder().lease(lease).client_id(id).acknowledged_by(replicas).build().unwrap();
        let client = Client::connect(executor, Arc::new(SimConnection(link)), config);
        self.clients.push(client.await.unwrap());
        process
    }

    /// Starts a process that uses the cluster. Scenes of clusters have no other ones.
    pub async fn enter_cluster(&mut self, lease: Duration) -> Process {
        let process = self.clusters.len() + 1;
        let seed = self.random.next();
        let cluster = Cluster::new(&self.machine, &self.server, process, (MS / 10, self.hop), seed);
        self.clusters.push(cluster.clone());
        let id = Uuid::from_u64_pair(self.random.next(), self.random.next() | 1);
        self.server.judge.introduce(id.to_string(), process, cluster.clone(), self.hop + BUS);
        let config = Config::builder().lease(lease).client_id(id).build().unwrap();
        let executor = self.machine.process(process);
        let client = self.spawn(process, async move {
            let connection = connect(cluster, executor.clone(), config.clone()).await;
            Client::connect(executor, Arc::new(connection), config).await.unwrap()
        });
        self.clients.push(client.await);
        process
    }

    /// So many servers that know nothing of each other.
    pub fn fleet(&self, count: usize) -> Arc<Fleet> {
        let fleet = Fleet::new(&self.machine, count, (MS / 10, self.hop), &self.scripts);
        self.servers.lock().unwrap().extend(fleet.servers().iter().cloned());
        fleet
    }

    pub fn cluster(&self, process: Process) -> &Arc<Cluster> {
        &self.clusters[process - 1]
    }

    pub fn link(&self, process: Process) -> &Arc<Link> {
        &self.links[process - 1]
    }

    pub fn client(&self, process: Process) -> Client {
        self.clients[process - 1].clone()
    }

    pub fn lock(&self, process: Process) -> Lock {
        self.clients[process - 1].lock(NAME)
    }

    pub fn rw_lock(&self, process: Process) -> RwLock {
        self.clients[process - 1].rw_lock(NAME)
    }

    pub fn semaphore(&self, process: Process, limit: u32) -> Semaphore {
        self.clients[process - 1].semaphore(NAME, limit)
    }

    /// Runs the future as a task of the process; what came of it can be waited for.
    pub fn spawn<T: Send + 'static>(
        &self,
        process: Process,
        future: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let (sender, receiver) = oneshot::channel();
        self.machine.process(process).spawn(Box::pin(async move {
            let _ = sender.send(future.await);
        }));
        Box::pin(async { receiver.await.expect("tasks come to an end") })
    }

    /// Acquires as a task of the process.
    pub fn acquires(&self, process: Process) -> BoxFuture<'static, LockGuard> {
        let lock = self.lock(process);
        self.spawn(process, async move { lock.lock().await.unwrap() })
    }

    /// Ends the process without another word from it.
    pub fn kill(&self, process: Process) {
        self.machine.kill(process);
        self.link(process).kill();
    }

    pub async fn sleep(&self, duration: Duration) {
        self.executor.sleep(duration).await;
    }

    pub async fn until_waiting(&self, waiters: usize) {
        while self.server.waiters(NAME) != waiters {
            self.sleep(MS / 20).await;
        }
    }

    pub async fn until_locked(&self, locked: bool) {
        let key = What::Lock.key(NAME);
        while self.server.keys().contains(&key) != locked {
            self.sleep(MS / 20).await;
        }
    }

    /// What the future gives, if it does in time.
    pub async fn within<T>(
        &self,
        limit: Duration,
        late: &str,
        future: impl Future<Output = T> + Unpin,
    ) -> Result<T, String> {
        match select(future, self.executor.sleep(limit)).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right(_) => Err(format!("{late}, {limit:?} later")),
        }
    }
}

/// `what` starts with the invariant's number.
pub fn must(holds: bool, what: &str) -> Played {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
