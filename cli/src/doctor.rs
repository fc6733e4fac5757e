//! `doctor`: whether the servers are set up as docs/deployments.md asks.

use std::time::Duration;

use serde::Serialize;

use crate::args::Servers;
use crate::args::health::Doctor;
use crate::exit::Failure;
use crate::ping::may_list_names;
use crate::servers::{Asking, Server};
use crate::show::{self, Style, clean};

mod checks;

/// Worse ones are larger, but for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Ok,
    Unknown,
    Warning,
    Bad,
}

impl Verdict {
    /// As plugins of monitors exit.
    fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Bad => 2,
            Self::Unknown => 3,
        }
    }

    fn shown(self, style: Style) -> String {
        match self {
            Self::Ok => style.green("ok     "),
            Self::Unknown => style.yellow("unknown"),
            Self::Warning => style.yellow("warning"),
            Self::Bad => style.red("bad    "),
        }
    }
}

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    server: Option<String>,
    check: &'static str,
    verdict: Verdict,
    found: String,
}

pub(crate) async fn doctor(servers: &Servers, args: &Doctor) -> Result<u8, Failure> {
    let findings = match examine(servers, args).await {
        Ok(findings) => findings,
        // A server that cannot be used is a finding, also for monitors.
        Err(failure) => vec![Finding { server: None, check: "connect", verdict: Verdict::Bad, found: failure.message }],
    };
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Unknown);
    if args.form.json {
        show::json(&findings)?;
    } else {
        let style = Style::of_output();
        show::lines(&findings.iter().map(|finding| finding.line(style)).collect::<Vec<_>>())?;
    }
    Ok(worst.code())
}

async fn examine(servers: &Servers, args: &Doctor) -> Result<Vec<Finding>, Failure> {
    let asking = Asking::connect(servers).await?;
    let mut found = asking.servers().await;
    let before: Vec<Option<i64>> = found.iter().map(|server| server.clock).collect();
    let mut findings = vec![Finding {
        server: None,
        check: "connect",
        verdict: Verdict::Ok,
        found: "the servers can be used, and the user has the rights".to_owned(),
    }];
    findings.push(listing(may_list_names(&asking).await?));
    for server in &found {
        let all = checks::all(server, asking.is_cluster(), args.lease);
        findings.extend(all.into_iter().map(|(check, verdict, found)| Finding {
            server: Some(server.address.clone()),
            check,
            verdict,
            found,
        }));
    }
    tokio::time::sleep(args.watch).await;
    found.iter_mut().for_each(Server::forget_clock);
    for _ in 0..3 {
        asking.read_clocks(&mut found).await;
    }
    findings.extend(found.iter().zip(before).map(|(server, before)| clock(server, before, args.watch)));
    asking.client.close().await;
    for finding in &mut findings {
        if finding.verdict > Verdict::Ok && args.accept.iter().any(|check| check == finding.check) {
            finding.verdict = Verdict::Ok;
            finding.found.push_str(" (accepted)");
        }
    }
    Ok(findings)
}

fn listing(may: bool) -> Finding {
    let (verdict, found) = match may {
        true => (Verdict::Ok, "the user may list names"),
        false => (Verdict::Warning, "the user may not list names, so ls, top and deadlocks fail: +scan and +info"),
    };
    Finding { server: None, check: "rights", verdict, found: found.to_owned() }
}

/// Whether the clock has moved against that of this machine.
fn clock(server: &Server, before: Option<i64>, watched: Duration) -> Finding {
    /// More than the noise of a busy network.
    const STEP_MS: i64 = 50;
    let (verdict, found) = match (before, server.clock) {
        (Some(before), Some(now)) if (now - before).abs() > STEP_MS => {
            let found = format!("moved by {} ms within {watched:?}: slew clocks, and do not step them", now - before);
            (Verdict::Warning, found)
        }
        (Some(_), Some(now)) => (Verdict::Ok, format!("steady for {watched:?}, {now} ms ahead of this machine")),
        _ => (Verdict::Unknown, "the clock could not be read".to_owned()),
    };
    Finding { server: Some(server.address.clone()), check: "clock", verdict, found }
}

impl Finding {
    fn line(&self, style: Style) -> String {
        let server = self.server.as_ref().map_or_else(String::new, |server| format!("{}: ", clean(server)));
        format!("{}  {:<12} {server}{}", self.verdict.shown(style), self.check, clean(&self.found))
    }
}
