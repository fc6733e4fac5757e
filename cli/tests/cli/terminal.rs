//! The program in a shell at a terminal: keys, job control, the line of progress.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bowline_testkit::server::Server;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::{BOWLINE, Running, Traces, bowline, clean, kill_session, until, waiters};
use crate::signals::state;

/// An interactive shell at a terminal of its own.
struct Terminal {
    shell: Child,
    /// `None`: the window is closed.
    keys: Option<File>,
    shown: Arc<Mutex<String>>,
    is_over: Arc<AtomicBool>,
    reads: Option<JoinHandle<()>>,
}

impl Terminal {
    fn start(url: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let end = || OpenOptions::new().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let mut shell = Command::new("setsid");
        shell
            .args(["--ctty", "env", "--default-signal", "bash", "--norc", "--noprofile", "-i"])
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let shell = clean(&mut shell).env("BOWLINE_URL", url).env("B", BOWLINE).env("TERM", "dumb").spawn().unwrap();
        let keys = File::from(master);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, all) = (keys.try_clone().unwrap(), shown.clone());
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let reads = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let mut asked = [PollFd::new(&reader, PollFlags::IN)];
                let ready = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).unwrap_or(0);
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                if ready > 0 {
                    let Ok(n @ 1..) = reader.read(&mut bytes) else { return };
                    all.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
                }
            }
        });
        Self { shell, keys: Some(keys), shown, is_over, reads: Some(reads) }
    }

    /// Closes the window.
    fn hang_up(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.reads.take().unwrap().join().unwrap();
        self.keys = None;
    }

    fn keys(&mut self, keys: &str) {
        self.keys.as_ref().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Has the shell continue its job. The shell would read itself what is typed before it has read this.
    fn continues_in_foreground(&mut self) {
        self.keys("fg\n");
        self.shows("fg");
        self.shows("run a");
    }

    /// Waits until the terminal shows this, and forgets what it has shown until then.
    fn shows(&self, wanted: &str) {
        let mut seen = String::new();
        let mut found = false;
        let began = std::time::Instant::now();
        while !found {
            let mut shown = self.shown.lock().unwrap();
            if let Some(at) = shown.find(wanted) {
                shown.drain(..at + wanted.len());
                found = true;
            }
            seen.clone_from(&shown);
            drop(shown);
            assert!(found || began.elapsed().as_secs() < 30, "no {wanted:?} in {seen:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill_session(Pid::from_child(&self.shell));
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Q: &str = "\x11";
const CTRL_S: &str = "\x13";
const CTRL_Z: &str = "\x1a";

#[test]
fn a_command_reads_the_terminal_and_gets_its_keys() {
    let server = Server::start();
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("$B run a -- sh -c 'echo be''gun; read line; echo got:$line; cat'; echo rc=$?\n");
    terminal.shows("begun");
    terminal.keys("hello\n");
    terminal.shows("got:hello");
    terminal.keys(CTRL_D);
    terminal.shows("rc=0");
    terminal.keys("$B run a -- sh -c 'trap \"echo inter''rupted; exit 9\" INT; echo be''gun; for i in $(seq 3000); do sleep 0.01; done'; echo rc=$?\n");
    terminal.shows("begun");
    terminal.keys(CTRL_C);
    terminal.shows("interrupted");
    terminal.shows("rc=9");
    terminal.keys("$B run a -- sleep 100\n");
    until("it holds", || server.ttl_ms("bowline:lock:{a}") > 0);
    terminal.keys(CTRL_C);
    terminal.keys("echo rc=$?\n");
    terminal.shows("rc=130");
}

#[test]
fn a_job_is_stopped_and_continued_by_the_shell() {
    let (server, traces) = (Server::start(), Traces::new());
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("$B run a --lease 10m -- sh -c 'echo be''gun; read line; echo got:$line'\n");
    terminal.shows("begun");
    terminal.keys(CTRL_Z);
    terminal.shows("Stopped");
    terminal.continues_in_foreground();
    terminal.keys("again\n");
    terminal.shows("got:again");
    // In the background, it waits for the terminal as any job does.
    let pid = traces.word("pid");
    terminal.keys(&format!("$B run a --lease 10m -- sh -c 'echo $$ > {pid}; read line; echo got:$line' &\n"));
    traces.until("pid");
    let reader = Pid::from_raw(traces.lines("pid")[0].parse().unwrap()).unwrap();
    until("it is stopped", || state(reader) == "T");
    terminal.continues_in_foreground();
    terminal.keys("later\n");
    terminal.shows("got:later");
}

#[test]
fn a_job_that_no_shell_can_continue_is_not_stopped() {
    let server = Server::start();
    let mut terminal = Terminal::start(&server.url());
    // The shell becomes bowline, as in a container whose only program it is. First while it waits, then with a command.
    let mut holder = Running::start(bowline(&server.url(), &["run", "a", "--", "sleep", "1000"]));
    until("it is held", || server.ttl_ms("bowline:lock:{a}") > 0);
    terminal.keys("exec $B run a --lease 10m -- sh -c 'echo be''gun; read line; exit 5'\n");
    terminal.shows("waiting for a");
    terminal.keys(CTRL_Z);
    terminal.shows("^Z");
    holder.signal(Signal::TERM);
    holder.ended();
    terminal.shows("begun");
    terminal.keys(CTRL_Z);
    terminal.shows("^Z");
    terminal.keys("word\n");
    let mut status = None;
    until("the program ends", || {
        status = terminal.shell.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(5));
}

#[test]
fn a_script_and_a_pipeline_have_the_terminal_too() {
    let server = Server::start();
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("sh -c '$B run a -- sh -c \"read x; echo got:\\$x\"; echo rest of the scr''ipt'\n");
    terminal.keys("word\n");
    terminal.shows("got:word");
    terminal.shows("rest of the script");
    terminal.keys("$B run a -- sh -c 'read x; echo $x' | sed s/^/piped:/\n");
    terminal.keys("word\n");
    terminal.shows("piped:word");
}

#[test]
fn a_wait_is_shown_on_a_terminal_only() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; while [ ! -e {} ]; do sleep 0.01; done", traces.word("held"), traces.word("go"));
    let mut holder =
        Running::start(bowline(&server.url(), &["run", "a", "--label", "host-7", "--", "sh", "-c", &script]));
    traces.until("held");
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("$B run a -- echo gra''nted\n");
    terminal.shows("waiting for a: place 1 of 1; held by host-7 for ");
    let quiet = bowline(&server.url(), &["run", "a", "--", "true"]).spawn().unwrap();
    until("both wait", || waiters(&server, "a") == 2);
    std::fs::write(traces.path("go"), "go").unwrap();
    terminal.shows("granted");
    assert!(holder.ended().success());
    assert_eq!(crate::program::code(&quiet.wait_with_output().unwrap()), (0, String::new(), String::new()));
}

#[test]
fn top_follows_the_names_and_ends_by_a_key() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let _holder =
        Running::start(bowline(&server.url(), &["run", "backup", "--label", "host-7", "--", "sh", "-c", &script]));
    traces.until("held");
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("stty rows 24 cols 100; $B top --every 100ms; echo rc=$?\n");
    terminal.shows("1 names, 1 held, 0 waiting");
    terminal.shows("backup");
    terminal.shows("host-7");
    let _waiter = Running::start(bowline(&server.url(), &["run", "backup", "--", "true"]));
    // Only what has changed is drawn.
    until("the waiter is seen", || terminal.shown.lock().unwrap().contains("38;5;3"));
    for (key, shown) in [("/", "_"), ("n", "n_"), ("o", "o_"), ("n", "n_"), ("e", "e_")] {
        terminal.keys(key);
        terminal.shows(shown);
    }
    terminal.keys("\rq");
    terminal.shows("rc=0");
    let (found, _, err) = crate::program::code(&crate::program::output(&server.url(), &["top"]));
    assert_eq!(found, 125);
    assert!(err.contains("top needs a terminal"), "{err}");
}

#[test]
fn top_gives_the_terminal_back_when_a_signal_ends_it() {
    let server = Server::start();
    let mut terminal = Terminal::start(&server.url());
    for (number, wanted) in [(1, "rc=129"), (2, "rc=130"), (3, "rc=131"), (15, "rc=143")] {
        let pid = top_in(&mut terminal, &Traces::new());
        kill_process(pid, Signal::from_named_raw(number).unwrap()).unwrap();
        terminal.shows("\x1b[?1049l");
        terminal.shows(wanted);
    }
}

/// A terminal sends such a beginning for Alt and a bracket.
#[test]
fn top_hears_of_a_signal_after_half_a_sequence() {
    let (server, traces) = (Server::start(), Traces::new());
    let mut terminal = Terminal::start(&server.url());
    let pid = top_in(&mut terminal, &traces);
    terminal.keys("\x1b[");
    // It reads that at some time.
    std::thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::TERM).unwrap();
    terminal.shows("rc=143");
}

/// The shell ignores the signal, and the system sends it to nobody else.
#[test]
fn top_ends_with_its_window_also_without_a_signal() {
    let (server, traces) = (Server::start(), Traces::new());
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("trap '' HUP\n");
    let pid = top_in(&mut terminal, &traces);
    terminal.hang_up();
    until("it has ended", || matches!(&*state(pid), "" | "Z"));
}

/// Starts it, and returns its process id when it has the screen. It does nothing then until it is told something.
fn top_in(terminal: &mut Terminal, traces: &Traces) -> Pid {
    terminal.keys("stty rows 24 cols 100\n");
    terminal.keys(&format!("sh -c 'echo $$ > {}; exec $B top --every 1h'; echo rc=$?\n", traces.word("pid")));
    terminal.shows("\x1b[?1049h");
    terminal.shows("0 names");
    Pid::from_raw(traces.lines("pid")[0].parse().unwrap()).unwrap()
}

#[test]
fn the_line_of_progress_fits_in_the_window() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let _holder = Running::start(bowline(&server.url(), &["run", "a", "--label", "host-7", "--", "sh", "-c", &script]));
    traces.until("held");
    let mut terminal = Terminal::start(&server.url());
    terminal.keys("stty cols 32; $B run a -- true; echo rc=$?\n");
    terminal.shows("bowline: waiting for a: place 1");
    terminal.keys(CTRL_C);
    let mut rest = String::new();
    until("the program ends", || {
        rest.clone_from(&terminal.shown.lock().unwrap());
        rest.contains("rc=130")
    });
    assert!(!rest.contains(" of 1"), "{rest:?}");
}

#[test]
fn a_terminal_that_stands_still_does_not_keep_a_wait_from_its_end() {
    let (server, traces) = (Server::start(), Traces::new());
    let _holder = Running::start(bowline(&server.url(), &["run", "a", "--", "sleep", "1000"]));
    until("it is held", || server.ttl_ms("bowline:lock:{a}") > 0);
    let mut terminal = Terminal::start(&server.url());
    terminal.keys(&format!("sh -c 'echo $$ > {}; exec $B run a -- true'; echo rc=$?\n", traces.word("pid")));
    terminal.shows("waiting for a: place 1");
    let pid = Pid::from_raw(traces.lines("pid")[0].parse().unwrap()).unwrap();
    terminal.keys(CTRL_S);
    // The line is shown anew every two seconds.
    std::thread::sleep(std::time::Duration::from_secs(3));
    kill_process(pid, Signal::TERM).unwrap();
    until("the program ends", || state(pid).is_empty());
    terminal.keys(CTRL_Q);
    terminal.shows("rc=143");
    // Nor the message that is the last.
    terminal
        .keys(&format!("sh -c 'echo $$ > {}; exec $B run a --timeout 3s -- true'; echo rc=$?\n", traces.word("again")));
    terminal.shows("waiting for a: place 1");
    let pid = Pid::from_raw(traces.lines("again")[0].parse().unwrap()).unwrap();
    terminal.keys(CTRL_S);
    until("the program ends", || state(pid).is_empty());
    terminal.keys(CTRL_Q);
    terminal.shows("rc=1\r\n");
}

#[test]
fn a_command_at_a_terminal_is_ended_with_all_that_it_has_started() {
    let (server, traces) = (Server::start(), Traces::new());
    let mut terminal = Terminal::start(&server.url());
    let trace = traces.word("trace");
    terminal.keys(&format!(
        "$B run a --lease 3s -- sh -c 'trap \"\" TERM; sleep 100 & echo be''gun; sleep 100; : {trace}'; echo rc=$?\n"
    ));
    terminal.shows("begun");
    let _: u32 = redis::cmd("DEL").arg("bowline:lock:{a}").query(&mut server.client()).unwrap();
    terminal.shows("the lock was lost");
    terminal.shows("rc=123");
    assert!(crate::program::processes(&trace).is_empty());
    // The shell and its other jobs are not ended.
    terminal.keys("echo still he''re\n");
    terminal.shows("still here");
}

/// The signal goes to the program alone, and the terminal tells the others nothing.
#[test]
fn what_a_terminated_command_has_left_ends_before_the_release() {
    let (server, traces) = (Server::start(), Traces::new());
    let mut terminal = Terminal::start(&server.url());
    let trace = traces.word("trace");
    terminal.keys(&format!("$B run a -- bash -c 'exec -a {trace} sleep 100 & echo be''gun; wait' &\n"));
    terminal.shows("begun");
    terminal.keys("kill -TERM $!; wait $!; echo rc=$?\n");
    terminal.shows("rc=143");
    assert!(crate::program::processes(&trace).is_empty());
}
