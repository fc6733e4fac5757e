//! Locks and permits between real processes: one that sleeps through its lease, some that are killed, many that compete.
//!
//! Each process is this test binary again, running only `child`, with its role in the environment. It is told what to
//! do by lines on its standard input, and says what it did on its standard output.
#![cfg(feature = "tokio")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use bowline::{Client, Config, LockGuard};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use support::adapters::bounded;
use support::server::Server;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a busy machine may take on top of any time that a test asserts.
const SLACK: Duration = Duration::from_secs(3);

const ROLE: &str = "BOWLINE_TEST_ROLE";
const URL: &str = "BOWLINE_TEST_URL";
const LEASE_MS: &str = "BOWLINE_TEST_LEASE_MS";
const FILE: &str = "BOWLINE_TEST_FILE";

/// A process that holds, waits for or competes for `a`. Killed when dropped.
struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    fn start(server: &Server, role: &str, lease: Duration, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(ROLE, role)
            .env(URL, server.url())
            .env(LEASE_MS, lease.as_millis().to_string())
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test harness of the child talks too, on the same line at times.
                if let Some((_, line)) = line.split_once("> ")
                    && said.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self { child, input, lines }
    }

    fn with(server: &Server, role: &str, lease: Duration) -> Self {
        Self::start(server, role, lease, Path::new(""))
    }

    /// The rest of the next line, which begins with `what`.
    fn hear(&self, what: &str) -> String {
        let line = self.lines.recv_timeout(ms(20_000)).unwrap_or_else(|error| panic!("waiting for {what:?}: {error}"));
        let rest = line.strip_prefix(what).unwrap_or_else(|| panic!("{line:?} instead of {what:?}"));
        rest.trim().to_owned()
    }

    fn hear_token(&self) -> u64 {
        self.hear("granted").parse().unwrap()
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn finish(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that failed; a stopped process can be killed too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: what the processes do.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = std::env::var(URL).unwrap();
    let lease = ms(std::env::var(LEASE_MS).unwrap().parse().unwrap());
    let config = Config::builder().lease(lease).build().unwrap();
    let client = runtime.block_on(bowline::tokio::connect_with(&url, config)).unwrap();
    match role.as_str() {
        "sleeper" => sleeper(&runtime, &client, &url, lease),
        "holder" => holder(&runtime, &client),
        "reader" => keeper(&runtime, &client, async { client.rw_lock("a").read().await.map(drop_later) }),
        "writer" => keeper(&runtime, &client, async { client.rw_lock("a").write().await.map(drop_later) }),
        "permits" => {
            keeper(&runtime, &client, async { client.semaphore("a", PERMITS).acquire_many(2).await.map(drop_later) })
        }
        "competitor" => runtime.block_on(compete(&client)),
        other => panic!("{other}"),
    }
}

fn say(what: &str) {
    println!("> {what}");
}

fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn acquire(runtime: &tokio::runtime::Runtime, client: &Client) -> LockGuard {
    let lock = client.lock("a");
    let guard = runtime.block_on(async { lock.lock().await }).unwrap();
    say(&format!("granted {}", guard.token()));
    guard
}

/// Acquires, holds until told to release, and releases.
fn holder(runtime: &tokio::runtime::Runtime, client: &Client) {
    let guard = acquire(runtime, client);
    assert_eq!(listen(), "release");
    runtime.block_on(guard.release()).unwrap();
    say("released");
}

type Guard = Box<dyn Send>;

fn drop_later(guard: impl Send + 'static) -> Guard {
    Box::new(guard)
}

/// Acquires, and holds until told to go.
fn keeper(runtime: &tokio::runtime::Runtime, client: &Client, acquired: impl Future<Output = bowline::Result<Guard>>) {
    let guard = runtime.block_on(acquired).unwrap();
    say("holds");
    assert_eq!(listen(), "go");
    drop(guard);
    runtime.block_on(client.close());
}

/// Acquires, and notices when it wakes from a sleep longer than its lease. Then it says whether it believes that it
/// holds the lock, writes all the same, and says how that went and why it lost the lock.
fn sleeper(runtime: &tokio::runtime::Runtime, client: &Client, url: &str, lease: Duration) {
    let mut registers = Registers::open(url);
    let guard = acquire(runtime, client);
    // Looked at once a round, so that a sleep anywhere from here on shows.
    let mut last = Instant::now();
    registers.write(guard.token().get());
    loop {
        let now = Instant::now();
        if now - last >= lease {
            break;
        }
        last = now;
        thread::sleep(ms(5));
    }
    let valid = guard.is_valid();
    let accepted = registers.write(guard.token().get());
    let loss = runtime.block_on(guard.lost());
    say(&format!("valid {valid}"));
    say(&format!("accepted {accepted}"));
    say(&format!("lost {loss:?}"));
}

/// Two registers that the lock protects: one refuses a token smaller than the largest it has seen, the other takes
/// everything.
struct Registers(redis::Connection);

impl Registers {
    fn open(url: &str) -> Self {
        Self(redis::Client::open(url).unwrap().get_connection().unwrap())
    }

    /// Writes to both. Says whether the first accepted it.
    fn write(&mut self, token: u64) -> bool {
        let script = "redis.call('RPUSH', KEYS[2], ARGV[1])
             redis.call('PEXPIRE', KEYS[2], 600000)
             if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return 0 end
             redis.call('SET', KEYS[1], ARGV[1], 'PX', 600000)
             return 1";
        let mut eval = redis::cmd("EVAL");
        eval.arg(script).arg(2).arg("guarded").arg("unguarded").arg(token).query(&mut self.0).unwrap()
    }

    fn guarded(&mut self) -> u64 {
        redis::cmd("GET").arg("guarded").query(&mut self.0).unwrap()
    }

    fn unguarded(&mut self) -> Vec<u64> {
        redis::cmd("LRANGE").arg("unguarded").arg(0).arg(-1).query(&mut self.0).unwrap()
    }
}

#[test]
fn a_holder_that_sleeps_through_its_lease_is_told_and_its_write_is_refused() {
    bounded(|| {
        let server = Server::start();
        let mut registers = Registers::open(&server.url());
        let lease = ms(1500);
        let sleeper = Process::with(&server, "sleeper", lease);
        let first = sleeper.hear_token();
        until("its first write", || !registers.unguarded().is_empty());
        sleeper.signal(Signal::STOP);
        let stopped = Instant::now();

        let mut successor = Process::with(&server, "holder", ms(30_000));
        let second = successor.hear_token();
        assert!(stopped.elapsed() < lease + SLACK);
        assert!(second > first);
        assert!(registers.write(second));
        // Asleep for longer than its lease by its own clock too.
        thread::sleep((lease + ms(100)).saturating_sub(stopped.elapsed()));
        sleeper.signal(Signal::CONT);
        assert_eq!(sleeper.hear("valid"), "false");
        assert_eq!(sleeper.hear("accepted"), "false");
        assert_eq!(sleeper.hear("lost"), "Expired");
        assert_eq!(registers.guarded(), second);
        assert_eq!(registers.unguarded(), [first, second, first], "without the token, the late write destroys");
        successor.tell("release");
        successor.hear("released");
        sleeper.finish();
        successor.finish();
    });
}

#[test]
fn a_holder_that_is_killed_is_succeeded_after_its_lease() {
    bounded(|| {
        let server = Server::start();
        let lease = ms(1000);
        let mut holder = Process::with(&server, "holder", lease);
        let first = holder.hear_token();
        let mut next = Process::with(&server, "holder", lease);
        until_waiting(&server, 1);
        holder.kill();
        let killed = Instant::now();
        let second = next.hear_token();
        assert!(killed.elapsed() < lease + SLACK, "{:?}", killed.elapsed());
        assert!(second > first);
        next.tell("release");
        next.hear("released");
        next.finish();
    });
}

/// How many the semaphore `a` has: two processes cannot both have two.
const PERMITS: u32 = 3;

#[test]
fn what_a_killed_process_held_comes_back_after_its_lease_and_not_before() {
    bounded(|| {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let looks = runtime.block_on(bowline::tokio::connect(&server.url())).unwrap();
        for (held, kind, next) in [
            ("reader", "rw", "writer"),
            ("writer", "rw", "reader"),
            ("writer", "rw", "writer"),
            ("permits", "sem", "permits"),
        ] {
            // A little longer for the next: what it does not renew meanwhile tells when it began.
            let (lease, long) = (ms(1000), ms(60_000));
            let mut holder = Process::with(&server, held, lease);
            holder.hear("holds");
            let [first] = leases(&server, kind)[..] else { panic!("{held} holds") };
            until("renewed", || leases(&server, kind)[0] > first);
            let mut waiter = Process::with(&server, next, long);
            until_queued(&server, &format!("bowline:{kind}:{{a}}:queue"), 1);
            holder.kill();
            let [ends] = leases(&server, kind)[..] else { panic!("{held} holds, and nobody else") };
            // Somebody looks all the time, and would find what came back too early.
            until("the next one holds", || {
                let busy = runtime.block_on(async {
                    match kind {
                        "rw" => looks.rw_lock("a").try_write().await.unwrap().is_none(),
                        _ => looks.semaphore("a", PERMITS).try_acquire_many(2).await.unwrap().is_none(),
                    }
                });
                assert!(busy, "somebody waits for it");
                waiter.lines.try_recv().is_ok_and(|line| line.trim() == "holds")
            });
            let [granted_until] = leases(&server, kind)[..] else { panic!("{next} holds, and nobody else") };
            // By the clock of the server.
            let granted = granted_until - 60_000;
            assert!(granted >= ends, "{next} after {held}: {} ms early", ends - granted);
            assert!(granted < ends + SLACK.as_millis() as u64, "{next} after {held}: {} ms late", granted - ends);
            waiter.tell("go");
            waiter.finish();
            until("free", || leases(&server, kind).is_empty());
        }
    });
}

/// When the leases of `a` end, by the server's clock.
fn leases(server: &Server, kind: &str) -> Vec<u64> {
    let key = format!("bowline:{kind}:{{a}}:leases");
    let leases: Vec<(String, u64)> =
        redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES").query(&mut server.client()).unwrap();
    leases.into_iter().map(|(_, ends)| ends).collect()
}

#[test]
fn waiters_that_are_killed_at_the_head_and_in_the_middle_are_skipped() {
    bounded(|| {
        let server = Server::start();
        // Longer than the test may take: nothing is served because something has expired.
        let lease = ms(120_000);
        let mut holder = Process::with(&server, "holder", lease);
        let mut last = holder.hear_token();
        let mut waiters: Vec<Process> = (1..=4)
            .map(|n| {
                let waiter = Process::with(&server, "holder", lease);
                until_waiting(&server, n);
                waiter
            })
            .collect();
        for n in [0, 2] {
            waiters[n].kill();
        }
        until_subscribed(&server, 3);
        for n in [1, 3] {
            let released = Instant::now();
            holder.tell("release");
            holder.hear("released");
            let token = waiters[n].hear_token();
            assert!(released.elapsed() < SLACK, "{:?}", released.elapsed());
            assert!(token > last);
            last = token;
            std::mem::swap(&mut holder, &mut waiters[n]);
        }
        holder.tell("release");
        holder.hear("released");
    });
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < ms(20_000), "never: {what}");
        thread::sleep(ms(5));
    }
}

