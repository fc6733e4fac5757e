//! What a client costs beside its locks: to connect, to exist, and to hold many names. Each client is a process of its
//! own, which this one watches: a child of the bench for bowline, the Java program for Redisson.

use std::fs;
use std::time::{Duration, Instant};

use bowline_benches::args::Args;
use bowline_benches::measure::Samples;
use bowline_benches::report::Report;
use bowline_benches::server::Server;
use bowline_benches::{Result, child};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::counts::{Counts, Looks};
use crate::peer::Peer;
use crate::program::Program;
use crate::redisson;

const PEERS: [Peer; 2] = [Peer::Bowline, Peer::Redisson];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A JVM compiles what it runs often, so the first clients are not measured.
const WARM_UP: u32 = 10;

/// Both renew a hold every ten seconds.
const ROUND: Duration = Duration::from_secs(10);

/// Rounds of renewals that are measured.
const ROUNDS: u32 = 2;

/// In which Linux counts the time of a process.
const TICK: Duration = Duration::from_millis(10);

/// The numbers of a run.
struct Sizes {
    clients: u32,
    holds: u32,
}

/// Whether one of these cases is wanted that needs Redisson.
pub(crate) fn wants_redisson(args: &Args) -> bool {
    ["connect", "held"].iter().any(|what| args.wants(&case(what, Peer::Redisson)))
}

fn case(what: &str, peer: Peer) -> String {
    format!("{what}-{}", peer.name())
}

/// Measures those of the peers that are there.
pub(crate) async fn measure(server: &Server, there: &[Peer], args: &Args, report: &mut Report) -> Result<()> {
    let sizes = Sizes { clients: args.value("clients", 30)?, holds: args.value("holds", 10_000)? };
    for peer in PEERS.into_iter().filter(|peer| there.contains(peer)) {
        let [connect, held] = ["connect", "held"].map(|what| case(what, peer));
        if args.wants(&connect) {
            connects(server, peer, &connect, &sizes, report).await?;
        }
        if args.wants(&held) {
            holds(server, peer, &held, &sizes, report).await?;
        }
    }
    Ok(())
}

/// New clients, one after the other: the time from nothing to the first grant.
async fn connects(server: &Server, peer: Peer, case: &str, sizes: &Sizes, report: &mut Report) -> Result<()> {
    let mut program = start(server, peer).await?;
    ask(&mut program, format!("connect {WARM_UP}\n")).await?;
    let mut granted = Samples::from_text(&ask(&mut program, format!("connect {}\n", sizes.clients)).await?)?;
    report.add(case, "p50_us", granted.percentile(50.0));
    report.add(case, "p99_us", granted.percentile(99.0));
    Ok(())
}

/// A client with nothing to do, and then with many holds.
async fn holds(server: &Server, peer: Peer, case: &str, sizes: &Sizes, report: &mut Report) -> Result<()> {
    let (mut program, mut looks) = (start(server, peer).await?, Looks::open(std::slice::from_ref(server)).await?);
    sleep(ROUND / 2).await;
    let alone = Process::of(&program)?;
    sleep(ROUND).await;
    let idle = Process::of(&program)?;
    report.add(case, "idle_cpu_share", idle.share_since(&alone));
    report.add(case, "idle_resident_mib", idle.resident_mib);
    let answer = ask(&mut program, format!("hold {}\n", sizes.holds)).await?;
    if answer != "held" {
        return Err(format!("a child said {answer:?}").into());
    }
    // Until each hold was renewed once, as often as the others.
    sleep(ROUND + ROUND / 2).await;
    let (before, start, served) = (looks.look(peer).await?, Process::of(&program)?, looks.cpu_us().await?);
    sleep(ROUND * ROUNDS).await;
    let (after, end, served) = (looks.look(peer).await?, Process::of(&program)?, looks.cpu_us().await? - served);
    let mut counts = Counts::default();
    counts.add(before, after);
    report.add(case, "cpu_share", end.share_since(&start));
    report.add(case, "resident_mib", end.resident_mib);
    let renewals = f64::from(sizes.holds * ROUNDS);
    counts.report_renewals(case, renewals, report);
    report.add(case, "server_cpu_us", served / renewals);
    // Its locks would last on, and end while something else is measured.
    drop(program);
    looks.remove(&name(peer)).await?;
    Ok(())
}

async fn start(server: &Server, peer: Peer) -> Result<Program> {
    if peer.is_redisson() {
        return redisson::program(&server.url, "lock", &name(peer)).await;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args([child::CHILD, &server.url, &name(peer)]);
    Program::start(command).await
}

fn name(peer: Peer) -> String {
    format!("bench:client:{}", peer.name())
}

async fn ask(program: &mut Program, line: String) -> Result<String> {
    program.send(line).await?;
    timeout(PATIENCE, program.line()).await.map_err(|_| format!("no answer after {PATIENCE:?}"))?
}

/// What a process has used so far.
struct Process {
    cpu: Duration,
    resident_mib: f64,
    at: Instant,
}

impl Process {
    /// As Linux says it in `/proc`.
    fn of(program: &Program) -> Result<Self> {
        let id = program.id().ok_or("a child has ended")?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        let resident_mib = resident.ok_or("no resident size")?.parse::<f64>()? / 1024.0;
        // The name of the program, in brackets, may have blanks. What follows are the third field and the others.
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let [user, system] = [11, 12].map(|n| fields.get(n).and_then(|ticks| ticks.parse::<u32>().ok()));
        let ticks = user.zip(system).map(|(user, system)| user + system).ok_or("no time of a process")?;
        Ok(Self { cpu: TICK * ticks, resident_mib, at: Instant::now() })
    }

    /// The share of one processor since `earlier`.
    fn share_since(&self, earlier: &Self) -> f64 {
        (self.cpu - earlier.cpu).as_secs_f64() / (self.at - earlier.at).as_secs_f64()
    }
}
