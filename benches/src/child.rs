//! The bench's own program as other processes, which start together and report by lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use crate::Result;

/// The hidden first argument of a child.
pub const CHILD: &str = "child";

/// What this process was started for, if it is a child.
pub fn task() -> Option<Vec<String>> {
    let mut args = std::env::args().skip(1);
    (args.next().as_deref() == Some(CHILD)).then(|| args.collect())
}

/// In a child: tells that it is ready, and waits until all are.
pub fn ready() -> Result<()> {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if line.trim() == "go" { Ok(()) } else { Err("the parent is gone".into()) }
}

/// Processes that are ready. Killed when dropped before they are done.
#[derive(Debug)]
pub struct Children(Vec<Child>);

#[derive(Debug)]
struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Children {
    /// Starts so many for this task, and waits until they are [ready].
    pub fn start(count: usize, task: &[String]) -> Result<Self> {
        let mut children = Self(Vec::new());
        for _ in 0..count {
            let mut process = Command::new(std::env::current_exe()?)
                .arg(CHILD)
                .args(task)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
                return Err("a child without pipes".into());
            };
            children.0.push(Child { process, input, output: BufReader::new(output) });
        }
        for child in &mut children.0 {
            let mut line = String::new();
            child.output.read_line(&mut line)?;
            if line.trim() != "ready" {
                return Err(format!("a child said {line:?} before it was ready").into());
            }
        }
        Ok(children)
    }

    /// Lets them go, and returns what each of them wrote until its end.
    pub fn run(mut self) -> Result<Vec<String>> {
        for child in &mut self.0 {
            writeln!(child.input, "go")?;
        }
        let mut outputs = Vec::new();
        for child in &mut self.0 {
            let mut output = String::new();
            child.output.read_to_string(&mut output)?;
            let status = child.process.wait()?;
            if !status.success() {
                return Err(format!("a child ended with {status}").into());
            }
            outputs.push(output);
        }
        Ok(outputs)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.process.kill();
            let _ = child.process.wait();
        }
    }
}
