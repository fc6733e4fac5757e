//! The Java program as a process: `interop/README.md` has its commands.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use futures::channel::oneshot;
use futures::future::BoxFuture;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<String, String>>>>>;

pub(crate) struct Java {
    child: Child,
    input: Mutex<(ChildStdin, u64)>,
    waiting: Waiting,
}

/// The program. `None`: the tests are skipped.
pub(crate) fn program() -> Option<String> {
    let program = std::env::var("BOWLINE_JAVA").ok();
    if program.is_none() {
        eprintln!("skipped: BOWLINE_JAVA is not set; scripts/interop sets it and runs this suite");
    }
    program
}

impl Java {
    /// Returns when it has connected.
    pub(crate) fn start(args: &[String]) -> Self {
        let mut command = Command::new(program().expect("BOWLINE_JAVA"));
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Java starts");
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = answers.next().expect("Java connects").unwrap();
        assert!(ready.starts_with("ready "), "{ready}");
        let waiting = Waiting::default();
        thread::spawn({
            let waiting = Arc::clone(&waiting);
            move || {
                for answer in answers.map_while(Result::ok) {
                    let mut words = answer.splitn(3, ' ');
                    let (id, word, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or(""));
                    let answer = if word == "ok" { Ok(value.to_owned()) } else { Err(value.to_owned()) };
                    let waits = id.parse().ok().and_then(|id| waiting.lock().unwrap().remove(&id));
                    let _ = waits.map(|waits: oneshot::Sender<_>| waits.send(answer));
                }
                // Those who wait for a program that has ended are told.
                waiting.lock().unwrap().clear();
            }
        });
        let input = Mutex::new((child.stdin.take().unwrap(), 0));
        Self { child, input, waiting }
    }

    /// Sends the command of a worker at once. The error is what Java has thrown.
    pub(crate) fn ask(&self, worker: &str, command: &str) -> BoxFuture<'static, Result<String, String>> {
        let (answered, answer) = oneshot::channel();
        {
            let mut input = self.input.lock().unwrap();
            input.1 += 1;
            let id = input.1;
            self.waiting.lock().unwrap().insert(id, answered);
            writeln!(input.0, "{id} {worker} {command}").unwrap();
        }
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err("Java has ended".to_owned())) })
    }

    pub(crate) async fn owner(&self, worker: &str) -> String {
        self.ask(worker, "owner").await.unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
