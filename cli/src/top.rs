//! `top`: a live table of the names in use.

use std::io::{IsTerminal, stdin, stdout};
use std::time::{Duration, Instant};

use bowline::Client;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::health::Top;
use crate::exit::{Failure, OK, SIGNALLED};
use crate::ls::list;

mod draw;
mod table;

use table::Table;

/// How often keys are read.
const KEYS: Duration = Duration::from_millis(50);

/// The number of SIGTERM.
const TERM: u8 = 15;

pub(crate) async fn top(client: &Client, args: &Top) -> Result<u8, Failure> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::own("top needs a terminal: see ls --json"));
    }
    // The first look is made before the screen is taken, so that its error can be read.
    let names = list(client, &args.start, args.kind).await?;
    let mut table = Table::default();
    table.take(names, Instant::now());
    let mut terminal = ratatui::try_init().map_err(|error| Failure::own(format!("terminal: {error}")))?;
    let ended = follow(client, args, &mut table, &mut terminal).await;
    ratatui::restore();
    ended
}

async fn follow(
    client: &Client,
    args: &Top,
    table: &mut Table,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::own(format!("terminal: {error}"));
    // The terminal must not stay as it is now.
    let mut ended = signal(SignalKind::terminate()).map_err(failed)?;
    loop {
        let mut look = Box::pin(async {
            tokio::time::sleep(args.every).await;
            list(client, &args.start, args.kind).await
        });
        loop {
            terminal.draw(|frame| draw::draw(frame, table)).map_err(failed)?;
            tokio::select! {
                names = &mut look => {
                    match names {
                        Ok(names) => table.take(names, Instant::now()),
                        // The server may come back.
                        Err(failure) => table.failed(failure.message),
                    }
                    break;
                }
                _ = ended.recv() => return Ok(SIGNALLED + TERM),
                () = tokio::time::sleep(KEYS) => {}
            }
            while event::poll(Duration::ZERO).map_err(failed)? {
                if let Event::Key(key) = event::read().map_err(failed)?
                    && key.kind != KeyEventKind::Release
                    && ends(table, key)
                {
                    return Ok(OK);
                }
            }
        }
    }
}

/// Does what the key says. `true`: the program ends.
fn ends(table: &mut Table, key: KeyEvent) -> bool {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return key.code == KeyCode::Char('c');
    }
    match (table.is_typing(), key.code) {
        (true, KeyCode::Char(c)) => table.type_char(c),
        (true, KeyCode::Backspace) => table.rub_out(),
        (true, KeyCode::Enter) => table.end_typing(true),
        (true, KeyCode::Esc) => table.end_typing(false),
        (false, KeyCode::Char('q') | KeyCode::Esc) => return true,
        (false, KeyCode::Char('s')) => table.sort_by_next(),
        (false, KeyCode::Char('r')) => table.reverse(),
        (false, KeyCode::Char('/')) => table.begin_typing(),
        (_, KeyCode::Down) => table.scroll(1),
        (_, KeyCode::Up) => table.scroll(-1),
        (_, KeyCode::PageDown) => table.scroll(20),
        (_, KeyCode::PageUp) => table.scroll(-20),
        _ => {}
    }
    false
}