fn until_waiting(server: &Server, n: u64) {
    until_queued(server, "bowline:lock:{a}:queue", n);
}

fn until_queued(server: &Server, queue: &str, n: u64) {
    let mut redis = server.client();
    until(&format!("{n} wait"), || redis::cmd("LLEN").arg(queue).query::<u64>(&mut redis).unwrap() == n);
}

/// The server has noticed which processes are gone.
fn until_subscribed(server: &Server, n: usize) {
    let mut redis = server.client();
    until(&format!("{n} inboxes"), || {
        let channels: Vec<String> =
            redis::cmd("PUBSUB").arg("CHANNELS").arg("bowline:inbox:*").query(&mut redis).unwrap();
        channels.len() == n
    });
}

const TASKS: usize = 8;

/// Tasks that acquire again and again for three seconds. Each writes down what it did and when.
async fn compete(client: &Client) {
    say("ready");
    tokio::task::spawn_blocking(listen).await.unwrap();
    let start = Instant::now();
    let tasks = (0..TASKS).map(|task| {
        let lock = client.lock("a");
        tokio::spawn(async move {
            let mut history = String::new();
            while start.elapsed() < ms(3000) {
                history += &format!("invoke {} {task} 0\n", nanoseconds());
                let guard = lock.lock().await.unwrap();
                history += &format!("grant {} {task} {}\n", nanoseconds(), guard.token());
                tokio::task::yield_now().await;
                assert!(guard.is_valid());
                history += &format!("release {} {task} {}\n", nanoseconds(), guard.token());
                guard.release().await.unwrap();
            }
            history
        })
    });
    let mut history = String::new();
    for task in tasks.collect::<Vec<_>>() {
        history += &task.await.unwrap();
    }
    fs::write(std::env::var(FILE).unwrap(), history).unwrap();
    client.close().await;
}

