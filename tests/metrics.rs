//! What the feature `metrics` tells. One test, because a process has one recorder.
#![cfg(all(feature = "tokio", feature = "metrics", feature = "embedded"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have tasks of their own"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, Executor};
use bowline_testkit::server::Server;
use futures::future::join_all;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// All that was told, by the name and the labels of each series.
struct Told {
    snapshotter: Snapshotter,
    executor: Arc<dyn Executor>,
    counts: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    histograms: BTreeMap<String, Vec<f64>>,
}

impl Told {
    /// All start anew with each snapshot.
    fn read(&mut self) {
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let (_, key) = key.into_parts();
            let mut labels: Vec<String> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            labels.sort();
            let series = [&[key.name().to_owned()], &labels[..]].concat().join(" ");
            match value {
                DebugValue::Counter(by) => *self.counts.entry(series).or_default() += by,
                DebugValue::Gauge(by) => *self.gauges.entry(series).or_default() += by.into_inner(),
                DebugValue::Histogram(values) => {
                    let values = values.into_iter().map(|value| value.into_inner());
                    self.histograms.entry(series).or_default().extend(values);
                }
            }
        }
    }

    fn count(&mut self, series: &str) -> u64 {
        self.read();
        self.counts.get(series).copied().unwrap_or_default()
    }

    fn gauge(&mut self, series: &str) -> f64 {
        self.read();
        self.gauges.get(series).copied().unwrap_or_default()
    }

    /// The values of a histogram so far.
    fn times(&mut self, series: &str) -> Vec<f64> {
        self.read();
        self.histograms.get(series).cloned().unwrap_or_default()
    }

    async fn eventually(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..3000 {
            if is_so(self) {
                return;
            }
            self.executor.sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}");
    }

    fn names(&self) -> BTreeSet<String> {
        let all = self.counts.keys().chain(self.gauges.keys()).chain(self.histograms.keys());
        all.map(|series| series.split(' ').next().unwrap().to_owned()).collect()
    }
}

