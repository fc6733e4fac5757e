//! Those who take turns at a pair: bowline, and bare connections that call scripts.

use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline_benches::Result;
use bowline_benches::bare::{BareConnection, ScriptCall};
use bowline_benches::measure::Samples;
use bowline_benches::watched::Recorded;

use crate::pairs::Free;
use crate::scripts::Peer;

/// Rounds before the first one that counts.
const WARM_UP: u32 = 100;

/// A bare connection, and what it calls for a pair.
pub(crate) struct Bare {
    connection: BareConnection,
    calls: Calls,
    samples: Samples,
}

enum Calls {
    /// Those of a script that does nothing.
    Floor(Vec<ScriptCall>),
    Of(Peer),
}

impl Bare {
    pub(crate) fn floor(connection: BareConnection, sent: &[Recorded]) -> Self {
        let calls = Calls::Floor(connection.floor_of(sent));
        Self { connection, calls, samples: Samples::default() }
    }

    pub(crate) fn new(connection: BareConnection, peer: Peer) -> Self {
        Self { connection, calls: Calls::Of(peer), samples: Samples::default() }
    }

    /// Makes the calls of the `n`th pair, and returns how long they took. A script's words are put together before
    /// that.
    pub(crate) async fn pair(&mut self, n: u64) -> Result<Duration> {
        let calls = match &self.calls {
            Calls::Floor(calls) => Cow::Borrowed(&calls[..]),
            Calls::Of(peer) => Cow::Owned(peer.pair(n)),
        };
        let start = Instant::now();
        self.connection.run(&calls).await?;
        Ok(start.elapsed())
    }

    pub(crate) fn percentile(&mut self, percent: f64) -> f64 {
        self.samples.percentile(percent)
    }
}

/// As many rounds as `pairs`, in each of which every side has one turn. The samples of `bare` stay there; bowline's are
/// returned.
///
/// The order is drawn anew for each round. A turn is faster after one of the same kind, whose code is in the caches and
/// whose threads are still awake, so no side may follow another one more often than the rest.
pub(crate) async fn take_turns<'a>(
    free: &Free,
    bare: impl IntoIterator<Item = &'a mut Bare>,
    pairs: u32,
) -> Result<Samples> {
    let mut bare: Vec<_> = bare.into_iter().collect();
    let mut ours = Samples::default();
    let mut order: Vec<usize> = (0..=bare.len()).collect();
    let mut random = fastrand::Rng::with_seed(1);
    // Redisson's scripts recognise the number of an earlier run for 13 seconds, and then do nothing.
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64 * 1000;
    for n in 0..WARM_UP + pairs {
        random.shuffle(&mut order);
        for &side in &order {
            let (samples, took) = match bare.get_mut(side) {
                Some(side) => {
                    let took = side.pair(first + u64::from(n)).await?;
                    (&mut side.samples, took)
                }
                None => {
                    let start = Instant::now();
                    free.pair().await?;
                    (&mut ours, start.elapsed())
                }
            };
            if n >= WARM_UP {
                samples.add(took);
            }
        }
    }
    Ok(ours)
}
