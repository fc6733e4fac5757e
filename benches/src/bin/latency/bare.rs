//! What a client of the lock could take at best: the same scripts on a bare connection of redis-rs, beside the floor.

use std::sync::Arc;
use std::time::Instant;

use bowline::Executor;
use bowline_benches::Result;
use bowline_benches::floor::Floor;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;

use crate::Metrics;
use crate::redisson::Kind;
use crate::scripts::Peer;

/// Pairs before the first that counts.
const WARM_UP: u32 = 100;

/// Scripts that do nothing come twice: the first are the floor, and the ratio of the second shows the noise.
pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    pairs: u32,
) -> Result<Metrics> {
    let peers = [
        ("floor_p50_us", Peer::nothing(&mut probe)?),
        ("again_ratio_p50", Peer::nothing(&mut probe)?),
        ("bowline_ratio_p50", Peer::bowline(&mut probe, Kind::Lock, "lock")?),
        ("redisson_ratio_p50", Peer::redisson(&mut probe, Kind::Lock, "lock")?),
    ];
    let mut sides = Vec::new();
    for (metric, peer) in peers {
        sides.push((metric, peer, Floor::open(runtime, &executor, &url).await?, Samples::default()));
    }
    for n in 0..WARM_UP + pairs {
        for (_, peer, connection, samples) in &mut sides {
            let commands = peer.commands(n.into());
            let start = Instant::now();
            connection.send(&commands).await?;
            if n >= WARM_UP {
                samples.add(start.elapsed());
            }
        }
    }
    let floor = sides[0].3.percentile(50.0);
    let ratios = sides[1..].iter_mut().map(|(metric, .., samples)| (*metric, samples.percentile(50.0) / floor));
    Ok([("floor_p50_us", floor)].into_iter().chain(ratios).collect())
}