async fn connect(server: &Server, names: bool) -> Client {
    let config = Config::builder().lease(Duration::from_millis(600)).names_in_metrics(names).build().unwrap();
    bowline::tokio::connect_with(server.url(), config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let server = Server::start();
    let (client, named) = (connect(&server, false).await, connect(&server, true).await);

    let executor = Arc::clone(client.executor());
    let mut told =
        Told { snapshotter, executor, counts: BTreeMap::new(), gauges: BTreeMap::new(), histograms: BTreeMap::new() };

    // Counters begin with zero.
    told.read();
    let zero = |series: &str| told.counts.get(series) == Some(&0);
    for series in ["hand_offs", "renewals", "renewal_failures", "storms_capped", "subscriptions_refused"] {
        assert!(zero(&format!("bowline_{series}_total")), "{series}");
    }
    for label in ["losses_total reason=expired", "losses_total reason=gone", "losses_total reason=revoked"] {
        assert!(zero(&format!("bowline_{label}")), "{label}");
    }
    for label in ["reconnects_total carries=commands", "reconnects_total carries=messages"] {
        assert!(zero(&format!("bowline_{label}")), "{label}");
    }

    // A grant, a refusal of those who do not wait, a timeout, a cancellation.
    let guard = client.lock("a").lock().await.unwrap();
    assert_eq!([told.gauge("bowline_holds"), told.gauge("bowline_waiting")], [1.0, 0.0]);
    assert_eq!(told.times("bowline_wait_seconds operation=lock outcome=granted").len(), 1);
    assert!(client.lock("a").try_lock().await.unwrap().is_none());
    assert_eq!(told.times("bowline_wait_seconds operation=try_lock outcome=busy").len(), 1);
    let waits = client.lock("a").lock().timeout(Duration::from_millis(50)).await;
    assert_eq!(waits.unwrap_err().kind(), bowline::ErrorKind::TimedOut);
    let late = told.times("bowline_wait_seconds operation=lock outcome=timed_out");
    assert!(late.len() == 1 && late[0] >= 0.05, "{late:?}");
    let mut waiting = client.lock("a").lock().into_future();
    assert!(futures::poll!(&mut waiting).is_pending());
    told.eventually("it waits", |told| told.gauge("bowline_waiting") == 1.0).await;
    drop(waiting);
    let cancelled = "bowline_wait_seconds operation=lock outcome=cancelled";
    told.eventually("it was cancelled", |told| told.times(cancelled).len() == 1).await;
    told.eventually("it waits no more", |told| told.gauge("bowline_waiting") == 0.0).await;

    // Renewals, and the end of the hold.
    told.eventually("it is renewed", |told| told.count("bowline_renewals_total") >= 2).await;
    guard.release().await.unwrap();
    assert_eq!(told.gauge("bowline_holds"), 0.0);
    let held = told.times("bowline_hold_seconds operation=lock");
    assert!(held.len() == 1 && held[0] >= 0.2, "two renewals take two thirds of a lease: {held:?}");

    // A hold that becomes another one stays one hold, until its last guard is gone.
    let reading = client.rw_lock("a").upgradable_read().await.unwrap();
    let plain = named.rw_lock("a").read().await.unwrap();
    assert_eq!(told.gauge("bowline_holds"), 2.0);
    let upgrade = tokio::spawn(reading.upgrade());
    told.eventually("it waits", |_| client.stats().waiting == 1).await;
    assert_eq!(
        told.gauge("bowline_holds"),
        2.0,
        "what it asks for besides is no hold yet, and what it has is one still"
    );
    plain.release().await.unwrap();
    let writing = upgrade.await.unwrap().unwrap();
    assert_eq!(told.gauge("bowline_holds"), 1.0);
    assert_eq!(told.times("bowline_hold_seconds operation=upgradable_read").len(), 0);
    writing.release().await.unwrap();
    assert_eq!(told.gauge("bowline_holds"), 0.0);
    assert_eq!(told.times("bowline_hold_seconds operation=upgradable_read").len(), 1);
    assert_eq!(told.times("bowline_hold_seconds operation=upgrade").len(), 0, "the rest is no hold of the caller's");

    // Names, only if they were asked for.
    named.lock("b").lock().await.unwrap().release().await.unwrap();
    assert_eq!(told.times("bowline_wait_seconds name=b operation=lock outcome=granted").len(), 1);
    assert_eq!(told.times("bowline_hold_seconds name=b operation=lock").len(), 1);

    // The second asks for tokens to hand off, because the third waits then.
    let first = client.lock("c").lock().non_fair().await.unwrap();
    let next = async || client.lock("c").lock().non_fair().await.unwrap().release().await.unwrap();
    let ((), (), ()) = tokio::join!(next(), next(), async {
        told.eventually("they wait", |told| told.gauge("bowline_waiting") == 2.0).await;
        first.release().await.unwrap();
    });
    assert_eq!(told.count("bowline_hand_offs_total"), client.stats().passed_on);
    assert_eq!(client.stats().passed_on, 1);

    // A lock that is kept.
    let kept = client.lock("f").retained(Duration::from_millis(100));
    for _ in 0..2 {
        kept.lock().await.unwrap().release().await.unwrap();
    }
    assert_eq!((told.count("bowline_retained_total"), client.stats().retained), (1, 1));

    // A hold over several masters is one: claimed, and taken in turn.
    let servers = [(); 3].map(|()| bowline::embedded::Server::new());
    let mut masters = Vec::new();
    for server in &servers {
        masters.push(server.client(bowline::tokio::Tokio::current().unwrap()).await.unwrap());
    }
    let locks = bowline::RedLock::builder(masters).new_masters(true).build().unwrap();
    let (holds, before) =
        ("bowline_hold_seconds operation=lock", told.times("bowline_hold_seconds operation=lock").len());
    for n in 1..=2 {
        let guard = locks.lock("g").await.unwrap();
        assert_eq!(told.gauge("bowline_holds"), 1.0, "{n}");
        guard.release().await.unwrap();
        assert_eq!((told.gauge("bowline_holds"), told.times(holds).len() - before), (0.0, n));
    }

    // A fixed lease is not renewed, also if the server is asked about it.
    let fixed = client.lock("h").lock().expires_after(Duration::from_secs(60)).await.unwrap();
    let before = told.count("bowline_renewals_total");
    let gaps = client.stats().reconnects;
    redis::cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]).exec(&mut server.client()).unwrap();
    told.eventually("it is connected again", |_| client.stats().reconnects > gaps).await;
    client.executor().sleep(Duration::from_millis(300)).await;
    assert_eq!(told.count("bowline_renewals_total"), before);
    fixed.release().await.unwrap();

    // A latch is waited for, and not held.
    let latch = client.latch("d");
    latch.try_set(1, Duration::from_secs(60)).await.unwrap();
    latch.count_down().await.unwrap();
    latch.wait().await.unwrap();
    assert_eq!(told.times("bowline_wait_seconds operation=wait outcome=granted").len(), 1);

    // Two are inside, and a third does not come in.
    let double = client.double_barrier("i", 2);
    let (one, two) = tokio::join!(double.enter().into_future(), double.enter().into_future());
    assert_eq!(double.enter().await.unwrap_err().kind(), bowline::ErrorKind::OtherParties);
    for (outcome, entered) in [("granted", 2), ("other_parties", 1)] {
        assert_eq!(told.times(&format!("bowline_wait_seconds operation=enter outcome={outcome}")).len(), entered);
    }
    drop((one.unwrap(), two.unwrap()));

    // What is granted and not acknowledged is no hold of the caller's.
    let hasty = Config::builder().retry_timeout(Duration::from_millis(100)).build().unwrap();
    let hasty = bowline::tokio::connect_with(server.url(), hasty).await.unwrap();
    let before = told.times("bowline_hold_seconds operation=lock").len();
    let few = hasty.lock("j").lock().acknowledged_by(1).await.unwrap_err();
    assert_eq!(few.kind(), bowline::ErrorKind::Unacknowledged);
    assert_eq!(told.times("bowline_hold_seconds operation=lock").len(), before);

    // Losses.
    let lost = client.lock("e").lock().await.unwrap();
    client.lock("e").force_release().await.unwrap();
    lost.lost().await;
    told.eventually("it is told", |told| told.count("bowline_losses_total reason=revoked") == 1).await;
    drop(lost);

    // More heartbeats at a time than a client sends.
    let locks: Vec<_> = (0..300).map(|n| client.lock(&format!("storm:{n}"))).collect();
    let holds = join_all(locks.iter().map(|lock| lock.lock().into_future())).await;
    let waiters: Vec<_> =
        (0..300).map(|n| tokio::spawn(named.lock(&format!("storm:{n}")).lock().into_future())).collect();
    told.eventually("all wait", |_| named.stats().waiting == 300).await;
    assert_eq!(told.count("bowline_storms_capped_total"), 0);
    redis::cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]).exec(&mut server.client()).unwrap();
    told.eventually("capped", |told| told.count("bowline_storms_capped_total") >= 1).await;
    // Not at each answer. Both gaps of an interruption ask for all names, and the next connection may fail as well.
    assert!(told.count("bowline_storms_capped_total") <= 4);
    drop(holds);
    join_all(waiters).await.into_iter().for_each(|granted| drop(granted.unwrap().unwrap()));

    // Answers are as old as their way took.
    let lags = told.times("bowline_server_time_lag_seconds");
    assert!(lags.iter().all(|lag| (0.0..60.0).contains(lag)) && lags.contains(&0.0), "{lags:?}");

    // A server that is away, and comes back without its data.
    let _gone = client.lock("f").lock().await.unwrap();
    redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal"]).exec(&mut server.client()).unwrap();
    told.eventually("commands", |told| told.count("bowline_reconnects_total carries=commands") >= 1).await;
    redis::cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]).exec(&mut server.client()).unwrap();
    told.eventually("messages", |told| told.count("bowline_reconnects_total carries=messages") >= 1).await;
    server.pause();
    told.eventually("failures", |told| told.count("bowline_renewal_failures_total") >= 1).await;
    told.eventually("the loss", |told| told.count("bowline_losses_total reason=expired") == 1).await;
    server.resume();
    documented(&told.names());
}

/// The page names all metrics that are told, and no others.
fn documented(told: &BTreeSet<String>) {
    let page = include_str!("../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `bowline_")?.split('`').next());
    let named: BTreeSet<String> = rows.map(|name| format!("bowline_{name}")).collect();
    assert_eq!(named, *told);
}
