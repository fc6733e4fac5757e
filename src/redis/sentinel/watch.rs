//! Keeps one connection to each sentinel. A sentinel is asked every second, and at once when a connection wants to dial
//! or the sentinel announces another master.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::redis::Cmd;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;

use super::super::failure::Failure;
use super::super::url::address::Address;
use super::super::url::target::Target;
use super::board::{Board, SentinelAnswer};
use super::query;
use super::sentinels::Sentinels;
use super::standing::Standing;
use crate::backoff::Backoff;
use crate::connection::{ConnectionError, Reply};
use crate::jitter::Jitter;
use crate::tuning::RECONNECT;

/// The average time between two questions. The message about a failover comes later than the answer to a question, if
/// at all.
const POLL: Duration = Duration::from_secs(1);

/// The number of questions after which a sentinel is asked for the other sentinels again.
const OTHERS: u32 = 30;

/// Keeps a connection to each sentinel, for as long as it is polled.
pub(in super::super) async fn watch(sentinels: &Sentinels) {
    let mut watched: Vec<u64> = Vec::new();
    let mut watchers = FuturesUnordered::new();
    loop {
        let changed = sentinels.changed.listen();
        let all = sentinels.look(Board::sentinels);
        watched.retain(|number| all.iter().any(|(known, _)| known == number));
        for (number, target) in all {
            if !watched.contains(&number) {
                watched.push(number);
                watchers.push(Watcher::new(sentinels, number, target).run());
            }
        }
        // A watcher ends when its sentinel was removed from the board. Nothing else is to be done then.
        let ended = poll_fn(|context| {
            while let Poll::Ready(Some(())) = watchers.poll_next_unpin(context) {}
            Poll::<()>::Pending
        });
        select(pin!(ended), changed).await;
    }
}

struct Watcher<'a> {
    sentinels: &'a Sentinels,
    number: u64,
    target: Arc<Target>,
    jitter: Jitter,
    /// Whether there has been a connection.
    was_up: bool,
}

impl<'a> Watcher<'a> {
    fn new(sentinels: &'a Sentinels, number: u64, target: Arc<Target>) -> Self {
        Self { sentinels, number, target, jitter: Jitter::new(sentinels.seed.wrapping_add(number)), was_up: false }
    }

    /// Runs until the board has removed the sentinel.
    async fn run(mut self) {
        let (sentinels, number) = (self.sentinels, self.number);
        let gone = sentinels.until(|board| (!board.knows(number)).then_some(()));
        select(pin!(self.keep_up()), pin!(gone)).await;
    }

    async fn keep_up(&mut self) {
        let executor = &self.sentinels.executor;
        let mut backoff = Backoff::new(RECONNECT, self.sentinels.seed.wrapping_add(self.number));
        loop {
            let since = executor.now();
            let failure = match self.follow().await {
                Err(failure) => failure,
                Ok(never) => match never {},
            };
            self.sentinels.post(|board| board.failed(self.number, failure));
            backoff.lasted(executor.now().saturating_duration_since(since));
            executor.sleep(backoff.pause()).await;
        }
    }

    /// Keeps one connection, from the dial to its end.
    async fn follow(&mut self) -> Result<Infallible, Failure> {
        let mut standing = Standing::open(self.sentinels, &self.target, !self.was_up).await?;
        self.was_up = true;
        if let Some(id) = standing.id.take() {
            self.sentinels.post(|board| board.is_called(self.number, id));
        }
        self.ask_others(&mut standing).await?;
        loop {
            // Both listeners exist before the question is sent, so whatever happens after it leads to another question.
            let switched = standing.switched.listen();
            let round = self.sentinels.look(Board::round);
            let answer = self.ask_all(&mut standing).await?;
            let address = if let SentinelAnswer::Master(named) = &answer { Some(named.address.clone()) } else { None };
            self.sentinels.post(|board| board.answered(self.number, round, answer));
            let asked = pin!(self.sentinels.until(|board| (board.round() > round).then_some(())));
            let news = select(switched, asked);
            self.until_news(&mut standing, news, address).await?;
        }
    }

    /// Asks for the `address` regularly. Ends when it changes, or at the `news`.
    async fn until_news(
        &mut self,
        standing: &mut Standing,
        mut news: impl Future + Unpin,
        address: Option<Address>,
    ) -> Result<(), Failure> {
        loop {
            for _ in 0..OTHERS {
                let pause = self.sentinels.executor.sleep(self.jitter.spread(POLL));
                if let Either::Left(_) = standing.drive(select(&mut news, pause)).await? {
                    return Ok(());
                }
                match &self.ask(standing, &[query::address(&self.sentinels.setup.master)]).await?[..] {
                    [Ok(now)] if query::read_address(now, &self.sentinels.setup.announced) == address => {}
                    // Another master or a refusal. A full question tells which.
                    _ => return Ok(()),
                }
            }
            self.ask_others(standing).await?;
        }
    }

    async fn ask_all(&self, standing: &mut Standing) -> Result<SentinelAnswer, Failure> {
        let mut replies = self.ask(standing, &query::full(&self.sentinels.setup.master)).await?.into_iter();
        let mut next = || replies.next().unwrap_or(Ok(Reply::Nil));
        let answers = [next(), next()];
        query::read_full(answers, &self.sentinels.setup.announced)
            .map_err(|refusal| query::refused(refusal, &self.target))
    }

    /// A user without the right to ask knows only the sentinels of the URL.
    async fn ask_others(&self, standing: &mut Standing) -> Result<(), Failure> {
        if let [Ok(list)] = &self.ask(standing, &[query::others(&self.sentinels.setup.master)]).await?[..] {
            let others = query::read_others(list, &self.sentinels.setup.announced);
            self.sentinels.post(|board| board.discovered(&others));
        }
        Ok(())
    }

    async fn ask(
        &self,
        standing: &mut Standing,
        commands: &[Cmd],
    ) -> Result<Vec<Result<Reply, ConnectionError>>, Failure> {
        self.sentinels
            .within(standing.send(commands))
            .await
            .unwrap_or_else(|| Err(Failure::Io(format!("no answer within {:?}", self.sentinels.limit))))
    }
}

#[cfg(test)]
mod tests;
