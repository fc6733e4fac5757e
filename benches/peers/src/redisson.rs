//! Redisson's locks, in a Java program that Maven builds and that runs as a child process.

use std::process::Stdio;
use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::measure::Samples;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::Program;
use crate::runner::Turn;

/// The Maven project.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/redisson");

/// The first build downloads Redisson.
const BUILD: Duration = Duration::from_secs(300);

/// Builds the program. The error says in one line what is missing.
pub(crate) async fn build() -> Result<(), String> {
    output_of("java", &["-version"]).await?;
    output_of("mvn", &["--batch-mode", "--quiet", "package"]).await
}

async fn output_of(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(DIRECTORY).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(BUILD, command.output()).await;
    let output = output.map_err(|_| format!("{program} took more than {BUILD:?}"))?;
    let output = output.map_err(|error| format!("{program} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let why = text.lines().find(|line| line.contains("ERROR")).unwrap_or("no reason given");
    Err(format!("{program} {}: {}: {why}", args.join(" "), output.status))
}

/// The program with one lock.
pub(crate) struct Redisson(Program);

impl Redisson {
    /// Starts the program for the lock of this name, of the kind `lock` or `fair`.
    pub(crate) async fn start(url: &str, kind: &str, name: &str) -> Result<Self> {
        Ok(Self(program(url, kind, name).await?))
    }

    /// The times of that many pairs of acquire and release.
    pub(crate) async fn pairs(&mut self, count: u32) -> Result<Samples> {
        self.0.send(format!("pairs {count}\n")).await?;
        Ok(Samples::from_text(&self.0.line().await?)?)
    }

    /// That many threads want the lock all the time.
    pub(crate) async fn turn(&mut self, threads: usize, time: Duration) -> Result<Turn> {
        self.0.send(format!("turn {threads} {}\n", time.as_millis())).await?;
        let counts = self.0.line().await?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let hand_overs = self.0.line().await?.parse()?;
        let waits = Samples::from_text(&self.0.line().await?)?;
        Ok(Turn { counts, hand_overs, waits })
    }
}

/// The Java program.
pub(crate) async fn program(url: &str, kind: &str, name: &str) -> Result<Program> {
    let mut command = Command::new("java");
    command
        .args(["-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", "target/classes:target/lib/*"])
        .args(["bowline.Peer", url.trim_end_matches('/'), kind, name])
        .current_dir(DIRECTORY);
    Program::start(command).await
}
