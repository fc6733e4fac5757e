//! `bowline`: runs commands under distributed locks on Redis, and shows who holds and who waits.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::process::ExitCode;

use bowline::Client;
use clap::Parser;

use crate::args::{Arguments, Servers, Verb};
use crate::exit::Failure;

mod args;
mod connect;
mod deadlocks;
mod doctor;
mod exit;
mod generate;
mod inspect;
mod latch;
mod leader;
mod ls;
mod ping;
mod release;
mod run;
mod servers;
mod show;
mod stage;
#[cfg(feature = "top")]
mod top;
mod views;
mod watch;

fn main() -> ExitCode {
    if let Some(code) = stage::of(std::env::args_os()) {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            show::complain(args::explain(&error, std::env::args_os()).trim_end());
            return args::code_of_misuse(std::env::args_os()).into();
        }
    };
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::own(format!("cannot start: {error}")))
        .and_then(|runtime| {
            let done = runtime.block_on(work(arguments));
            // Dropping the runtime would wait for a name lookup without an answer, while no signal ends the program.
            runtime.shutdown_background();
            done
        });
    match done {
        Ok(code) => code.into(),
        Err(failure) => {
            show::complain(&format!("bowline: {}", failure.message));
            failure.code.into()
        }
    }
}

async fn work(Arguments { mut servers, verb }: Arguments) -> Result<u8, Failure> {
    match verb {
        Verb::Run(run) => run::run(&servers, run).await,
        Verb::Completions { shell } => generate::completions(shell),
        Verb::Generate { folder } => generate::all(&folder),
        Verb::Ping(ping) => ping::ping(&servers, &ping).await,
        Verb::Doctor(doctor) => {
            servers.url = doctor.servers.clone().or(servers.url);
            doctor::doctor(&servers, &doctor).await
        }
        verb => {
            let client = connect::connect(&servers, connect::client("")).await?;
            let done = look(&client, &servers, verb).await;
            client.close().await;
            done
        }
    }
}

/// What reads and changes the state of names.
async fn look(client: &Client, servers: &Servers, verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Inspect(inspect) => inspect::inspect(client, &inspect).await,
        Verb::Watch(args) => watch::watch(client, &args).await,
        Verb::Ls(ls) => ls::ls(client, &ls).await,
        Verb::Release(release) => release::release(client, &release).await,
        Verb::Deadlocks(deadlocks) => deadlocks::deadlocks(client, servers, &deadlocks).await,
        Verb::Leader(leader) => leader::leader(client, &leader).await,
        Verb::Latch(verb) => latch::latch(client, &verb).await,
        #[cfg(feature = "top")]
        Verb::Top(args) => top::top(client, &args).await,
        other => Err(Failure::own(format!("not a look: {other:?}"))),
    }
}
