//! `bowline`: runs commands under distributed locks on Redis, and shows who holds and who waits.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};
use crate::exit::{FAILED, Failure};

mod args;
mod connect;
mod exit;
mod run;
mod stage;

fn main() -> ExitCode {
    if let Some(code) = stage::of(std::env::args_os()) {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { FAILED.into() } else { ExitCode::SUCCESS };
        }
    };
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::own(format!("cannot start: {error}")))
        .and_then(|runtime| runtime.block_on(work(arguments)));
    match done {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("bowline: {}", failure.message);
            failure.code.into()
        }
    }
}

async fn work(Arguments { servers, verb }: Arguments) -> Result<u8, Failure> {
    match verb {
        Verb::Run(run) => run::run(&servers, run).await,
    }
}
