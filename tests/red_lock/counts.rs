//! What an acquisition costs, counted at the connections.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::masters::{Masters, waiter};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    an_uncontended_pair_sends_two_commands_to_each_master,
    eight_tasks_are_served_in_order_and_no_round_is_split,
}

async fn an_uncontended_pair_sends_two_commands_to_each_master(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    for n in 0..4 {
        program.counts.iter().for_each(|counts| counts.reset());
        program.locks.lock("a").await.unwrap().release().await.unwrap();
        let mut first = BTreeMap::from([("lock_vote_claim", 1), ("lock_vote_leave", 1)]);
        if n == 0 {
            // The clock of the first master is not known yet, by which the claim would propose a token.
            first = BTreeMap::from([("lock_acquire", 1), ("lock_vote", 1), ("lock_vote_leave", 1)]);
        }
        let other = BTreeMap::from([("lock_vote", 1), ("lock_release", 1)]);
        let sent = || program.counts.iter().map(|counts| counts.all()).collect::<Vec<_>>();
        let expected = [first, other.clone(), other];
        // Neither the grant nor the release waits for the slowest master.
        env.eventually("all are sent", async || sent() == expected).await;
        // What is sent in the background would be seen later.
        masters.nothing_is_left().await;
        assert_eq!(sent(), expected);
    }
    assert_eq!(program.locks.stats().second_rounds, 0);
}

async fn eight_tasks_are_served_in_order_and_no_round_is_split(env: Env) {
    let masters = Masters::three(&env);
    let programs = join_all((0..2).map(|_| masters.program())).await;
    let first = programs[0].locks.lock("a").await.unwrap();
    let mut tasks = Vec::new();
    for n in 0..8 {
        tasks.push(waiter(&masters, &programs[n % 2]).await);
    }
    let mut last = first.token();
    first.release().await.unwrap();
    for (n, task) in tasks.into_iter().enumerate() {
        let guard = env.soon(&format!("the turn of {n}"), task).await;
        assert!(guard.token() > last, "the token of {n}");
        last = guard.token();
        guard.release().await.unwrap();
    }
    for program in &programs {
        let stats = program.locks.stats();
        let rounds = (stats.contested_rounds, stats.failed_rounds, stats.second_rounds);
        assert_eq!(rounds, (0, 0, 0), "{stats:?}");
    }
    masters.nothing_is_left().await;
}
