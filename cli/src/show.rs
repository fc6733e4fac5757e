//! How things are shown: JSON for scripts, and text with colours on a terminal.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::exit::Failure;

/// Writes one document and a line end.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::own(format!("JSON: {error}")))?;
    lines(&[text])
}

/// One document in one line.
pub(crate) fn json_line(document: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(document).map_err(|error| Failure::own(format!("JSON: {error}")))
}

/// Writes lines. A reader that has gone, such as `head`, is no error.
pub(crate) fn lines(lines: &[String]) -> Result<(), Failure> {
    try_lines(lines).map(drop)
}

/// Writes lines. `false`: nobody reads them any more.
pub(crate) fn try_lines(lines: &[String]) -> Result<bool, Failure> {
    let mut out = stdout().lock();
    is_read(lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush()))
}

fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::own(format!("cannot write to the standard output: {error}"))),
    }
}

/// Waits until nobody reads the output any more, which a write would tell only when there is something to write.
pub(crate) async fn reader_is_gone() {
    const EVERY: Duration = Duration::from_secs(1);
    let out = stdout();
    // These two are told without being asked for. A file has neither.
    let gone = PollFlags::ERR | PollFlags::HUP;
    loop {
        let mut asked = [PollFd::new(&out, PollFlags::empty())];
        let polled = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        if polled.is_ok() && asked.iter().any(|asked| asked.revents().intersects(gone)) {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes to the standard error. If nobody reads that any more, or the terminal takes no text, only the exit code
/// tells.
pub(crate) fn complain(text: &str) {
    // A terminal may be behind for a moment.
    const BEHIND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
    if !stderr().is_terminal() || takes_text(BEHIND) {
        let _ = writeln!(stderr(), "{text}");
    }
}

/// Whether the standard error takes text within that time. A terminal takes none from Ctrl-S to Ctrl-Q. A write would
/// block the only thread, which also renews leases.
pub(crate) fn takes_text(within: Timespec) -> bool {
    let err = stderr();
    let mut asked = [PollFd::new(&err, PollFlags::OUT)];
    poll(&mut asked, Some(&within)).is_ok_and(|ready| ready > 0)
}

/// Colours, if the output is a terminal and nobody asks for none: <https://no-color.org>.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style(bool);

impl Style {
    pub(crate) fn of_output() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(stdout().is_terminal() && !no_color)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.painted("31", text)
    }

    fn painted(self, color: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What others have chosen must not command the terminal, or look like more than one line.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A time for people, with two units at most.
pub(crate) fn time(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}.{}s", millis / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_people() {
        let s = Duration::from_secs_f64;
        for (seconds, shown) in
            [(0.25, "250ms"), (29.98, "29.9s"), (61.0, "1m 1s"), (3700.0, "1h 1m"), (90000.0, "1d 1h")]
        {
            assert_eq!(time(s(seconds)), shown);
        }
    }

    #[test]
    fn an_output_that_nobody_reads_is_no_failure() {
        let of = |written: io::Result<()>| is_read(written).map_err(|failure| failure.code);
        assert_eq!([of(Ok(())), of(Err(io::ErrorKind::BrokenPipe.into()))], [Ok(true), Ok(false)]);
        assert_eq!(of(Err(io::ErrorKind::StorageFull.into())), Err(crate::exit::FAILED));
    }

    #[test]
    fn names_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a?[2Jb?c");
    }
}
