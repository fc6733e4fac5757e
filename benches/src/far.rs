//! A server that is far away: each request reaches it later.

use std::fmt;
use std::time::Duration;

use bowline_testkit::proxy::Proxy;

use crate::Result;
use crate::measure::Samples;
use crate::server::Server;

/// A server behind a proxy that delays requests.
pub struct Far {
    proxy: Proxy,
    by: Duration,
}

impl Far {
    /// The server of `url`, as if its requests travelled for that time.
    pub fn from(url: &str, by: Duration) -> Result<Self> {
        let proxy = Proxy::start(port(url)?);
        proxy.delay(by);
        Ok(Self { proxy, by })
    }

    /// What clients connect to.
    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// The same, for what takes a server.
    pub fn server(&self) -> Server {
        Server::at(self.url())
    }

    /// The median of the samples, in round trips.
    pub fn round_trips(&self, mut samples: Samples) -> f64 {
        samples.percentile(50.0) / self.by.as_secs_f64() / 1e6
    }
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Far").field("url", &self.url()).field("by", &self.by).finish()
    }
}

fn port(url: &str) -> Result<u16> {
    match redis::IntoConnectionInfo::into_connection_info(url)?.addr() {
        redis::ConnectionAddr::Tcp(_, port) => Ok(*port),
        other => Err(format!("the server is not reached by TCP: {other}").into()),
    }
}
