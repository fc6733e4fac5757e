//! How long `bowline run` takes from its start to that of the command, beside `redis-cli ping` and the command alone.
//!
//! `cargo build --release -p bowline-cli && cargo run -p bowline-cli --example start -- target/release/bowline
//! redis://127.0.0.1:6379/`
#![allow(clippy::disallowed_methods, reason = "a bench has clocks of its own")]

use std::error::Error;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const RUNS: usize = 200;

/// The median and the 90th percentile, in milliseconds.
fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    format!("{:6.2} ms median, {:6.2} ms 90 %", at(50), at(90))
}

/// How long the program takes until it has written the time, in nanoseconds since 1970.
fn until_command(program: &str, arguments: &[&str]) -> Result<Duration, Box<dyn Error>> {
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let output = Command::new(program).args(arguments).output()?;
    let written: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Duration::from_nanos(written).saturating_sub(began))
}

/// How long the program takes to its end.
fn until_end(program: &str, arguments: &[&str]) -> Result<Duration, Box<dyn Error>> {
    let began = SystemTime::now();
    Command::new(program).args(arguments).output()?;
    Ok(began.elapsed()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(bowline), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: start <bowline> <redis://host:port/>".into());
    };
    let run = ["--url", &url, "run", "start", "--", "date", "+%s%N"];
    let (mut alone, mut ping, mut command, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // One after the other, so that all have the same machine.
    for _ in 0..RUNS {
        alone.push(until_command("date", &["+%s%N"])?);
        ping.push(until_end("redis-cli", &["-u", &url, "ping"])?);
        command.push(until_command(&bowline, &run)?);
        whole.push(until_end(&bowline, &run)?);
    }
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64()
    };
    let ratio = median(&command) / median(&ping).max(f64::EPSILON);
    println!("the command alone, to its first line   {}", shown(alone));
    println!("redis-cli ping, to its end             {}", shown(ping));
    println!("bowline run, to the command's line     {}, {ratio:.1} times redis-cli", shown(command));
    println!("bowline run, to its end                {}", shown(whole));
    Ok(())
}
