//! Loses one request, or the reply to it, on the way between a process and the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Call, ConnectionError, Notice, Reply};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::executor::Process;
use crate::network::{Backend, Subject, Way};
use crate::nodes::Node;
use crate::server::SimServer;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lost {
    Request,
    Reply,
}

pub struct Lossy {
    pub server: Arc<SimServer>,
    /// Which one to lose: of this process, after so many others.
    next: Mutex<Option<(Process, u64, Lost)>>,
}

impl Lossy {
    pub fn new(server: Arc<SimServer>) -> Arc<Self> {
        Arc::new(Self { server, next: Mutex::default() })
    }

    pub fn lose(&self, process: Process, after: u64, lost: Lost) {
        *self.next.lock().unwrap() = Some((process, after, lost));
    }

    fn what_of(&self, caller: Process) -> Option<Lost> {
        let mut next = self.next.lock().unwrap();
        match &mut *next {
            Some((process, 0, lost)) if *process == caller => {
                let lost = *lost;
                *next = None;
                Some(lost)
            }
            Some((process, after, _)) if *process == caller => {
                *after -= 1;
                None
            }
            _ => None,
        }
    }
}

impl Backend for Lossy {
    fn primary(&self) -> Node {
        self.server.primary()
    }

    fn execute(&self, node: Node, process: Process, call: Call<'_>, way: Way) -> Result<Reply, ConnectionError> {
        let lost = self.what_of(process);
        if lost == Some(Lost::Request) {
            return Err(ConnectionError::Unknown("the request was lost".to_owned()));
        }
        let reply = self.server.execute(node, process, call, way);
        if lost == Some(Lost::Reply) {
            return Err(ConnectionError::Unknown("the reply was lost".to_owned()));
        }
        reply
    }

    fn called(&self, call: Call<'_>) {
        self.server.called(call);
    }

    fn answered(&self, call: Call<'_>, reply: &Reply) {
        self.server.answered(call, reply);
    }

    fn listen(&self, node: Node, subject: &Subject) -> BoxStream<'static, Notice> {
        self.server.listen(node, subject)
    }

    fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    fn written(&self, node: Node) -> u64 {
        self.server.written(node)
    }

    fn acknowledged(
        &self,
        node: Node,
        number: u64,
        replicas: u32,
        until: Duration,
    ) -> BoxFuture<'_, Result<u32, ConnectionError>> {
        Box::pin(self.server.acknowledged(node, number, replicas, until))
    }

    fn frozen_for(&self) -> Duration {
        self.server.frozen_for()
    }
}
