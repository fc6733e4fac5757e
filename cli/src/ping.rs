//! `ping`: which servers answer, and what bowline would warn of.

use std::time::Duration;

use bowline::{Client, ErrorKind, PrimitiveKind};
use serde::Serialize;
use toml::Table;

use crate::args::Servers;
use crate::args::health::Ping;
use crate::connect;
use crate::exit::{FAILED, Failure, NO, OK};
use crate::servers::{Asking, Server};
use crate::show::{self, Style, clean};

#[derive(Debug, Serialize)]
struct Shown {
    servers: Vec<Primary>,
    /// Whether the user may list names, as ls, top and deadlocks do. Not tried while a server has a fault.
    may_list_names: Option<bool>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Primary {
    address: String,
    /// Why it cannot be used.
    error: Option<String>,
    version: Option<String>,
    role: Option<String>,
    replicas: Option<u64>,
    eviction: Option<String>,
    user: Option<String>,
    latency_us: Option<u64>,
    clock_difference_ms: Option<i64>,
}

pub(crate) async fn ping(servers: &Servers, Ping { form }: &Ping) -> Result<u8, Failure> {
    let settings = connect::settings(servers, Table::new())?;
    let asking = Asking::connect(settings).await.map_err(|error| {
        let code = if error.kind() == ErrorKind::Unavailable { NO } else { FAILED };
        Failure { code, ..error.into() }
    })?;
    let servers = asking.servers().await;
    let (mut warnings, mut may_list_names) = (Vec::new(), None);
    if let Some(client) = asking.client(&servers).await? {
        warnings.extend(client.warnings().iter().map(ToString::to_string));
        may_list_names = Some(may_list(&client).await?);
        client.close().await;
    }
    let is_well = servers.iter().all(|server| server.fault.is_none());
    let shown = Shown { servers: servers.iter().map(Primary::from).collect(), may_list_names, warnings };
    if form.json {
        show::json(&shown)?;
    } else {
        show::lines(&shown.lines(Style::of_output()))?;
    }
    Ok(if is_well { OK } else { NO })
}

/// Whether the user may list names. Asks for a page of them.
pub(crate) async fn may_list(client: &Client) -> bowline::Result<bool> {
    match client.names().of_kind(PrimitiveKind::Lock).next_page().await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Denied => Ok(false),
        Err(error) => Err(error),
    }
}

impl From<&Server> for Primary {
    fn from(server: &Server) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            address: server.address.clone(),
            error: server.fault.clone(),
            version: server.version(),
            role: server.info("role").map(str::to_owned),
            replicas: server.number("connected_slaves"),
            eviction: server.eviction().map(str::to_owned),
            user: server.user.clone(),
            latency_us: server.latency.map(micros),
            clock_difference_ms: server.clock,
        }
    }
}

impl Shown {
    fn lines(&self, style: Style) -> Vec<String> {
        let or = |text: &Option<String>| text.as_deref().map_or_else(|| "unknown".to_owned(), clean);
        let mut lines = Vec::new();
        for server in &self.servers {
            lines.push(style.bold(&clean(&server.address)));
            if let Some(error) = &server.error {
                lines.push(format!("  {}      {}", style.red("error"), clean(error)));
                continue;
            }
            lines.push(format!("  server     {}, {}", or(&server.version), or(&server.role)));
            let replicas = server.replicas.map_or_else(|| "unknown".to_owned(), |replicas| replicas.to_string());
            lines.push(format!("  replicas   {replicas}"));
            lines.push(format!("  eviction   {}", or(&server.eviction)));
            lines.push(format!("  user       {}", or(&server.user)));
            let latency = server.latency_us.map(|latency| format!("{latency} us"));
            lines.push(format!("  latency    {}", or(&latency)));
            let clock = server.clock_difference_ms.map(|clock| format!("{clock} ms ahead of this machine"));
            lines.push(format!("  clock      {}", or(&clock)));
        }
        let list = match self.may_list_names {
            Some(true) => "all, also to list names",
            Some(false) => "all, but not to list names (+scan)",
            None => "unknown: not tried while a server has an error",
        };
        lines.push(format!("rights       {list}"));
        lines
            .extend(self.warnings.iter().map(|warning| format!("{}      {}", style.yellow("warning"), clean(warning))));
        lines
    }
}