/// The clock that all processes of a machine share.
fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

#[test]
fn many_tasks_of_many_processes_never_hold_together_and_all_are_served() {
    bounded(|| {
        let server = Server::start();
        let files: Vec<_> = (0..4).map(|n| server.dir().join(format!("history-{n}"))).collect();
        let mut processes: Vec<Process> =
            files.iter().map(|file| Process::start(&server, "competitor", ms(30_000), file)).collect();
        for process in &processes {
            process.hear("ready");
        }
        for process in &mut processes {
            process.tell("go");
        }
        processes.into_iter().for_each(Process::finish);
        let histories: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let holds = check(&histories).unwrap();
        assert!(holds >= 100, "{holds}");
        assert_eq!(
            server.keys(),
            ["bowline:lock:{a}:fence", "bowline:lock:{bowline-check}:fence", "bowline:rw:{bowline-check}:fence"]
        );
    });
}

/// Holds of one lock, from the histories of several processes: no two overlap, tokens grow in the order of the grants,
/// and every task was served each time it asked. Returns how many holds there were.
fn check(histories: &[String]) -> Result<usize, String> {
    // By token: from when to when.
    let mut holds: BTreeMap<u64, (u64, Option<u64>)> = BTreeMap::new();
    let (mut asked, mut served) = (BTreeMap::new(), BTreeMap::new());
    for (process, history) in histories.iter().enumerate() {
        for line in history.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let &[event, at, task, token] = &*words else { return Err(format!("{line:?}")) };
            let [at, task, token] = [at, task, token].map(|word| word.parse::<u64>().unwrap());
            match event {
                "invoke" => *asked.entry((process, task)).or_insert(0) += 1,
                "grant" => {
                    *served.entry((process, task)).or_insert(0) += 1;
                    if holds.insert(token, (at, None)).is_some() {
                        return Err(format!("token {token} twice"));
                    }
                }
                "release" => holds.get_mut(&token).ok_or_else(|| format!("{line:?}: not granted"))?.1 = Some(at),
                _ => return Err(format!("{line:?}")),
            }
        }
    }
    if asked != served {
        return Err(format!("asked {asked:?}, served {served:?}"));
    }
    let tasks: BTreeSet<u64> = served.keys().map(|(_, task)| *task).collect();
    if served.len() != histories.len() * tasks.len() {
        return Err(format!("not everybody was served: {:?}", served.keys()));
    }
    let holds: Vec<(u64, (u64, Option<u64>))> = holds.into_iter().collect();
    for pair in holds.windows(2) {
        let [(token, (_, end)), (next, (begin, _))] = pair else { unreachable!() };
        if end.is_none_or(|end| end > *begin) {
            return Err(format!("{token} was held until {end:?}, {next} from {begin}"));
        }
    }
    Ok(holds.len())
}

#[test]
fn the_checker_finds_what_it_looks_for() {
    let check = |histories: &[&str]| check(&histories.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let first = "invoke 1 0 0\ngrant 2 0 10\nrelease 3 0 10\n";
    assert_eq!(check(&[first, "invoke 1 0 0\ngrant 3 0 11\nrelease 4 0 11\n"]), Ok(2));
    for (second, what) in [
        ("invoke 1 0 0\ngrant 2 0 11\nrelease 4 0 11\n", "an overlap"),
        ("invoke 1 0 0\ngrant 3 0 9\nrelease 4 0 9\n", "a smaller token later"),
        ("invoke 1 0 0\ngrant 3 0 10\nrelease 4 0 10\n", "a token twice"),
        ("invoke 1 0 0\n", "somebody not served"),
        ("", "a process not served"),
        ("invoke 1 0 0\ngrant 3 0 11\nrelease 4 0 11\ninvoke 5 0 0\n", "somebody not served again"),
        ("invoke 1 0 0\nrelease 4 0 11\n", "a release without a grant"),
        ("rubbish\n", "rubbish"),
    ] {
        assert!(check(&[first, second]).is_err(), "not found: {what}");
    }
}
