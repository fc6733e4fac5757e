//! The client's end: a connection on which every call goes by its rule.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bowline::{Call, Connection, ConnectionError, Notice, Reply, Topology, Warning};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::{BoxStream, select};

use super::{Fault, Faults, Messages};
use crate::support::request::Request;

fn lost() -> ConnectionError {
    ConnectionError::Unknown("lost by the test".to_owned())
}

/// Counts a call as ended, also when its future is dropped.
struct Ended<'a>(&'a Faults, &'static str);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.state().answered.entry(self.1).or_default() += 1;
    }
}

pub struct Faulty {
    pub(super) faults: Faults,
    /// For the one subscription that a client makes.
    pub(super) injected: Mutex<Option<UnboundedReceiver<Notice>>>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl Connection for Faulty {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let Faults { inner, executor, .. } = &self.faults;
        let releases = self.faults.state().releases;
        let name = call.script.name();
        let rule = self.faults.rule(name);
        let _ended = Ended(&self.faults, name);
        match rule {
            Fault::Pass => inner.run(call).await,
            Fault::LoseRequest => Err(lost()),
            Fault::LoseReply => inner.run(call).await.and(Err(lost())),
            Fault::LoseReplyLater => {
                inner.run(call).await?;
                self.faults.until_released(releases).await;
                Err(lost())
            }
            Fault::Late => {
                self.faults.state().late.push(Request::new(&call));
                Err(lost())
            }
            Fault::Unreachable => Err(ConnectionError::Unreachable("by the test".to_owned())),
            Fault::Refuse(line) => Err(ConnectionError::refused(line)),
            Fault::Answer(reply) => Ok(reply),
            Fault::Hang => {
                self.faults.until_released(releases).await;
                inner.run(call).await
            }
            Fault::Silent => {
                executor.sleep(call.within.expect("the call says how long its answer is of use")).await;
                Err(lost())
            }
            Fault::HangReply => {
                let reply = inner.run(call).await;
                self.faults.until_released(releases).await;
                reply
            }
            Fault::Slow(time) => {
                let reply = inner.run(call).await;
                executor.sleep(time).await;
                reply
            }
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        let mut replies = Vec::new();
        for call in calls {
            replies.push(self.run(*call).await);
        }
        replies
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let notices = self.faults.inner.subscribe(channel).await?;
        // Notices are injected into the first subscription, which is that of the inbox.
        let injected = self.injected.lock().unwrap().take();
        let state = Arc::clone(&self.faults.state);
        let passed = notices.filter_map(move |notice| {
            let mut state = state.lock().unwrap();
            let passes = match (&notice, state.messages) {
                (Notice::Gap, _) | (_, Messages::Pass) => Some(notice),
                (_, Messages::Swallow) => {
                    state.swallowed += 1;
                    None
                }
                (_, Messages::Hold) => {
                    state.held.push(notice);
                    None
                }
            };
            futures::future::ready(passes)
        });
        Ok(match injected {
            Some(injected) => select(passed, injected).boxed(),
            None => passed.boxed(),
        })
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.faults.inner.why_down(key)
    }

    async fn watch_key(&self, key: &str, inbox: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.faults.inner.watch_key(key, inbox).await
    }

    fn topology(&self) -> Topology {
        self.faults.inner.topology()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.faults.inner.warnings()
    }

    fn close(&self) {
        self.faults.inner.close();
    }
}
