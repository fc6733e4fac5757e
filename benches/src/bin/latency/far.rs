//! A server that is far away: what its requests cost is counted in round trips.

use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::measure::Samples;
use bowline_testkit::proxy::Proxy;

/// How long a request takes. The time of everything else is small beside it.
const FAR: Duration = Duration::from_millis(20);

pub(crate) struct Far(Proxy);

impl Far {
    /// The server of `url`, as if it were far away.
    pub(crate) fn from(url: &str) -> Result<Self> {
        let proxy = Proxy::start(port(url)?);
        proxy.delay(FAR);
        Ok(Self(proxy))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// The median of the samples.
    pub(crate) fn round_trips(&self, mut samples: Samples) -> f64 {
        samples.percentile(50.0) / FAR.as_secs_f64() / 1e6
    }
}

fn port(url: &str) -> Result<u16> {
    match redis::IntoConnectionInfo::into_connection_info(url)?.addr() {
        redis::ConnectionAddr::Tcp(_, port) => Ok(*port),
        other => Err(format!("the server is not reached by TCP: {other}").into()),
    }
}
