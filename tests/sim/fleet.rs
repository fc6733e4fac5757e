//! Several servers that know nothing of each other. Each has a judge of its own; each process has a link and a client
//! for each of them. A server crashes, is cut off, is slow or stands still by itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, ConfigBuilder};
use uuid::Uuid;

use crate::executor::{Machine, Process};
use crate::network::{Link, SimConnection};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;

mod run;

pub use run::run;

/// A server, by its place in the configuration of every client.
pub type Number = usize;

pub struct Fleet {
    machine: Arc<Machine>,
    servers: Vec<Arc<SimServer>>,
    /// The links to each server.
    links: Mutex<Vec<Vec<Arc<Link>>>>,
    delays: (Duration, Duration),
}

impl Fleet {
    /// So many empty servers. A message to or from them takes between `shortest` and `longest`.
    pub fn new(
        machine: &Arc<Machine>,
        count: usize,
        (shortest, longest): (Duration, Duration),
        scripts: &Scripts,
    ) -> Arc<Self> {
        let servers: Vec<_> = (0..count).map(|_| SimServer::new(machine, scripts.clone())).collect();
        let links = Mutex::new(vec![Vec::new(); count]);
        Arc::new(Self { machine: machine.clone(), servers, links, delays: (shortest, longest) })
    }

    pub fn servers(&self) -> &[Arc<SimServer>] {
        &self.servers
    }

    /// From now on each server has a clock of its own: ahead by no more than that, and wrong by itself.
    pub fn clocks_differ(&self, seed: u64, most: Duration) {
        let mut random = Random::new(seed ^ 0xf1ee7);
        for server in &self.servers {
            server.nodes.clocks_differ(random.next());
            server.nodes.move_clocks(random.between(Duration::ZERO, most), true);
        }
    }

    /// The first thing that was wrong at one of the servers.
    pub fn violation(&self) -> Option<String> {
        let found = |(number, server): (Number, &Arc<SimServer>)| Some((number, server.violation()?));
        self.servers.iter().enumerate().find_map(found).map(|(number, what)| format!("{what}, at server {number}"))
    }

    /// A new link of the process to one server, and the identity of the client that shall use it.
    pub fn link(&self, process: Process, number: Number, random: &mut Random) -> (Arc<Link>, Uuid) {
        let (server, (shortest, longest)) = (&self.servers[number], self.delays);
        let link = Link::new(&self.machine, server.clone(), process, shortest, longest);
        let id = Uuid::from_u64_pair(random.next(), random.next() | 1);
        server.judge.introduce(id.to_string(), process, link.clone(), longest);
        self.links.lock().unwrap()[number].push(link.clone());
        (link, id)
    }

    /// The clients of a process: one for each server, in the order of the servers.
    pub async fn enter(&self, process: Process, config: &ConfigBuilder, random: &mut Random) -> Vec<Client> {
        let mut clients = Vec::new();
        for number in 0..self.servers.len() {
            let (link, id) = self.link(process, number, random);
            let config = config.clone().client_id(id).build().unwrap();
            let client = Client::connect(self.machine.process(process), Arc::new(SimConnection(link)), config);
            clients.push(client.await.unwrap());
        }
        clients
    }

    fn each_link(&self, number: Number, fault: impl Fn(&Arc<Link>)) {
        self.links.lock().unwrap()[number].iter().for_each(fault);
    }

    /// The server dies, and is back after the outage, with its data or empty.
    pub fn crash(&self, number: Number, outage: Duration, with_data: bool) {
        self.servers[number].restart(with_data);
        self.cut_off(number, outage);
    }

    /// All connections to the server break. It runs on.
    pub fn cut_off(&self, number: Number, outage: Duration) {
        self.each_link(number, |link| link.cut(true, true, outage));
    }

    /// All that goes to the server or comes from it takes that much longer.
    pub fn slow_down(&self, number: Number, by: Duration, duration: Duration) {
        self.each_link(number, |link| link.slow_down(by, duration));
    }

    /// The server stands still: what reaches it is executed afterwards.
    pub fn freeze(&self, number: Number, duration: Duration) {
        self.servers[number].freeze(duration);
    }
}
