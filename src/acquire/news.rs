//! What a task hears between two questions to the server, on a channel of Redisson.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use crate::context::Context;
use crate::driver::channels::{Heard, Listener};
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::key::Named;

/// The channel on which others say that it is time to ask again. It is listened to from the first question in vain on.
pub(crate) struct News<'a> {
    context: &'a Context,
    operation: &'static str,
    named: &'a Named,
    channel: &'a str,
    listener: Option<Listener>,
    /// What was heard before the last question.
    known: Option<Heard>,
}

impl<'a> News<'a> {
    pub(crate) fn new(context: &'a Context, operation: &'static str, named: &'a Named, channel: &'a str) -> Self {
        Self { context, operation, named, channel, listener: None, known: None }
    }

    /// Listens from now on.
    pub(super) fn listening(mut self) -> Self {
        self.listener = Some(self.context.channels.listen(self.channel));
        self
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    /// Called before each question: what is heard from now on is news.
    pub(crate) fn asks(&mut self) {
        self.known = self.listener.as_ref().map(Listener::look);
    }

    /// Waits for news since the last question, for `rest` at most, or until `ended`, which is an error: the client is
    /// closed. `false`: there was no wait, and it is time to ask at once.
    ///
    /// # Errors
    /// Those of a channel that cannot be subscribed for a reason that does not pass.
    pub(crate) async fn next<T>(&mut self, rest: Duration, ended: impl Future<Output = T>) -> Result<bool> {
        let is_new = self.listener.is_none();
        let listener = self.listener.get_or_insert_with(|| self.context.channels.listen(self.channel));
        let known = self.known.take().unwrap_or_else(|| listener.look());
        // Another task has subscribed the channel, and its message may have come before this one listened.
        if is_new && known.is_subscribed() && !mutant::on(Mutant::SubscriptionNoNews) {
            return Ok(false);
        }
        known.check(self.operation, &self.named.name)?;
        let news = pin!(listener.news_after(&known));
        let news = select(news, self.context.executor.sleep(rest));
        if let Either::Right(_) = select(news, pin!(ended)).await {
            return Err(Error::new(ErrorKind::Closed, self.operation).with_name(&self.named.name));
        }
        listener.look().check(self.operation, &self.named.name)?;
        Ok(true)
    }
}
