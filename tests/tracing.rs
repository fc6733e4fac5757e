//! What the feature `tracing` tells, and what `Client::stats` counts.
#![cfg(all(feature = "tokio", feature = "tracing"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config};
use support::fake::{Fake, Wrong};
use support::proxy::Proxy;
use support::server::Server;
use tracing::field::{Empty, Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Instrument, Metadata, Subscriber};
use tracing_core::span::Current;

type Fields = BTreeMap<String, String>;

/// Keeps the spans and events of bowline.
#[derive(Clone, Default)]
struct Heard {
    spans: Arc<Mutex<BTreeMap<u64, Fields>>>,
    events: Arc<Mutex<Vec<Fields>>>,
    last: Arc<AtomicU64>,
    /// The spans that are entered. The tests have one thread.
    entered: Arc<Mutex<Vec<(Id, &'static Metadata<'static>)>>>,
    known: Arc<Mutex<BTreeMap<u64, &'static Metadata<'static>>>>,
    /// Only what is of this target, and of those within it.
    target: &'static str,
}

struct Collect<'a>(&'a mut Fields);

impl Visit for Collect<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.target)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = Fields::from([("span".to_owned(), span.metadata().name().to_owned())]);
        span.record(&mut Collect(&mut fields));
        self.spans.lock().unwrap().insert(id, fields);
        self.known.lock().unwrap().insert(id, span.metadata());
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Collect(self.spans.lock().unwrap().get_mut(&span.into_u64()).unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::from([("level".to_owned(), event.metadata().level().to_string())]);
        event.record(&mut Collect(&mut fields));
        self.events.lock().unwrap().push(fields);
    }

    fn enter(&self, span: &Id) {
        let metadata = self.known.lock().unwrap()[&span.into_u64()];
        self.entered.lock().unwrap().push((span.clone(), metadata));
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }

    fn current_span(&self) -> Current {
        let entered = self.entered.lock().unwrap();
        entered.last().map_or_else(Current::none, |(id, metadata)| Current::new(id.clone(), metadata))
    }
}

impl Heard {
    /// Behind how many others each acquisition was queued.
    fn waits(&self) -> Vec<String> {
        let spans = self.spans.lock().unwrap();
        spans.values().filter_map(|span| span.get("waiters_before").cloned()).collect()
    }

    fn events(&self, message: &str) -> Vec<Fields> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event["message"].contains(message)).cloned().collect()
    }

    async fn event(&self, message: &str) -> Fields {
        eventually(message, || !self.events(message).is_empty()).await;
        self.events(message).remove(0)
    }
}

async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

async fn client(server: &Server) -> Client {
    let config = Config::builder().lease(Duration::from_secs(3)).command_timeout(Duration::from_millis(300));
    bowline::tokio::connect_with(&server.user_url(), config.build().unwrap()).await.unwrap()
}

/// On one thread, so that the subscriber of the thread hears everything.
fn hearing<F: Future>(test: impl FnOnce(Heard) -> F) {
    hearing_of("bowline", test);
}

fn hearing_of<F: Future>(target: &'static str, test: impl FnOnce(Heard) -> F) {
    let heard = Heard { target, ..Heard::default() };
    let _guard = tracing::subscriber::set_default(heard.clone());
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test(heard));
}

#[test]
fn acquisitions_are_spans_and_losses_events() {
    hearing(|heard| async move {
        let server = Server::start();
        let client = client(&server).await;
        let guard = client.lock("orders").lock().non_fair().await.unwrap();
        assert!(client.lock("orders").try_lock().await.unwrap().is_none());
        client.lock("orders").force_release().await.unwrap();
        guard.lost().await;
        let lost = heard.event("a lease was lost").await;
        assert_eq!((&*lost["level"], &*lost["name"]), ("WARN", "\"orders\""));
        let spans: Vec<Fields> = heard.spans.lock().unwrap().values().cloned().collect();
        let operations: Vec<&str> = spans.iter().map(|span| &*span["operation"]).collect();
        assert_eq!(operations, ["\"lock\"", "\"try_lock\""]);
        for (span, fair) in spans.iter().zip(["false", "true"]) {
            assert_eq!((&*span["span"], &*span["name"], &*span["fair"]), ("acquire", "\"orders\"", fair));
            assert!(span["waited_us"].parse::<u64>().unwrap() > 0);
        }
        // The log does not contain enough to act as the client.
        let told = format!("{spans:?} {:?}", heard.events.lock().unwrap());
        assert!(!told.contains(&client.id().to_string()) && !told.contains("secret"), "{told}");
        drop(guard);
        client.close().await;
        server.finish();
    });
}

