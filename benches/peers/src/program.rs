//! A child process that answers lines.

use std::process::Stdio;
use std::time::Duration;

use bowline_benches::Result;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a program may take until it has connected.
const START: Duration = Duration::from_secs(60);

/// A program that is ready. It is killed when this is dropped, and ends when its input does.
pub(crate) struct Program {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it, and waits until it says that it is ready.
    pub(crate) async fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a child without pipes".into());
        };
        let mut program = Self { process, input, output: BufReader::new(output).lines() };
        let ready =
            timeout(START, program.line()).await.map_err(|_| format!("a child is not ready after {START:?}"))??;
        if ready == "ready" { Ok(program) } else { Err(format!("a child said {ready:?}").into()) }
    }

    /// The number of the process. None once it was found to have ended.
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    pub(crate) async fn send(&mut self, line: String) -> Result<()> {
        Ok(self.input.write_all(line.as_bytes()).await?)
    }

    pub(crate) async fn line(&mut self) -> Result<String> {
        self.output.next_line().await?.ok_or_else(|| "a child has ended".into())
    }
}
