//! Small situations, played by a script, that chance alone brings about too seldom; the seed decides every delay. Most
//! are there because of a mutant.

use futures::future::BoxFuture;

use crate::number;
use crate::scripts::Scripts;
use crate::stage::{Played, Stage, play};

mod barrier;
mod cluster;
mod cohort;
mod double_barrier;
mod elections;
mod failovers;
mod java;
mod latch;
mod leases;
mod limiter;
mod many;
mod masters;
mod observed;
mod once;
mod queue;
mod requests;
mod retained;
mod sharded;
mod trouble;

/// How many seeds a scene has.
pub const SEEDS: u64 = if cfg!(debug_assertions) { 1 } else { 50 };

/// Scenes with thousands of locks have fewer, and without optimisation none.
pub fn seeds_of(name: &str) -> u64 {
    match name {
        "many_names" | "late_outage" if cfg!(debug_assertions) => 0,
        "many_names" => 1,
        "late_outage" => SEEDS.min(2),
        "flapping" => SEEDS.min(4),
        "elections"
        | "elections_in_failovers"
        | "once_in_a_period"
        | "once_by_cron"
        | "once_in_failovers"
        | "rate"
        | "barrier"
        | "double_barrier"
        | "observed"
        | "elections_over_masters" => SEEDS.min(16),
        _ => SEEDS,
    }
}

pub type Scene = fn(Stage) -> BoxFuture<'static, Played>;

