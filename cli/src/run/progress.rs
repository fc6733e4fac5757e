//! The line that tells on a terminal who is before this program.

use std::convert::Infallible;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use bowline::{Client, NameInUse, NameState, PrimitiveKind};
use rustix::event::Timespec;
use rustix::termios::tcgetwinsize;

use crate::args::run::{Mode, Run};
use crate::show::{clean, takes_text, time};
use crate::views;

/// Who gets the lock sooner is told nothing.
const FIRST: Duration = Duration::from_millis(500);
/// From one look to the next.
const EVERY: Duration = Duration::from_secs(2);

/// Shows the line until it is dropped, and removes it then.
pub(super) async fn show(client: &Client, run: &Run) -> Infallible {
    if run.quiet || !stderr().is_terminal() {
        return std::future::pending().await;
    }
    tokio::time::sleep(FIRST).await;
    let names: Vec<NameInUse> = waited_for(run);
    let _cleared = Cleared;
    loop {
        let states = client.look(&names).await;
        // Of several names, it waits for one at a time.
        let own = |state: &NameState| place(client, state).is_some();
        let state = states.into_iter().flatten().find(own);
        if let Some(state) = state {
            write(cut(&line(client, &state), columns()));
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn waited_for(run: &Run) -> Vec<NameInUse> {
    let kind = match &run.mode {
        Mode { shared: true, .. } | Mode { exclusive: true, .. } => PrimitiveKind::RwLock,
        Mode { permits: Some(_), .. } => PrimitiveKind::Semaphore,
        Mode { elect: true, .. } => PrimitiveKind::Election,
        _ => PrimitiveKind::Lock,
    };
    run.name.iter().chain(&run.mode.all).map(|name| NameInUse::new(kind, name)).collect()
}

/// The number of waiters before this one.
fn place(client: &Client, state: &NameState) -> Option<usize> {
    state.queue.iter().position(|waiter| waiter.client == client.id())
}

fn line(client: &Client, state: &NameState) -> String {
    let place = place(client, state).map_or_else(|| "?".to_owned(), |before| (before + 1).to_string());
    let holder = state.holds.first().map(views::Hold::from).map_or_else(String::new, |hold| {
        let since = hold.age().map_or_else(String::new, |age| format!(" for {}", time(age)));
        format!("; held by {}{since}", views::who(hold.label.as_deref(), hold.client.as_deref()))
    });
    format!("bowline: waiting for {}: place {place} of {}{holder}", clean(&state.name.name), state.waiters)
}

/// The width of the window, as far as the terminal tells.
fn columns() -> Option<usize> {
    tcgetwinsize(stderr()).ok().map(|size| size.ws_col.into()).filter(|columns| *columns > 0)
}

/// What fits in one line of that width: of a line that the terminal has wrapped, only the last part would be removed.
fn cut(line: &str, columns: Option<usize>) -> &str {
    // The cursor must stay in the line, and stands behind the last character.
    let Some(room) = columns.map(|columns| columns.saturating_sub(1)) else { return line };
    // Other characters may take two columns.
    let ends = line.char_indices().scan(0, |used, (at, c)| {
        *used += if c.is_ascii() { 1 } else { 2 };
        Some((at, *used))
    });
    let end = ends.into_iter().find(|(_, used)| *used > room).map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// Writes the line in the place of the last one, unless that would block.
fn write(line: &str) {
    if takes_text(Timespec { tv_sec: 0, tv_nsec: 0 }) {
        let _ = write!(stderr(), "\r\x1b[K{line}");
    }
}

struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        write("");
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_line_fits_in_the_window() {
        assert_eq!(cut("waiting", None), "waiting");
        assert_eq!(cut("waiting", Some(8)), "waiting");
        assert_eq!(cut("waiting", Some(7)), "waitin");
        assert_eq!(cut("日本", Some(4)), "日");
        assert_eq!(cut("a", Some(1)), "");
    }
}