#[test]
fn the_span_of_a_wait_says_behind_how_many_and_where() {
    hearing(|heard| async move {
        let server = Server::start();
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(client(&server).await);
        }
        let guard = clients[0].lock("orders").lock().await.unwrap();
        let mut waiters = Vec::new();
        for (before, client) in clients[1..].iter().enumerate() {
            waiters.push(tokio::spawn(client.lock("orders").lock().into_future()));
            eventually("it is queued", || heard.waits().len() > before).await;
        }
        guard.release().await.unwrap();
        for waiter in waiters {
            waiter.await.unwrap().unwrap().release().await.unwrap();
        }
        assert_eq!(heard.waits(), ["0", "1"]);
        let port = server.port().to_string();
        for span in heard.spans.lock().unwrap().values() {
            let server = ["db.system.name", "server.address", "server.port"].map(|field| &*span[field]);
            assert_eq!(server, ["\"redis\"", "127.0.0.1", &port]);
        }
        for client in clients {
            client.close().await;
        }
        server.finish();
    });
}

/// The application may log its own spans only, or those of bowline as well. A call that is no acquisition is made in
/// the application's span.
#[test]
fn spans_of_the_application_are_left_alone() {
    for target in ["tracing", ""] {
        hearing_of(target, |heard| async move {
            let server = Server::start();
            let client = client(&server).await;
            let own = tracing::info_span!("own", server.address = Empty, server.port = Empty, waiters_before = Empty);
            let work = async {
                client.lock("orders").lock().await.unwrap().release().await.unwrap();
                assert_eq!(client.lock("orders").inspect().await.unwrap().waiters, 0);
            };
            work.instrument(own).await;
            let spans: Vec<Fields> = heard.spans.lock().unwrap().values().cloned().collect();
            let own: Vec<&Fields> = spans.iter().filter(|span| span["span"] == "own").collect();
            assert_eq!(own, [&Fields::from([("span".to_owned(), "own".to_owned())])]);
            let others = spans.iter().filter(|span| span["span"] == "acquire").count();
            assert_eq!(others, usize::from(target.is_empty()));
            client.close().await;
            server.finish();
        });
    }
}

#[test]
fn renewals_that_fail_and_reconnects_are_events() {
    hearing(|heard| async move {
        let mut server = Server::start();
        let client = client(&server).await;
        let guard = client.lock("orders").lock().await.unwrap();
        server.kill();
        let failed = heard.event("not renewed").await;
        assert_eq!((&*failed["level"], &*failed["leases"]), ("WARN", "1"));
        server.restart();
        let reconnected = heard.event("reconnected").await;
        assert_eq!(reconnected["level"], "INFO");
        eventually("both connections stand again", || client.stats().reconnects >= 2).await;
        let carries: Vec<String> =
            heard.events("reconnected").into_iter().map(|event| event["carries"].clone()).collect();
        assert!(
            carries.contains(&"\"commands\"".to_owned()) && carries.contains(&"\"messages\"".to_owned()),
            "{carries:?}"
        );
        guard.lost().await;
        assert_eq!((client.stats().held, client.stats().lost), (0, 1));
        client.close().await;
        server.finish();
    });
}

/// The name is that of something else by the time, or the client is closed before the task could run.
#[test]
fn permits_that_are_not_given_back_are_events() {
    hearing(|heard| async move {
        let server = Server::start();
        server.allow_forever("java:s");
        let config = Config::builder().command_timeout(Duration::from_secs(2)).build().unwrap();
        let client = bowline::tokio::connect_with(&server.url(), config).await.unwrap();
        let semaphore = client.redisson().semaphore("java:s");
        assert!(semaphore.try_set_permits(5).await.unwrap());
        let (given, wrong, closed) = (
            semaphore.acquire().await.unwrap(),
            semaphore.acquire_many(2).await.unwrap(),
            semaphore.acquire_many(1).await.unwrap(),
        );
        drop(given);
        while semaphore.available().await.unwrap() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(heard.events("not given back").is_empty());
        redis::cmd("SET").arg("java:s").arg("x").exec(&mut server.client()).unwrap();
        drop(wrong);
        let told = heard.event("not given back").await;
        assert_eq!((&*told["level"], &*told["name"], &*told["permits"]), ("WARN", "\"java:s\"", "2"));
        assert!(told["why"].contains("java:s") && !told["why"].contains(":call:"), "{told:?}");
        client.close().await;
        drop(closed);
        eventually("it is told", || heard.events("not given back").len() == 2).await;
        let told = heard.events("not given back").remove(1);
        assert!(told["permits"] == "1" && told["why"].contains("closed"), "{told:?}");
        redis::cmd("DEL").arg("java:s").exec(&mut server.client()).unwrap();
        server.finish();
    });
}

