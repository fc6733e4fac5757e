//! `doctor`: whether the servers are set up as docs/deployments.md asks.

use std::time::Duration;

use bowline::{Client, Config, ConnectOptions, Error, ErrorKind};
use serde::Serialize;
use toml::Table;

use crate::args::Servers;
use crate::args::health::{Check, Doctor};
use crate::connect;
use crate::exit::{Failure, NOT_KNOWN};
use crate::ping::may_list;
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
            Self::Unknown => NOT_KNOWN,
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
    check: Check,
    verdict: Verdict,
    found: String,
}

pub(crate) async fn doctor(servers: &Servers, args: &Doctor) -> Result<u8, Failure> {
    let findings = match connect::settings(servers, Table::new()) {
        // Nothing was found out about a server.
        Err(failure) => vec![Finding::of_all(Check::Connect, Verdict::Unknown, failure.message)],
        Ok(settings) => examine(settings, args).await,
    };
    let findings = accepted(findings, &args.accept);
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Unknown);
    let shown = if args.form.json {
        show::json(&findings)
    } else {
        let style = Style::of_output();
        show::lines(&findings.iter().map(|finding| finding.line(style)).collect::<Vec<_>>())
    };
    shown.map(|()| worst.code()).map_err(|failure| Failure { code: NOT_KNOWN, ..failure })
}

/// What is meant so is well, wherever it was found. Wrong settings of this program cannot be meant so: with them,
/// nothing was found out.
fn accepted(mut findings: Vec<Finding>, accepted: &[Check]) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.verdict > Verdict::Ok) {
        let are_settings = (finding.check, finding.verdict) == (Check::Connect, Verdict::Unknown);
        if accepted.contains(&finding.check) && !are_settings {
            finding.verdict = Verdict::Ok;
            finding.found.push_str(" (accepted)");
        }
    }
    findings
}

async fn examine(settings: (ConnectOptions, Config), args: &Doctor) -> Vec<Finding> {
    let asking = match Asking::connect(settings).await {
        Ok(asking) => asking,
        Err(error) => return vec![cannot_connect(&error)],
    };
    let mut found = asking.servers().await;
    let before: Vec<(bool, Option<i64>)> = found.iter().map(|server| (server.fault.is_some(), server.clock)).collect();
    let client = asking.client(&found).await;
    let mut findings = rights(&client).await;
    for server in &found {
        let all = checks::all(server, asking.is_cluster(), args.lease);
        findings.extend(all.into_iter().map(|(check, verdict, found)| server.finding(check, verdict, found)));
    }
    tokio::time::sleep(args.watch).await;
    asking.read_clocks(&mut found).await;
    if let Ok(Some(client)) = client {
        client.close().await;
    }
    let answered = found.iter().zip(before).filter(|(_, (had_fault, _))| !had_fault);
    findings.extend(answered.map(|(server, (_, before))| match &server.fault {
        Some(fault) => server.finding(Check::Reachable, Verdict::Bad, fault.clone()),
        None => clock(server, before, args.watch),
    }));
    findings
}

/// A server that cannot be used is a finding, and wrong settings of this program say nothing about a server.
fn cannot_connect(error: &Error) -> Finding {
    let verdict = if error.kind() == ErrorKind::InvalidInput { Verdict::Unknown } else { Verdict::Bad };
    Finding::of_all(Check::Connect, verdict, format!("{error:#}"))
}

/// Whether the user has the rights of a client, and those to list names.
async fn rights(client: &Result<Option<Client>, Error>) -> Vec<Finding> {
    let client = match client {
        Ok(Some(client)) => client,
        Ok(None) => {
            let why = "not tried while a server cannot be reached";
            return vec![Finding::of_all(Check::Rights, Verdict::Unknown, why.to_owned())];
        }
        Err(error) => return vec![cannot_connect(error)],
    };
    let can = "the servers can be used, and the user has the rights";
    let (verdict, found) = match may_list(client).await {
        Ok(true) => (Verdict::Ok, "the user may list names".to_owned()),
        Ok(false) => {
            let found = "the user may not list names, so ls, top and deadlocks fail: +scan and +info";
            (Verdict::Warning, found.to_owned())
        }
        Err(error) => (Verdict::Unknown, format!("{error:#}")),
    };
    vec![Finding::of_all(Check::Connect, Verdict::Ok, can.to_owned()), Finding::of_all(Check::Rights, verdict, found)]
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
    server.finding(Check::Clock, verdict, found)
}

impl Server {
    fn finding(&self, check: Check, verdict: Verdict, found: String) -> Finding {
        Finding { server: Some(self.address.clone()), check, verdict, found }
    }
}

impl Finding {
    /// Of no server in particular.
    fn of_all(check: Check, verdict: Verdict, found: String) -> Self {
        Self { server: None, check, verdict, found }
    }

    fn line(&self, style: Style) -> String {
        let server = self.server.as_ref().map_or_else(String::new, |server| format!("{}: ", clean(server)));
        format!("{}  {:<12} {server}{}", self.verdict.shown(style), self.check.name(), clean(&self.found))
    }
}
