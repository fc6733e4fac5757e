//! The picture: bowline beside its peers, as ratios of one run.

use bowline_benches::Result;
use bowline_benches::chart::{self, Panel};
use bowline_benches::report::Report;

use crate::peer::Peer;

/// The tasks of the cases that are shown.
const TASKS: &str = "1x64";

/// Four metrics of all locks. Times and rates are relative to bowline's fair lock, because they mean nothing on another
/// machine; commands are counts. Without every lock there is no picture, but Redisson may be missing.
pub(crate) fn draw(report: &Report) -> Result<()> {
    let measured = |peer: &Peer| report.get(&format!("{TASKS}-{}", peer.name()), "commands").is_some();
    let peers: Vec<Peer> = Peer::ALL.into_iter().filter(|peer| !peer.is_redisson() || measured(peer)).collect();
    let values = |what: &str, metric: &str| -> Option<Vec<f64>> {
        peers.iter().map(|peer| report.get(&format!("{what}-{}", peer.name()), metric)).collect()
    };
    let to_bowline = |values: Vec<f64>| values.iter().map(|value| value / values[0]).collect();
    let Some(free) = values("pair", "p50_us").map(to_bowline) else { return Ok(()) };
    let Some(rate) = values(TASKS, "acquisitions_per_second").map(to_bowline) else { return Ok(()) };
    let Some(wait) = values(TASKS, "wait_p99_us").map(to_bowline) else { return Ok(()) };
    let Some(commands) = values(TASKS, "commands") else { return Ok(()) };
    let panels = [
        ("free lock, time", free),
        ("64 tasks, rate", rate),
        ("64 tasks, wait (p99)", wait),
        ("64 tasks, commands", commands),
    ];
    let panels = panels.map(|(title, values)| Panel { title: title.to_owned(), values });
    let ours = peers.iter().take_while(|peer| peer.is_ours()).count();
    let title =
        "One lock, empty sections. Times and rates are multiples of bowline (fair); commands are per acquisition.";
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    chart::panels("peers", title, &names, ours, &panels)
}
