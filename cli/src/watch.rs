//! `watch`: who gets a name and who loses it.

use std::pin::pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline::{Client, HoldChange, NameInUse, PrimitiveKind};
use futures::StreamExt;
use serde::Serialize;

use crate::args::look::{Kind, Watch};
use crate::exit::{Failure, OK};
use crate::show::{self, Style, complain, time};
use crate::views::{Hold, kind, millis, what, who};

#[derive(Debug, Serialize)]
struct Change<'a> {
    at_unix_ms: u64,
    change: &'static str,
    kind: &'static str,
    name: &'a str,
    hold: Hold,
}

pub(crate) async fn watch(client: &Client, Watch { name, kind: of, count, form }: &Watch) -> Result<u8, Failure> {
    let of: PrimitiveKind = of.unwrap_or(Kind::Lock).into();
    let (mut changes, began, style) =
        (client.changes(NameInUse::new(of, name.as_str())), Instant::now(), Style::of_output());
    let mut reader_is_gone = pin!(show::reader_is_gone());
    let mut seen = 0;
    while count.is_none_or(|count| seen < count) {
        let change = tokio::select! {
            change = changes.next() => change,
            // On a quiet name, no write would tell it.
            () = &mut reader_is_gone => break,
        };
        let (word, hold) = match change {
            Some(Ok(HoldChange::Granted(hold))) => ("granted", hold),
            Some(Ok(HoldChange::Released(hold))) => ("released", hold),
            Some(Ok(HoldChange::Lost(hold))) => ("lost", hold),
            Some(Ok(_)) => continue,
            Some(Err(error)) if error.is_retryable() => {
                complain(&format!("bowline: {error}; the watch goes on"));
                continue;
            }
            Some(Err(error)) => return Err(error.into()),
            None => break,
        };
        seen += 1;
        let hold = Hold::from(&hold);
        let line = if form.json {
            let at_unix_ms = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            show::json_line(&Change { at_unix_ms, change: word, kind: kind(of), name, hold })?
        } else {
            text(style, began.elapsed(), word, &hold)
        };
        if !show::try_lines(&[line])? {
            break;
        }
    }
    Ok(OK)
}

fn text(style: Style, after: Duration, word: &str, hold: &Hold) -> String {
    let painted = match word {
        "granted" => style.green(&format!("{word:<8}")),
        "lost" => style.red(&format!("{word:<8}")),
        _ => format!("{word:<8}"),
    };
    let token = hold.token.map_or_else(String::new, |token| format!("  token {token}"));
    let who = who(hold.label.as_deref(), hold.client.as_deref());
    format!("{:>8}  {painted}  {who}  {}{token}", time(after), what(hold.access, hold.permits))
}
