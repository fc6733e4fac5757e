//! Elections.

use std::sync::Arc;
use std::time::Duration;

use bowline::{ElectionChanges, Leader, Result, Term, Token, blocking};
use futures::future::BoxFuture;

use super::Either;
use super::changes::Changes;
use super::client::handle;
use super::thread::{call, either, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct Election(pub(super) Either<bowline::Election, blocking::Election>);

#[derive(Debug)]
pub(crate) struct Leadership(Either<bowline::Leadership, Arc<blocking::Leadership>>);

impl Election {
    pub(crate) fn label(self, label: &str) -> Self {
        Self(match self.0 {
            Either::Async(it) => Either::Async(it.label(label)),
            Either::Blocking(it) => Either::Blocking(it.label(label)),
        })
    }

    pub(crate) fn campaign(&self, timeout: Option<Duration>) -> BoxFuture<'static, Result<Leadership>> {
        let set = |campaign: bowline::Campaign| match timeout {
            Some(timeout) => campaign.timeout(timeout),
            None => campaign,
        };
        match &self.0 {
            Either::Async(it) => {
                let campaign = set(it.campaign());
                Box::pin(async move { campaign.await.map(|led| Leadership(Either::Async(led))) })
            }
            Either::Blocking(it) => {
                let campaign = set(it.campaign());
                on_a_thread(move || campaign.block().map(|led| Leadership(Either::Blocking(Arc::new(led)))))
            }
        }
    }

    pub(crate) fn try_campaign(&self) -> BoxFuture<'static, Result<Option<Leadership>>> {
        match self.0.clone() {
            Either::Async(it) => {
                Box::pin(async move { Ok(it.try_campaign().await?.map(|led| Leadership(Either::Async(led)))) })
            }
            Either::Blocking(it) => {
                on_a_thread(move || Ok(it.try_campaign()?.map(|led| Leadership(Either::Blocking(Arc::new(led))))))
            }
        }
    }

    pub(crate) fn leader(&self) -> BoxFuture<'static, Result<Option<Leader>>> {
        call!(self.0, leader)
    }

    pub(crate) fn changes(&self) -> Changes<ElectionChanges> {
        Changes::of(handle!(self, changes))
    }
}

impl Leadership {
    pub(crate) fn term(&self) -> Term {
        either!(&self.0, led => led.term().clone())
    }

    pub(crate) fn token(&self) -> Token {
        self.term().token()
    }

    pub(crate) async fn publish(&self, value: &str) -> Result<()> {
        match &self.0 {
            Either::Async(led) => led.publish(value).await,
            Either::Blocking(led) => {
                let (led, value) = (led.clone(), value.to_owned());
                on_a_thread(move || led.publish(&value)).await
            }
        }
    }

    pub(crate) fn resign(self) -> BoxFuture<'static, Result<()>> {
        match self.0 {
            Either::Async(led) => Box::pin(led.resign()),
            Either::Blocking(led) => on_a_thread(move || Arc::into_inner(led).expect("it publishes").resign()),
        }
    }
}