/// Every scene by its name.
pub const SCENES: &[(&str, Scene)] = &[
    ("observed_death", |stage| Box::pin(observed::observed_death(stage))),
    ("observed_gap", |stage| Box::pin(observed::observed_gap(stage))),
    ("observed_often", |stage| Box::pin(observed::observed_often(stage))),
    ("observed", |stage| Box::pin(observed::observed(stage))),
    ("woken_by_java", |stage| Box::pin(java::woken_by_java(stage))),
    ("beside_java", |stage| Box::pin(java::beside_java(stage))),
    ("latch_with_java", |stage| Box::pin(java::latch_with_java(stage))),
    ("permits_with_java", |stage| Box::pin(java::permits_with_java(stage))),
    ("timed_permits_with_java", |stage| Box::pin(java::timed_permits_with_java(stage))),
    ("missed_revocation", |stage| Box::pin(leases::missed_revocation(stage))),
    ("revoked_grant", |stage| Box::pin(leases::revoked_grant(stage))),
    ("lost_data", |stage| Box::pin(leases::lost_data(stage))),
    ("expired_reentry", |stage| Box::pin(leases::expired_reentry(stage))),
    ("slow_answer", |stage| Box::pin(leases::slow_answer(stage))),
    ("late_message", |stage| Box::pin(leases::late_message(stage))),
    ("known_grant", |stage| Box::pin(leases::known_grant(stage))),
    ("stale_message", |stage| Box::pin(leases::stale_message(stage))),
    ("late_renewal", |stage| Box::pin(leases::late_renewal(stage))),
    ("slow_clock", |stage| Box::pin(leases::slow_clock(stage))),
    ("frozen_requester", |stage| Box::pin(leases::frozen_requester(stage))),
    ("frozen_work", |stage| Box::pin(leases::frozen_work(stage))),
    ("broken_renewal", |stage| Box::pin(leases::broken_renewal(stage))),
    ("refused_renewal", |stage| Box::pin(leases::refused_renewal(stage))),
    ("clock_set_back", |stage| Box::pin(leases::clock_set_back(stage))),
    ("closed_release", |stage| Box::pin(leases::closed_release(stage))),
    ("resent_release", |stage| Box::pin(leases::resent_release(stage))),
    ("missed_grant", |stage| Box::pin(queue::missed_grant(stage))),
    ("gap_before_answer", |stage| Box::pin(queue::gap_before_answer(stage))),
    ("gap_during_heartbeat", |stage| Box::pin(queue::gap_during_heartbeat(stage))),
    ("long_wait", |stage| Box::pin(queue::long_wait(stage))),
    ("deaf_waiter", |stage| Box::pin(queue::deaf_waiter(stage))),
    ("crashed_crowd", |stage| Box::pin(queue::crashed_crowd(stage))),
    ("expired_crowd", |stage| Box::pin(queue::expired_crowd(stage))),
    ("full_of_the_dead", |stage| Box::pin(queue::full_of_the_dead(stage))),
    ("half_a_queue", |stage| Box::pin(queue::half_a_queue(stage))),
    ("newcomers", |stage| Box::pin(queue::newcomers(stage))),
    ("long_cohort", |stage| Box::pin(cohort::long_cohort(stage))),
    ("busy_cohort", |stage| Box::pin(cohort::busy_cohort(stage))),
    ("downgraded_cohort", |stage| Box::pin(cohort::downgraded_cohort(stage))),
    ("busy_writers", |stage| Box::pin(cohort::busy_writers(stage))),
    ("busy_permits", |stage| Box::pin(cohort::busy_permits(stage))),
    ("slow_cohort", |stage| Box::pin(cohort::slow_cohort(stage))),
    ("robbed_cohort", |stage| Box::pin(cohort::robbed_cohort(stage))),
    ("lost_before_ahead", |stage| Box::pin(cohort::lost_before_ahead(stage))),
    ("lost_budget", |stage| Box::pin(cohort::lost_budget(stage))),
    ("left_cohort", |stage| Box::pin(cohort::left_cohort(stage))),
    ("kept_guard", |stage| Box::pin(cohort::kept_guard(stage))),
    ("shared_cohort", |stage| Box::pin(cohort::shared_cohort(stage))),
    ("parted_permits", |stage| Box::pin(cohort::parted_permits(stage))),
    ("late_clock", |stage| Box::pin(cohort::late_clock(stage))),
    ("asked_for_idle", |stage| Box::pin(retained::asked_for_idle(stage))),
    ("idle_writer", |stage| Box::pin(retained::idle_writer(stage))),
    ("closed_idle", |stage| Box::pin(retained::closed_idle(stage))),
    ("thawed_idle", |stage| Box::pin(retained::thawed_idle(stage))),
    ("second_copy", |stage| Box::pin(requests::second_copy(stage))),
    ("lost_answer", |stage| Box::pin(requests::lost_answer(stage))),
    ("unread_reply", |stage| Box::pin(requests::unread_reply(stage))),
    ("late_copy", |stage| Box::pin(requests::late_copy(stage))),
    ("copied_permits", |stage| Box::pin(requests::copied_permits(stage))),
    ("late_request", |stage| Box::pin(requests::late_request(stage))),
    ("refused_upgrade", |stage| Box::pin(requests::refused_upgrade(stage))),
    ("silent_renewal", |stage| Box::pin(leases::silent_renewal(stage))),
    ("flapping", |stage| Box::pin(many::flapping(stage))),
    ("late_outage", |stage| Box::pin(many::late_outage(stage))),
    ("many_names", |stage| Box::pin(many::many_names(stage))),
    ("demoted_listener", |stage| Box::pin(failovers::demoted_listener(stage))),
    ("parted_links", |stage| Box::pin(failovers::parted_links(stage))),
    ("demoted_server", |stage| Box::pin(failovers::demoted_server(stage))),
    ("lost_writes", |stage| Box::pin(failovers::lost_writes(stage))),
    ("cut_off_master", |stage| Box::pin(failovers::cut_off_master(stage))),
    ("lost_grant", |stage| Box::pin(failovers::lost_grant(stage))),
    ("late_successor", |stage| Box::pin(failovers::late_successor(stage))),
    ("asked_a_replica", |stage| Box::pin(failovers::asked_a_replica(stage))),
    ("lost_reply", |stage| Box::pin(cluster::lost_reply(stage))),
    ("heard_elsewhere", |stage| Box::pin(cluster::heard_elsewhere(stage))),
    ("cut_off_listener", |stage| Box::pin(cluster::cut_off_listener(stage))),
    ("handed_over_in_a_moving_slot", |stage| Box::pin(cluster::handed_over_in_a_moving_slot(stage))),
    ("moving_slot", |stage| Box::pin(cluster::moving_slot(stage))),
    ("lone_holds_in_a_moving_slot", |stage| Box::pin(cluster::lone_holds_in_a_moving_slot(stage))),
    ("expired_in_a_moving_slot", |stage| Box::pin(cluster::expired_in_a_moving_slot(stage))),
    ("thawed_master", |stage| Box::pin(cluster::thawed_master(stage))),
    ("thawed_answer", |stage| Box::pin(cluster::thawed_answer(stage))),
    ("lost_with_its_master", |stage| Box::pin(cluster::lost_with_its_master(stage))),
    ("lost_releases", |stage| Box::pin(cluster::lost_releases(stage))),
    ("lost_hand_over", |stage| Box::pin(cluster::lost_hand_over(stage))),
    ("old_map", |stage| Box::pin(cluster::old_map(stage))),
    ("moved_inbox", |stage| Box::pin(sharded::moved_inbox(stage))),
    ("opening_inbox", |stage| Box::pin(sharded::opening_inbox(stage))),
    ("idle_inbox", |stage| Box::pin(sharded::idle_inbox(stage))),
    ("clock_forward", |stage| Box::pin(requests::clock_forward(stage))),
    ("refused_set", |stage| Box::pin(latch::refused_set(stage))),
    ("idle_count", |stage| Box::pin(latch::idle_count(stage))),
    ("later_copy", |stage| Box::pin(latch::later_copy(stage))),
    ("late_count", |stage| Box::pin(latch::late_count(stage))),
    ("rest_of_a_latch", |stage| Box::pin(latch::rest_of_a_latch(stage))),
    ("refused_proposal", |stage| Box::pin(masters::refused_proposal(stage))),
    ("early_turn", |stage| Box::pin(masters::early_turn(stage))),
    ("claimed_turn", |stage| Box::pin(masters::claimed_turn(stage))),
    ("regained_vote", |stage| Box::pin(masters::regained_vote(stage))),
    ("barred_vote", |stage| Box::pin(masters::barred_vote(stage))),
    ("young_votes", |stage| Box::pin(masters::young_votes(stage))),
    ("slow_votes", |stage| Box::pin(masters::slow_votes(stage))),
    ("late_vote", |stage| Box::pin(masters::late_vote(stage))),
    ("vote_after_release", |stage| Box::pin(masters::vote_after_release(stage))),
    ("once_in_a_period", |stage| Box::pin(once::in_a_period(stage))),
    ("once_by_cron", |stage| Box::pin(once::by_cron(stage))),
    ("once_in_failovers", |stage| Box::pin(once::in_failovers(stage))),
    ("elections", |stage| Box::pin(elections::on_one_server(stage))),
    ("last_term", |stage| Box::pin(elections::last_term(stage))),
    ("elections_in_failovers", |stage| Box::pin(elections::in_failovers(stage))),
    ("elections_over_masters", |stage| Box::pin(elections::over_masters(stage))),
    ("dead_party", |stage| Box::pin(barrier::dead_party(stage))),
    ("barrier", |stage| Box::pin(barrier::generations(stage))),
    ("dead_inside", |stage| Box::pin(double_barrier::dead_inside(stage))),
    ("double_barrier", |stage| Box::pin(double_barrier::generations(stage))),
    ("rate", |stage| Box::pin(limiter::rate(stage))),
    ("lost_checks", |stage| Box::pin(limiter::lost_checks(stage))),
    ("late_loss", |stage| Box::pin(masters::late_loss(stage))),
];

/// What is found with a mutant is the mutant's: without one, nothing is.
#[test]
fn scenes() {
    let only = std::env::var("BOWLINE_SIM_SCENE").ok();
    for (name, scene) in SCENES.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let seeds = match number("BOWLINE_SIM_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..number("BOWLINE_SIM_SEEDS").unwrap_or(SEEDS).min(seeds_of(name)),
        };
        for seed in seeds {
            let (outcome, history) = play(seed, *scene, Scripts::default());
            if number("BOWLINE_SIM_SEED").is_some() {
                println!("{name}\n{history}");
            }
            assert_eq!(outcome, Ok(()), "{name}, seed {seed}");
        }
    }
}
