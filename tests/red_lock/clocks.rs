//! Masters whose clocks are set.

use std::time::Duration;

use crate::masters::{Masters, Program, ms};
use crate::support::env::{Env, on_the_embedded_server};

on_the_embedded_server! {
    renewals_and_extensions_take_back_what_the_clocks_added,
    a_request_that_a_clock_makes_late_is_sent_again_at_once,
}

const HOUR: Duration = Duration::from_secs(3600);

/// What the votes have left on their masters.
async fn left(program: &Program, name: &str) -> Vec<Duration> {
    let state = program.locks.inspect(name).await.unwrap();
    state.masters.iter().map(|master| master.vote.as_ref().unwrap().remaining).collect()
}

/// All clocks are set back by an hour, so every vote lasts an hour longer. If the holder dies, others wait for that
/// time.
async fn renewals_and_extensions_take_back_what_the_clocks_added(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program_with(|config| config.lease(ms(60_000)), |builder| builder.durable(true)).await;
    let renewed = program.locks.lock("a").lease(ms(3000)).await.unwrap();
    let fixed = program.locks.lock("b").expires_after(ms(20_000)).await.unwrap();
    for (asked, longest) in [(10_000, 20_000), (60_000, 60_000), (10_000, 60_000)] {
        masters.all.iter().for_each(|master| master.set_clock_back(HOUR));
        assert!(left(&program, "b").await.iter().all(|left| *left > HOUR));
        fixed.extend(ms(asked)).await.unwrap();
        let counted = fixed.remaining();
        // The third master may answer later than the majority.
        env.eventually("shortened", async || left(&program, "b").await.iter().all(|left| *left <= ms(longest))).await;
        assert!(left(&program, "b").await.iter().all(|left| *left > ms(longest) / 2), "{longest}");
        assert!(counted <= ms(longest) && fixed.is_valid());
    }
    env.eventually("renewed", async || left(&program, "a").await.iter().all(|left| *left <= ms(3000))).await;
    assert!(renewed.is_valid());
    renewed.release().await.unwrap();
    fixed.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// All clocks are set forward, so every request is too late by the clock that the program has seen.
async fn a_request_that_a_clock_makes_late_is_sent_again_at_once(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    program.locks.lock("a").await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
    program.counts.iter().for_each(|counts| counts.reset());
    masters.all.iter().for_each(|master| master.set_clock_forward(HOUR));
    let guard = program.locks.lock("a").await.unwrap();
    // An answer tells what the clock shows.
    assert_eq!(program.locks.stats().failed_rounds, 0);
    let votes = ["lock_vote_claim", "lock_vote", "lock_vote"];
    let votes: Vec<_> = program.counts.iter().zip(votes).map(|(counts, script)| counts.of(script)).collect();
    assert_eq!(votes, [2, 2, 2]);
    masters.all_vote(&program, "a").await;
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}
