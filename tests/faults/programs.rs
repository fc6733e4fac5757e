//! Programs that end a few milliseconds after they have connected, in every way, with everything that they may hold,
//! wait for or clean up. Nothing of them is left in Redis, so the next run finds all of it free.
//!
//! Each program is this test binary again, which runs only `child`. It ends as soon as its `main` has returned or
//! panicked. `BOWLINE_ENDS=200` ends each program as often.

mod ends;
mod scenes;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::scene::ms;
use crate::support::adapters::bounded;
use crate::support::server::Server;
use ends::{End, Runtime};
use scenes::Scene;

const PROGRAM: &str = "BOWLINE_TEST_PROGRAM";
const URLS: &str = "BOWLINE_TEST_URLS";

/// Programs that run at the same time, of all tests together: those of other files measure time beside them.
const AT_ONCE: usize = 2;
static ONE_TEST: Mutex<()> = Mutex::new(());

/// The good-bye of a program may take as long. The machine may be busy.
const SHUTDOWN: Duration = ms(10_000);

/// How often each program ends, unless the environment says more.
const FEW: usize = 3;

/// How often each program ends.
fn times() -> usize {
    std::env::var("BOWLINE_ENDS").map_or(FEW, |times| times.parse().unwrap())
}

/// Not a test by itself: the program.
#[test]
fn child() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let urls = std::env::var(URLS).unwrap();
    let urls: Vec<&str> = urls.split(' ').collect();
    let [runtime, end, scene, name] = program.split(' ').collect::<Vec<_>>()[..] else { panic!("{program}") };
    std::process::exit(ends::main(Runtime::named(runtime), End::named(end), Scene::named(scene), name, &urls));
}

fn run(runtime: Runtime, end: End, scene: Scene, name: &str, urls: &str) {
    let program = format!("{} {} {} {name}", runtime.name(), end.name(), scene.name());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "programs::child", "--nocapture"])
        .env(PROGRAM, &program)
        .env(URLS, urls)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(end.code()), "{program}: {said}");
}

/// Ends a program of the scene in each of these ways.
fn nothing_is_left(scene: Scene, runtimes: &'static [Runtime], ends: &'static [End]) {
    let work = move || {
        let servers: Vec<Server> = (0..scene.servers()).map(|_| Server::start()).collect();
        let urls: Vec<String> = servers.iter().map(Server::url).collect();
        let programs: Vec<(Runtime, End)> =
            runtimes.iter().flat_map(|runtime| ends.iter().map(|end| (*runtime, *end))).collect();
        let (next, urls) = (AtomicUsize::new(0), urls.join(" "));
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let Some((runtime, end)) = programs.get(n / times()) else { return };
                        run(*runtime, *end, scene, &n.to_string(), &urls);
                    }
                });
            }
        });
        for server in &servers {
            // A counter of tokens outlives the holds, and a latch those who wait for it.
            let is_latch =
                |key: &str| key.starts_with("bowline:latch:") && (key.ends_with('}') || key.ends_with(":calls"));
            let stays = |key: &str| key.ends_with(":fence") || is_latch(key);
            let mut left: Vec<String> = server.keys().into_iter().filter(|key| !stays(key)).collect();
            left.sort_unstable();
            let of: Vec<String> = left
                .iter()
                .filter_map(|key| key.split_once('{')?.1.split_once('}')?.0.parse::<usize>().ok())
                .map(|n| format!("{:?}", programs[n / times()]))
                .collect();
            assert_eq!(left, [] as [&str; 0], "{scene:?}: {of:?}");
        }
    };
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    // Bounded by the programs themselves if each ends more often.
    if times() > FEW { work() } else { bounded(work) }
}

macro_rules! scenes {
    ($($test:ident: $scene:ident),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                nothing_is_left(Scene::$scene, &[Runtime::TokioMulti, Runtime::TokioCurrent], End::ALL);
            }
        )+
    };
}

scenes! {
    of_a_lock: Lock,
    of_a_writer: Writer,
    of_a_reader: Reader,
    of_permits: Permits,
    of_several_names: All,
    of_waiters: Waiters,
    of_a_cohort: Cohort,
    of_waiters_for_a_latch: Latch,
    of_what_is_being_cleaned_up: CleanUp,
    of_what_is_being_acquired: Acquiring,
    of_what_is_being_released: Releasing,
    of_what_is_being_changed: Changing,
}

/// A scope has one client, and a `RedLock` three.
#[test]
fn of_a_red_lock() {
    let ends: &[End] =
        &[End::Drop, End::Return, End::Error, End::Panic, End::Elsewhere, End::DropElsewhere, End::Outlives];
    nothing_is_left(Scene::RedLock, &[Runtime::TokioMulti, Runtime::TokioCurrent], ends);
}

/// A guard of blocking code waits for its release, so the program needs no good-bye.
#[cfg(feature = "blocking")]
#[test]
fn of_blocking_code() {
    for scene in [Scene::Lock, Scene::Writer, Scene::Reader, Scene::Permits, Scene::All] {
        nothing_is_left(scene, &[Runtime::Blocking], &[End::Drop, End::Return, End::Error, End::Panic]);
    }
}

/// The global executors of smol and async-std never drop a task, so these programs end their client themselves.
#[cfg(all(feature = "smol", feature = "async-std"))]
mod scoped {
    use super::*;

    const RUNTIMES: &[Runtime] = &[Runtime::Smol, Runtime::AsyncStd];
    const ENDS: &[End] = &[End::ScopedReturn, End::ScopedError, End::ScopedPanic];

    #[test]
    fn of_a_scope() {
        for scene in [Scene::Lock, Scene::Permits, Scene::Waiters, Scene::CleanUp] {
            nothing_is_left(scene, RUNTIMES, ENDS);
        }
    }
}
