//! `top`: a live table of the names in use.

use std::future::poll_fn;
use std::io::{IsTerminal, stdin, stdout};
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Instant;

use bowline::Client;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::args::health::Top;
use crate::exit::{Failure, OK, SIGNALLED};
use crate::ls::list;
use crate::show::reader_is_gone;

mod draw;
mod table;

use table::Table;

const SIGHUP: u8 = 1;

/// SIGHUP, SIGINT, SIGQUIT and SIGTERM.
const ENDING: [u8; 4] = [SIGHUP, 2, 3, 15];

pub(crate) async fn top(client: &Client, args: &Top) -> Result<u8, Failure> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::own("top needs a terminal: see ls --json"));
    }
    // The first look is made before the screen is taken, so that its error can be read.
    let names = list(client, &args.start, args.kind).await?;
    let mut table = Table::default();
    table.take(names, Instant::now());
    // The terminal must not stay as it is from here.
    let mut signals = signals().map_err(failed)?;
    let ended = match ratatui::try_init() {
        Ok(mut terminal) => follow(client, args, &mut table, &mut terminal, &mut signals).await,
        Err(error) => Err(failed(error)),
    };
    ratatui::restore();
    ended
}

fn failed(error: std::io::Error) -> Failure {
    Failure::own(format!("terminal: {error}"))
}

fn signals() -> std::io::Result<Vec<(u8, Signal)>> {
    ENDING.into_iter().map(|number| Ok((number, signal(SignalKind::from_raw(number.into()))?))).collect()
}

/// The number of the next signal.
async fn next(signals: &mut [(u8, Signal)]) -> u8 {
    poll_fn(|context| {
        let mut arrived =
            signals.iter_mut().filter_map(|(number, signal)| signal.poll_recv(context).is_ready().then_some(*number));
        arrived.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// What the terminal reports. A thread of its own reads it, because a read may block for ever: after half a sequence of
/// bytes, and when the terminal is gone.
fn events() -> UnboundedReceiver<std::io::Result<Event>> {
    let (sender, events) = unbounded_channel();
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.send(event).is_err() || is_last {
                return;
            }
        }
    });
    events
}

async fn follow(
    client: &Client,
    args: &Top,
    table: &mut Table,
    terminal: &mut ratatui::DefaultTerminal,
    signals: &mut [(u8, Signal)],
) -> Result<u8, Failure> {
    let (mut events, mut is_gone) = (events(), pin!(reader_is_gone()));
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
                signal = next(signals) => return Ok(SIGNALLED + signal),
                // Not every process gets a signal when its window is closed.
                () = &mut is_gone => return Ok(SIGNALLED + SIGHUP),
                Some(event) = events.recv() => {
                    if let Event::Key(key) = event.map_err(failed)?
                        && key.kind != KeyEventKind::Release
                        && ends(table, key)
                    {
                        return Ok(OK);
                    }
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