#[test]
fn attempts_to_connect_in_the_background_are_events() {
    hearing(|heard| async move {
        let mut server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
        let url = server.user_url();
        server.kill();
        let config = Config::builder().connect_in_background(true).build().unwrap();
        let client = bowline::tokio::connect_with(&url, config).await.unwrap();
        let failed = heard.event("not connected yet").await;
        assert_eq!(failed["level"], "WARN");
        assert!(failed["why"].contains("connection refused") && !failed["why"].contains("secret"), "{failed:?}");
        // More attempts fail meanwhile, for the same reason.
        assert!(client.lock("a").lock().timeout(Duration::from_secs(1)).await.is_err());
        server.restart();
        assert_eq!(heard.event("connected in the background").await["level"], "INFO");
        heard.event("the server's setup endangers locks").await;
        let reasons: Vec<String> =
            heard.events("not connected yet").into_iter().map(|event| event["why"].clone()).collect();
        assert!(reasons.windows(2).all(|pair| pair[0] != pair[1]), "told again: {reasons:?}");
        client.close().await;
    });
}

#[test]
fn warnings_about_the_setup_are_events() {
    hearing(|heard| async move {
        let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
        let config = Config::builder().lease(Duration::from_secs(3)).command_timeout(Duration::from_secs(2));
        let client = bowline::tokio::connect_with(&server.user_url(), config.build().unwrap()).await.unwrap();
        let told = heard.events("setup endangers locks");
        assert!(told.iter().all(|event| event["level"] == "WARN"), "{told:?}");
        let what: Vec<&str> = told.iter().map(|event| &*event["what"]).collect();
        assert_eq!(what, client.warnings().iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(what.len() == 2 && what[0].contains("allkeys-lru") && what[1].contains("command_timeout"), "{what:?}");
        client.close().await;
        server.finish();
    });
}

/// A server may quote the login that it refuses.
#[test]
fn a_login_that_is_refused_later_is_told_without_the_password() {
    hearing(|heard| async move {
        let server = Server::start();
        let rule = ["SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all"];
        redis::cmd("ACL").arg(&rule).exec(&mut server.client()).unwrap();
        let fake = Fake::start(Wrong::Login("-DENIED AUTH alice s3cret\r\n"));
        let proxy = Proxy::start(server.port());
        let url = proxy.url().replace("://", "://alice:s3cret@");
        let config = Config::builder().lease(Duration::from_secs(3)).command_timeout(Duration::from_millis(300));
        let client = bowline::tokio::connect_with(&url, config.build().unwrap()).await.unwrap();
        let guard = client.lock("orders").lock().await.unwrap();
        proxy.lead_to(fake.port());
        proxy.cut();
        let told = [heard.event("refused the subscription").await, heard.event("not renewed").await];
        assert!(told.iter().all(|event| event["level"] == "WARN" && event["why"].contains("DENIED")), "{told:?}");
        let (spans, events) = (heard.spans.lock().unwrap().clone(), heard.events.lock().unwrap().clone());
        let error = client.lock("other").try_lock().await.unwrap_err();
        let told = format!("{spans:?} {events:?} {error} {error:?} {client:?} {guard:?}");
        assert!(!told.contains("s3cret"), "{told}");
        proxy.lead_to(server.port());
        eventually("both connections stand again", || client.stats().reconnects >= 2).await;
        drop(guard);
        client.close().await;
        server.finish();
    });
}

#[test]
fn stats_count_what_a_client_does() {
    hearing(|_| async move {
        let server = Server::start();
        let (client, other) = (client(&server).await, client(&server).await);
        assert_eq!(client.stats(), Default::default());
        let guard = client.lock("a").lock().non_fair().await.unwrap();
        let lock = client.lock("a");
        let line = tokio::spawn({
            let lock = lock.clone();
            async move { lock.lock().non_fair().await.unwrap().release().await.unwrap() }
        });
        let second = tokio::spawn(async move { lock.lock().non_fair().await.unwrap().release().await.unwrap() });
        eventually("they wait", || client.stats().waiting == 2).await;
        assert_eq!((client.stats().held, client.stats().acquired), (1, 1));
        eventually("the lease is renewed", || client.stats().renewals > 0).await;
        guard.release().await.unwrap();
        line.await.unwrap();
        second.await.unwrap();
        let stats = client.stats();
        assert_eq!((stats.held, stats.waiting, stats.acquired, stats.lost), (0, 0, 3, 0));
        assert_eq!(stats.passed_on, 1, "one queues up in Redis, and passes on to the other");
        let lost = client.semaphore("s", 1).acquire().expires_after(Duration::from_millis(200)).await.unwrap();
        lost.lost().await;
        assert_eq!((client.stats().lost, other.stats().acquired), (1, 0));
        drop(lost);
        for client in [client, other] {
            client.close().await;
            assert_eq!(client.stats().lost, u64::from(client.stats().acquired > 0), "closing loses nothing");
        }
        server.finish();
    });
}
