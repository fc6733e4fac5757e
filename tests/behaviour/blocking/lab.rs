//! Where blocking code runs: beside each runtime, and without one.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bowline::Config;
use bowline::blocking::{Client, connect_with};
use futures::channel::oneshot;

use crate::support::server::Server;

/// Far longer than anything takes, so that only a hang runs into it.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Makes a `#[test]` of each `fn(&Lab)` for each way to be blocking.
macro_rules! everywhere {
    ($($test:ident),+ $(,)?) => {
        $crate::blocking::lab::everywhere! { @ without_a_runtime, Place::NoRuntime, $($test),+ }
        $crate::blocking::lab::everywhere! { @ beside_tokio, Place::Tokio, $($test),+ }
        $crate::blocking::lab::everywhere! { @ beside_tokio_on_one_thread, Place::TokioCurrent, $($test),+ }
        $crate::blocking::lab::everywhere! { @ beside_async_std, Place::AsyncStd, $($test),+ }
        $crate::blocking::lab::everywhere! { @ embedded, Place::Embedded, $($test),+ }
    };
    (@ $module:ident, $place:expr, $($test:ident),+) => {
        mod $module {
            use crate::blocking::lab::{Lab, Place};

            $(
                #[test]
                fn $test() {
                    let lab = Lab::new($place);
                    super::$test(&lab);
                    lab.finish();
                }
            )+
        }
    };
}

pub(crate) use everywhere;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    NoRuntime,
    Tokio,
    TokioCurrent,
    AsyncStd,
    Embedded,
}

pub(crate) struct Lab {
    place: Place,
    server: Option<Server>,
    embedded: bowline::embedded::Server,
    tokio: Option<tokio::runtime::Handle>,
    /// Dropped, the thread that drives the runtime ends.
    driver: Option<(oneshot::Sender<()>, thread::JoinHandle<()>)>,
}

impl Lab {
    pub(crate) fn new(place: Place) -> Self {
        let runtime = match place {
            Place::Tokio => Some(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()),
            Place::TokioCurrent => Some(tokio::runtime::Builder::new_current_thread().enable_all().build()),
            _ => None,
        };
        let runtime = runtime.map(Result::unwrap);
        let tokio = runtime.as_ref().map(|runtime| runtime.handle().clone());
        let driver = runtime.map(|runtime| {
            let (stop, stopped) = oneshot::channel();
            (stop, thread::spawn(move || runtime.block_on(stopped).unwrap_or_default()))
        });
        let server = (place != Place::Embedded).then(Server::start);
        Self { place, server, embedded: bowline::embedded::Server::new(), tokio, driver }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(Duration::from_secs(30))
    }

    /// With that default lease.
    pub(crate) fn client_with(&self, lease: Duration) -> Client {
        let config = Config::builder().lease(lease).command_timeout(Duration::from_secs(5)).build().unwrap();
        let url = self.server.as_ref().map(Server::url);
        let url = url.as_deref();
        match self.place {
            Place::NoRuntime => connect_with(url.unwrap(), config).unwrap(),
            Place::Tokio | Place::TokioCurrent => {
                let connect = bowline::tokio::connect_with(url.unwrap(), config);
                Client::new(self.tokio.as_ref().unwrap().block_on(connect).unwrap())
            }
            Place::AsyncStd => {
                let connect = bowline::async_std::connect_with(url.unwrap(), config);
                Client::new(async_std::task::block_on(connect).unwrap())
            }
            Place::Embedded => {
                let executor = Arc::new(bowline::smol::Smol);
                let connection = Arc::new(self.embedded.connect(executor.clone()));
                Client::new(smol::block_on(bowline::Client::connect(executor, connection, config)).unwrap())
            }
        }
    }

    /// Without the counters of the fencing tokens.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys = match &self.server {
            Some(server) => server.keys(),
            None => self.embedded.dump().into_keys().map(|key| String::from_utf8(key).unwrap()).collect(),
        };
        keys.retain(|key| !key.ends_with(":fence"));
        keys
    }

    pub(crate) fn url(&self) -> String {
        self.server.as_ref().expect("a real server").url()
    }

    /// A latch stays for its time to live, and its calls as long as copies of them may come.
    pub(crate) fn forget_latch(&self) {
        for key in ["bowline:latch:{a}", "bowline:latch:{a}:calls"] {
            match &self.server {
                Some(server) => redis::cmd("DEL").arg(key).exec(&mut server.client()).unwrap(),
                None => drop(self.embedded.eval("return redis.call('DEL', KEYS[1])", &[key.as_bytes()], &[]).unwrap()),
            }
        }
    }

    /// Nothing is left, and no key without a TTL was seen.
    pub(crate) fn finish(self) {
        // Releases that were finished in the background.
        eventually("no key is left", || self.keys().is_empty());
        self.server.into_iter().for_each(Server::finish);
        if let Some((stop, driver)) = self.driver {
            drop(stop);
            driver.join().unwrap();
        }
    }
}

/// Waits until `condition` holds, asking again and again.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "not within {LONG:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
