//! `leader`: who leads in an election.

use std::time::UNIX_EPOCH;

use bowline::Client;
use serde::Serialize;

use crate::args::look::Leader;
use crate::exit::{Failure, NO, OK};
use crate::show::{self, Style, clean, time};
use crate::views::{millis, who};

#[derive(Debug, Serialize)]
struct Shown {
    label: String,
    client: Option<String>,
    term: u64,
    since_unix_ms: u64,
    value: Option<String>,
}

pub(crate) async fn leader(client: &Client, Leader { name, form }: &Leader) -> Result<u8, Failure> {
    let leader = client.election(name).leader().await?;
    let shown = leader.as_ref().map(|leader| Shown {
        label: leader.label.clone(),
        client: leader.client.map(|id| id.to_string()),
        term: leader.term.get(),
        since_unix_ms: millis(leader.since.duration_since(UNIX_EPOCH).unwrap_or_default()),
        value: leader.value.clone(),
    });
    if form.json {
        show::json(&shown)?;
        return Ok(if shown.is_some() { OK } else { NO });
    }
    let Some(Shown { label, client, term, value, .. }) = shown else {
        show::lines(&[format!("{}: nobody leads", clean(name))])?;
        return Ok(NO);
    };
    let label = Some(label.as_str()).filter(|label| !label.is_empty());
    let age = leader.and_then(|leader| leader.since.elapsed().ok()).unwrap_or_default();
    let value = value.map_or_else(String::new, |value| format!("  at {}", clean(&value)));
    let who = Style::of_output().bold(&who(label, client.as_deref()));
    show::lines(&[format!("{who}  leads for {}  term {term}{value}", time(age))])?;
    Ok(OK)
}
