//! Known mistakes, made on purpose one at a time: each must be caught, by the check that is there for it.
//!
//! A mistake in a script is a patch of the script that the simulated server runs; one in Rust is a `bowline::Mutant`.
//! `BOWLINE_SIM_MUTANT=<name>` makes one of them and prints the history of the run that catches it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bowline::{Mutant, Switch};

use crate::scenes::SCENES;
use crate::scripts::{Patch, Scripts};
use crate::stage::play;
use crate::world::{Faults, run_with};

/// How a mistake is made.
enum Mistake {
    Lua(&'static [Patch]),
    Rust(Mutant),
}

/// Where it must be noticed.
enum Place {
    /// A run with these faults.
    Run(&'static str, Faults),
    Scene(&'static str),
}

struct Row {
    name: &'static str,
    mistake: Mistake,
    place: Place,
    /// How what is said about it begins: the invariants that must catch it.
    caught_by: &'static [&'static str],
}

const NONE: Faults = Faults { network: false, freezes: false, crashes: false, losses: false };
const FAULT_FREE: Place = Place::Run("fault_free", NONE);
const NETWORK: Place = Place::Run("network", Faults { network: true, ..NONE });
const FREEZES: Place = Place::Run("freezes", Faults { network: true, freezes: true, ..NONE });
const LOSSES: Place = Place::Run("losses", Faults { losses: true, ..NONE });

const I1: &[&str] = &["I1"];
const I2: &[&str] = &["I2"];
const I3: &[&str] = &["I3"];
const I4: &[&str] = &["I4"];
const I7: &[&str] = &["I7"];
const I8: &[&str] = &["I8"];
const I10: &[&str] = &["I10"];
const I12: &[&str] = &["I12"];

const fn lua(name: &'static str, patches: &'static [Patch], place: Place, caught_by: &'static [&'static str]) -> Row {
    Row { name, mistake: Mistake::Lua(patches), place, caught_by }
}

const fn rust(name: &'static str, mutant: Mutant, place: Place, caught_by: &'static [&'static str]) -> Row {
    Row { name, mistake: Mistake::Rust(mutant), place, caught_by }
}

const fn scene(name: &'static str) -> Place {
    Place::Scene(name)
}

#[rustfmt::skip]
const MUTANTS: &[Row] = &[
    // Who holds.
    lua("release_by_anybody", &[(
        "local held = redis.call('HEXISTS', lock, id) == 1",
        "local held = redis.call('EXISTS', lock) == 1",
    )], NETWORK, I1),
    lua("renewal_by_anybody", &[(
        "local held = redis.pcall('HEXISTS', lock, id)\n",
        "local held = redis.pcall('EXISTS', lock)\n",
    )], scene("lost_data"), I1),
    lua("renewal_creates_a_key", &[(
        "  if held == 1 and lease ~= '0' then held",
        "  if lease ~= '0' then redis.pcall('HSET', lock, id, '1'); held",
    )], NETWORK, I8),
    rust("wire_id_reused", Mutant::WireIdReused, NETWORK, I1),
    rust("late_grant_released", Mutant::LateGrantReleased, NETWORK, I1),
    rust("grant_trusted_after_resend", Mutant::GrantTrustedAfterResend, scene("second_copy"), I1),
    lua("resend_not_known", &[(
        "if redis.call('HEXISTS', lock, id) == 1 then\n  redis.call('PEXPIRE', lock, lease)\n",
        "if false then\n",
    )], NETWORK, I3),
    lua("stale_before_mine", &[(
        "-- A resend, or the message that said so was lost.\n",
        "if not_after > 0 and now > not_after then return {'STALE', now} end\n",
    )], NETWORK, I10),
    lua("token_without_clock", &[(
        "math.max(last + 1, time[1] * 1000000 + time[2])",
        "last + 1",
    )], LOSSES, I2),

    // How long.
    rust("lease_from_reply", Mutant::LeaseFromReply, FREEZES, I1),
    rust("lease_from_message", Mutant::LeaseFromMessage, FREEZES, I1),
    rust("lease_from_first_request", Mutant::LeaseFromFirstRequest, FAULT_FREE, I3),
    rust("no_drift", Mutant::NoDrift, FAULT_FREE, I1),
    rust("late_grant_kept", Mutant::LateGrantKept, scene("slow_answer"), I1),
    lua("touch_keeps_the_old_ttl", &[(
        "      redis.call('PEXPIRE', lock, lease)\n      outcome, token",
        "      outcome, token",
    )], NETWORK, I1),
    rust("renewal_after_release", Mutant::RenewalAfterRelease, FAULT_FREE, I8),
    rust("renewal_not_retried", Mutant::RenewalNotRetried, scene("swallowed_renewal"), &["a lease is lost"]),
    rust("loss_not_signalled", Mutant::LossNotSignalled, scene("lost_data"), I1),
    rust("no_verify_after_gap", Mutant::NoVerifyAfterGap, scene("missed_revocation"), I1),
    rust("lost_hold_entered", Mutant::LostHoldEntered, scene("expired_reentry"), I1),
    rust("protect_waits_for_signal", Mutant::ProtectWaitsForSignal, scene("frozen_work"), I1),

    // Who is next.
    lua("release_wakes_nobody", &[(
        "then enqueue(ticket, ARGV[5], 0) end\nlocal more, taken, token = promote_if_free({[ticket] = true})",
        "then enqueue(ticket, ARGV[5], 0) end\nlocal more, taken, token = 0",
    )], FAULT_FREE, I3),
    lua("cancel_wakes_nobody", &[(
        "local more = promote_if_free({})\nreturn {outcome,",
        "local more = 0\nreturn {outcome,",
    )], FAULT_FREE, I3),
    lua("fast_path_barges", &[(
        "if redis.call('EXISTS', lock, queue, tickets) == 0 and",
        "if redis.call('EXISTS', lock) == 0 and",
    )], scene("newcomers"), I4),
    lua("try_barges", &[(
        "  local more, taken, _, rest = promote_if_free({})\n",
        "  local more, taken, rest = 0, redis.call('EXISTS', lock) == 1, 'none'\n",
    )], scene("newcomers"), I4),
    lua("client_clock_in_the_queue", &[
        ("redis.pcall('ZADD', tickets, now + ttl, ticket)", "redis.pcall('ZADD', tickets, now + ttl + (tonumber(string.sub(ticket, 1, 1), 16) - 8) * 60000, ticket)"),
        ("redis.call('ZADD', tickets, 'XX', now + ttl, ticket)", "redis.call('ZADD', tickets, 'XX', now + ttl + (tonumber(string.sub(ticket, 1, 1), 16) - 8) * 60000, ticket)"),
    ], FAULT_FREE, I3),
    lua("enqueued_twice", &[(
        "  if n > 0 and expiry(ticket) then\n",
        "  if false then\n",
    )], NETWORK, I12),
    lua("cancelled_ticket_stays_in_the_list", &[(
        "  if removed == 1 then redis.call('LREM', queue, from, ticket) end\n",
        "",
    )], FAULT_FREE, I12),
    lua("half_a_queue", &[(
        "  if n ~= redis.call('ZCARD', tickets) then\n",
        "  if false then\n",
    )], LOSSES, I3),
    lua("dead_counted_as_waiters", &[
        ("'LIMIT', 0, 16", "'LIMIT', 0, 0"),
        ("local living = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')", "local living = n"),
    ], scene("full_of_the_dead"), I3),
    lua("granted_to_nobody", &[(
        "(heard > 0 or not counts_everyone)",
        "true",
    )], scene("crashed_crowd"), I3),
    lua("silent_client_tried_again", &[(
        "    elseif silent[client] then\n",
        "    elseif false then\n",
    )], scene("crashed_crowd"), I3),
    lua("own_ticket_not_known", &[(
        "    elseif own[ticket] then\n",
        "    elseif false then\n",
    )], scene("deaf_waiter"), I3),
    rust("no_touch_after_gap", Mutant::NoTouchAfterGap, scene("missed_grant"), I3),
    rust("more_not_done", Mutant::MoreNotDone, scene("expired_crowd"), I3),

    // What is left.
    rust("no_clean_up_on_drop", Mutant::NoCleanUpOnDrop, FAULT_FREE, I7),
    rust("no_release_on_drop", Mutant::NoReleaseOnDrop, FAULT_FREE, I7),
];

/// Mutants that nothing catches yet, and what is missing.
const NOT_YET: &[(&str, &str)] = &[
    ("no_drift", "processes whose clocks run at other rates than the server's"),
    ("renewal_creates_a_key", "I8"),
    ("renewal_after_release", "I8"),
    ("stale_before_mine", "I10"),
];

/// After how many seeds a mutant that nothing has caught is one that got away.
const SEEDS: u64 = 300;

impl Row {
    /// What the run says about the mistake, and its history.
    fn make(&self, seed: u64) -> (Option<String>, String) {
        let scripts = match self.mistake {
            Mistake::Lua(patches) => Scripts::patched(patches),
            Mistake::Rust(_) => Scripts::default(),
        };
        let _on = match self.mistake {
            Mistake::Lua(_) => None,
            Mistake::Rust(mutant) => Some(Switch::on(mutant)),
        };
        match self.place {
            Place::Run(_, faults) => {
                let report = run_with(seed, faults, scripts);
                (report.violation, report.history)
            }
            Place::Scene(name) => {
                let (_, scene) = SCENES.iter().find(|(scene, _)| *scene == name).expect("a scene of that name");
                (play(seed, *scene, scripts).err(), String::new())
            }
        }
    }

    /// What catches it, and the seed.
    fn hunt(&self) -> Option<(String, u64)> {
        (0..SEEDS).find_map(|seed| {
            let made = catch_unwind(AssertUnwindSafe(|| self.make(seed)));
            let (found, history) = made.unwrap_or_else(|_| (Some("a panic".to_owned()), String::new()));
            if let Some(found) = &found
                && std::env::var("BOWLINE_SIM_MUTANT").is_ok()
            {
                println!("{history}seed {seed}: {found}");
            }
            Some((found?, seed))
        })
    }

    fn place(&self) -> &'static str {
        match self.place {
            Place::Run(name, _) | Place::Scene(name) => name,
        }
    }
}

#[test]
fn mutants() {
    let only = std::env::var("BOWLINE_SIM_MUTANT").ok();
    let mut wrong = Vec::new();
    println!("{:<36}{:<20}{:<8}by", "mutant", "caught in", "seeds");
    for row in MUTANTS.iter().filter(|row| only.as_ref().is_none_or(|only| only == row.name)) {
        let missing = NOT_YET.iter().find(|(name, _)| *name == row.name);
        let start = std::time::Instant::now();
        let caught = row.hunt();
        let took = start.elapsed();
        let (seeds, by) = match &caught {
            Some((by, seed)) => ((seed + 1).to_string(), by.as_str()),
            None => ("-".to_owned(), missing.map_or("NOTHING", |(_, needs)| *needs)),
        };
        println!("{:<36}{:<20}{seeds:<8}{by} {took:?}", row.name, row.place());
        let right = caught.as_ref().is_some_and(|(by, _)| row.caught_by.iter().any(|prefix| by.starts_with(prefix)));
        if right == missing.is_some() {
            wrong.push(row.name);
        }
    }
    assert_eq!(wrong, [""; 0], "not caught, or not by the check that is there for it");
}
