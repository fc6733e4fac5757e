//! What was granted, written down by those who held it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use bowline::Token;

/// Grants of all names.
#[derive(Default)]
pub(crate) struct Log(Mutex<BTreeMap<String, Vec<Grant>>>);

#[derive(Clone, Copy)]
struct Grant {
    task: usize,
    token: Token,
    /// From after the grant was known.
    from: Instant,
    /// Until before the release was sent.
    until: Instant,
}

impl Log {
    pub(crate) fn held(&self, name: &str, task: usize, token: Token, from: Instant, until: Instant) {
        let grant = Grant { task, token, from, until };
        self.0.lock().unwrap().entry(name.to_owned()).or_default().push(grant);
    }

    /// How often the task was served since then.
    pub(crate) fn served_since(&self, task: usize, since: Instant) -> usize {
        let log = self.0.lock().unwrap();
        log.values().flatten().filter(|grant| grant.task == task && grant.from >= since).count()
    }

    /// No two held one name at the same time, and who came later has the larger token. Returns how many grants there
    /// were.
    pub(crate) fn check(&self) -> usize {
        let mut log = self.0.lock().unwrap();
        for (name, grants) in log.iter_mut() {
            grants.sort_by_key(|grant| grant.from);
            for pair in grants.windows(2) {
                let [first, second] = pair else { unreachable!() };
                assert!(first.until <= second.from, "two held {name} at once");
                let (token, later) = (first.token, second.token);
                let gap = second.from - first.until;
                assert!(
                    token < later,
                    "{name}: a smaller token later: {token} of {}, then {later} of {}, {gap:?} after",
                    first.task,
                    second.task
                );
            }
        }
        log.values().map(Vec::len).sum()
    }

    /// When the first of these names was granted after that.
    pub(crate) fn first_since(&self, names: &[String], since: Instant) -> Option<Instant> {
        let log = self.0.lock().unwrap();
        names.iter().filter_map(|name| log.get(name)).flatten().map(|grant| grant.from).filter(|at| *at >= since).min()
    }

    /// The longest time without a grant of these names.
    pub(crate) fn longest_gap(&self, names: &[String]) -> std::time::Duration {
        let log = self.0.lock().unwrap();
        let mut times: Vec<Instant> = names.iter().filter_map(|name| log.get(name)).flatten().map(|g| g.from).collect();
        times.sort();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }
}

#[test]
fn the_log_finds_what_it_looks_for() {
    use std::panic::catch_unwind;
    use std::time::Duration;
    // Only a server issues tokens.
    let tokens: Vec<Token> = futures::executor::block_on(async {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        let client = bowline::embedded::Server::new().client(bowline::tokio::Tokio::current().unwrap()).await.unwrap();
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let guard = client.lock("a").lock().await.unwrap();
            tokens.push(guard.token());
            guard.release().await.unwrap();
        }
        tokens
    });
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let checked = |second: (usize, u64, u64)| {
        let log = Log::default();
        log.held("a", 1, tokens[0], at(0), at(10));
        log.held("a", 2, tokens[second.0], at(second.1), at(second.2));
        catch_unwind(move || log.check()).ok()
    };
    assert_eq!(checked((1, 10, 20)), Some(2));
    assert_eq!(checked((1, 9, 20)), None, "an overlap");
    assert_eq!(checked((0, 10, 20)), None, "the same token");
}
