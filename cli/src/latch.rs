//! `latch`: count-down latches.

use bowline::{Client, ErrorKind, LatchState};
use serde::Serialize;

use crate::args::look::Latch;
use crate::exit::{Failure, NO, OK};
use crate::show::{self, Style, clean, time};
use crate::views::{Waiter, millis, who};

#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    count: u64,
    /// None: there is no latch.
    remaining_ms: Option<u64>,
    waiters: u64,
    queue: Vec<Waiter>,
}

pub(crate) async fn latch(client: &Client, verb: &Latch) -> Result<u8, Failure> {
    let is_so = match verb {
        Latch::Set { name, count, ttl } => client.latch(name).try_set(*count, *ttl).await?,
        Latch::CountDown { name } => {
            let left = client.latch(name).count_down().await?;
            show::lines(&[left.to_string()])?;
            true
        }
        Latch::Wait { name, timeout } => {
            let wait = client.latch(name).wait();
            let waited = match timeout {
                Some(timeout) => wait.timeout(*timeout).await,
                None => wait.await,
            };
            match waited {
                Err(error) if error.kind() == ErrorKind::TimedOut => false,
                waited => waited.map(|()| true)?,
            }
        }
        Latch::Show { name, form } => {
            let state = client.latch(name).inspect().await?;
            let is_there = state.remaining.is_some();
            show(name, &state, form.json)?;
            is_there
        }
        Latch::Delete { name } => client.latch(name).delete().await?,
    };
    Ok(if is_so { OK } else { NO })
}

fn show(name: &str, state: &LatchState, json: bool) -> Result<(), Failure> {
    let queue: Vec<Waiter> = state.queue.iter().map(Waiter::from).collect();
    let LatchState { count, remaining, waiters, .. } = state;
    if json {
        return show::json(&Shown {
            name,
            count: *count,
            remaining_ms: remaining.map(millis),
            waiters: *waiters,
            queue,
        });
    }
    let style = Style::of_output();
    let left = remaining.map_or_else(|| "no latch".to_owned(), |left| format!("ends in {}", time(left)));
    let mut lines = vec![format!("{}  latch, count {count}, {waiters} waiting, {left}", style.bold(&clean(name)))];
    lines
        .extend(queue.iter().map(|waiter| format!("  waits   {}", who(waiter.label.as_deref(), Some(&waiter.client)))));
    show::lines(&lines)
}
