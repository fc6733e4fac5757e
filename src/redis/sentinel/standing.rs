//! A connection to one sentinel, logged in and subscribed to its messages.

use std::future::Future;
use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, Pipeline, PushInfo, PushKind};
use event_listener::Event;

use super::super::convert;
use super::super::dial::handshake::{self, Driver, Fresh, Greeted, driven};
use super::super::dial::one_sided::FirstLogin;
use super::super::dial::progress::DialProgress;
use super::super::dial::wishes::{self, Wishes};
use super::super::failure::Failure;
use super::super::url::target::Target;
use super::query;
use super::sentinels::Sentinels;
use crate::connection::{ConnectionError, Reply};

pub(super) struct Standing {
    connection: MultiplexedConnection,
    driver: Driver,
    /// Notified when the sentinel announces another master.
    pub(super) switched: Arc<Event>,
    /// The sentinel's own id, if it reports one.
    pub(super) id: Option<String>,
}

impl Standing {
    /// Connects, logs in, checks that this is a sentinel, and subscribes. All of this together has the time limit of
    /// one question.
    ///
    /// `first`: there has been no connection to this sentinel yet.
    pub(super) async fn open(sentinels: &Sentinels, target: &Arc<Target>, first: bool) -> Result<Self, Failure> {
        let progress = Arc::default();
        let opened = sentinels.within(Self::attempt(sentinels, target, first, &progress)).await;
        opened.unwrap_or_else(|| Err(progress.late(sentinels.limit)))
    }

    async fn attempt(
        sentinels: &Sentinels,
        target: &Arc<Target>,
        first: bool,
        progress: &Arc<DialProgress>,
    ) -> Result<Self, Failure> {
        let switched = Arc::new(Event::new());
        let push = {
            let switched = Arc::clone(&switched);
            move |push: PushInfo| -> Result<(), ::redis::aio::SendError> {
                if push.kind == PushKind::Message {
                    switched.notify(usize::MAX);
                }
                Ok(())
            }
        };
        let (dialer, executor, limit) = (&*sentinels.dialer, &sentinels.executor, sentinels.limit);
        let commands = vec![query::id(), wishes::subscribe(query::SWITCHED)];
        let wishes = Wishes { push: Some(Arc::new(push)), commands, ..Wishes::default() };
        let login = handshake::login(Arc::clone(target), dialer, executor, progress, wishes);
        let login = if first {
            FirstLogin { target, dialer, executor, limit }.watch(progress, login).await
        } else {
            login.await
        };
        let of_sentinel = |failure| match failure {
            Failure::Refused(refusal) => query::refused(refusal, target),
            other => other,
        };
        let Greeted { fresh, hello, mut answers, .. } = login.map_err(of_sentinel)?;
        query::check(&hello, target)?;
        let id = match answers.next().map(convert::reply) {
            Some(Ok(Reply::Bytes(id))) => String::from_utf8(id).ok(),
            _ => None,
        };
        wishes::subscribed(answers.next()).map_err(of_sentinel)?;
        let Fresh { connection, driver, .. } = fresh;
        Ok(Self { connection, driver, switched, id })
    }

    /// Sends commands in one write. An error of the sentinel is one of the replies.
    pub(super) async fn send(&mut self, commands: &[Cmd]) -> Result<Vec<Result<Reply, ConnectionError>>, Failure> {
        let mut connection = self.connection.clone();
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.clone());
        }
        let values = self.drive(connection.send_packed_commands(&pipeline, 0, commands.len())).await?;
        let values = values.map_err(|error| Failure::Io(error.to_string()))?;
        Ok(values.into_iter().map(convert::reply).collect())
    }

    /// Runs `future` until it is done or the connection ends.
    pub(super) async fn drive<F: Future>(&mut self, future: F) -> Result<F::Output, Failure> {
        let closed = |_| Failure::Io("the sentinel closed the connection".to_owned());
        driven(&mut self.driver, future).await.map_err(closed)
    }
}
