//! bowline beside other locks on Redis, in the same run and by turns.
//!
//! `cargo run --release -- [part of a case's name]... [pairs=2000] [seconds=2] [slices=3] [clients=30]
//! [holds=10000]`, in `benches/peers`

use std::slice;
use std::time::Duration;

use bowline_benches::args::Args;
use bowline_benches::far::Far;
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::{Result, child};

mod chart;
mod client;
mod contender;
mod counts;
mod majority;
mod own;
mod peer;
mod program;
mod redisson;
mod runner;

use contender::Contender;
use counts::Looks;
use peer::Peer;

/// Pairs of one peer before it is the next one's turn.
const BLOCK: u32 = 100;

/// How long a request takes to a master that is far away, as in another data centre of the region.
const FAR: Duration = Duration::from_millis(1);

/// Tasks that compete, in the cases that have more than one.
const TASKS: [usize; 2] = [8, 64];

fn main() -> Result<()> {
    if let Some(task) = child::task() {
        return own::work(&task);
    }
    let args = Args::parse(&["pairs", "seconds", "slices", "clients", "holds"])?;
    let server = Server::find()?;
    let masters = Server::start_three()?;
    let far = masters.iter().map(|master| Far::from(&master.url, FAR)).collect::<Result<Vec<_>>>()?;
    let far_masters: Vec<_> = far.iter().map(Far::server).collect();
    // Two masters are near, and one is far away.
    let near = masters[..2].iter().map(|master| Server::at(master.url.clone()));
    let uneven_masters: Vec<_> = near.chain(far[2..].iter().map(Far::server)).collect();
    let report = Runtime::TokioMulti.run(|_| async move {
        let mut report = Report::default();
        let mut on_one = Scene { name: "", servers: slice::from_ref(&server), peers: Peer::ALL.to_vec() };
        on_one.leave_out_missing(&args).await;
        client::measure(&server, &on_one.peers, &args, &mut report).await?;
        let over_all = Scene { name: "masters-", servers: &masters, peers: Peer::OVER_ALL.to_vec() };
        let free = Scene { name: "masters-", servers: &masters, peers: Peer::FREE_OVER_ALL.to_vec() };
        let far_away = Scene { name: "masters-far-", servers: &far_masters, peers: Peer::FREE_OVER_ALL.to_vec() };
        let uneven = Scene { name: "masters-uneven-", servers: &uneven_masters, peers: Peer::FREE_OVER_ALL.to_vec() };
        for scene in [free, far_away, uneven] {
            scene.pairs(&args, &mut report).await?;
        }
        on_one.pairs(&args, &mut report).await?;
        for scene in [on_one, over_all] {
            for tasks in TASKS {
                scene.contention(tasks, &args, &mut report).await?;
            }
        }
        Ok(report)
    })?;
    report.print_tables();
    chart::draw(&report)
}

/// Locks that are compared with each other.
struct Scene<'a> {
    /// Begins the names of its cases.
    name: &'static str,
    servers: &'a [Server],
    peers: Vec<Peer>,
}

impl Scene<'_> {
    fn case(&self, what: &str, peer: Peer) -> String {
        format!("{}{what}-{}", self.name, peer.name())
    }

    /// Builds what is not part of this program, if one of its cases is wanted. What cannot be built is left out.
    async fn leave_out_missing(&mut self, args: &Args) {
        let wanted = |peer: &&Peer| {
            let mut cases = TASKS.map(contended).into_iter().chain(["pair".to_owned()]);
            peer.is_redisson() && cases.any(|what| args.wants(&self.case(&what, **peer)))
        };
        let is_wanted = self.peers.iter().any(|peer| wanted(&peer)) || client::wants_redisson(args);
        if is_wanted && let Err(reason) = redisson::build().await {
            println!("skipped: Redisson, which needs a JDK 17, Maven and once the network: {reason}");
            self.peers.retain(|peer| !peer.is_redisson());
        }
    }

    async fn contenders(&self, what: &str, tasks: usize, args: &Args) -> Result<Vec<Contender>> {
        let mut all = Vec::new();
        for &peer in &self.peers {
            let case = self.case(what, peer);
            if args.wants(&case) {
                let runner = peer.open(self.servers, what).await?;
                all.push(Contender::new(peer, case, runner, tasks).await?);
            }
        }
        Ok(all)
    }

    /// Acquire and release of what is free.
    async fn pairs(&self, args: &Args, report: &mut Report) -> Result<()> {
        let pairs: u32 = args.value("pairs", 2_000)?;
        let mut all = self.contenders("pair", 1, args).await?;
        let mut looks = Looks::open(self.servers).await?;
        for _ in 0..pairs.div_ceil(BLOCK) {
            for contender in &mut all {
                contender.pairs(BLOCK, &mut looks).await?;
            }
        }
        all.iter_mut().for_each(|contender| contender.report_pairs(report));
        Ok(())
    }

    /// That many tasks want the same lock all the time, for empty sections.
    async fn contention(&self, tasks: usize, args: &Args, report: &mut Report) -> Result<()> {
        let time = Duration::from_secs_f64(args.value("seconds", 2.0)?);
        let slices: u32 = args.value("slices", 3)?;
        let mut all = self.contenders(&contended(tasks), tasks, args).await?;
        let mut looks = Looks::open(self.servers).await?;
        for _ in 0..slices {
            for contender in &mut all {
                contender.slice(time, &mut looks).await?;
            }
        }
        all.iter_mut().for_each(|contender| contender.report_slices(report));
        Ok(())
    }
}

/// What the case is called in which that many tasks compete.
fn contended(tasks: usize) -> String {
    format!("1x{tasks}")
}
