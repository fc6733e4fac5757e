//! The table of the mutants.

use bowline::Mutant;

use crate::scripts::Patch;
use crate::world::{Faults, Workload};

/// How a mistake is made.
pub enum Mistake {
    Lua(&'static [Patch]),
    Rust(Mutant),
}

/// Where it must be noticed.
pub enum Place {
    /// A run with that workload and these faults.
    Run(&'static str, Workload, Faults),
    Scene(&'static str),
}

pub struct Row {
    pub name: &'static str,
    pub mistake: Mistake,
    pub place: Place,
    /// How what is said about it begins: the invariants that must catch it.
    pub caught_by: &'static [&'static str],
}

const FAULT_FREE: Place = Place::Run("fault_free", Workload::Locks, crate::NONE);
const NETWORK: Place = Place::Run("network", Workload::Locks, crate::NETWORK);
const CRASHES: Place = Place::Run("crashes", Workload::Locks, crate::CRASHES);
const LOSSES: Place = Place::Run("losses", Workload::Locks, crate::LOSSES);

const ACKNOWLEDGED: Place = Place::Run("acknowledged", Workload::Locks, crate::ACKNOWLEDGED);

const PERMITS_FAULT_FREE: Place = Place::Run("permits_fault_free", Workload::Permits, crate::NONE);
const PERMITS_NETWORK: Place = Place::Run("permits_network", Workload::Permits, crate::NETWORK);

const RETAINED_FAULT_FREE: Place = Place::Run("retained_fault_free", Workload::Retained, crate::NONE);

const LATCHES_FAULT_FREE: Place = Place::Run("latches_fault_free", Workload::Latches, crate::NONE);
const LATCHES_NETWORK: Place = Place::Run("latches_network", Workload::Latches, crate::NETWORK);

const I1: &[&str] = &["I1"];
const I2: &[&str] = &["I2"];
const I3: &[&str] = &["I3"];
const I4: &[&str] = &["I4"];
const I5: &[&str] = &["I5"];
const I7: &[&str] = &["I7"];
const I8: &[&str] = &["I8"];
const I9: &[&str] = &["I9"];
const I10: &[&str] = &["I10"];
const I11: &[&str] = &["I11"];
const I12: &[&str] = &["I12"];
const I13: &[&str] = &["I13"];
const I16: &[&str] = &["I16"];
const I17: &[&str] = &["I17"];
const I18: &[&str] = &["I18"];
const I19: &[&str] = &["I19"];
const I20: &[&str] = &["I20"];
const I21: &[&str] = &["I21"];
const I22: &[&str] = &["I22"];
/// No invariant, but what the documentation says about losses.
const LOST: &[&str] = &["a lease is lost"];

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
pub const MUTANTS: &[Row] = &[
    // Mistakes about the holder.
    lua("release_by_anybody", &[(
        "  return redis.call('HDEL', lock, id)\n",
        "  return redis.call('HDEL', lock, redis.call('HGETALL', lock)[1] or id)\n",
    )], NETWORK, &["I1", "I10"]),
    lua("renewal_by_anybody", &[(
        "local held = redis.pcall('HGET', lock, id) or 0\n",
        "local held = redis.pcall('HGETALL', lock)[2] or 0\n",
    )], scene("lost_data"), I1),
    lua("renewal_keeps_what_the_clock_added", &[
        ("lease = shortens and longest or left\n", "lease = left\n"),
    ], scene("clock_set_back"), I3),
    lua("permit_renewal_keeps_what_the_clock_added", &[
        ("    elseif longest ~= '0' and lasts > longest + 0 and longest + 0 >= stored then\n", "    elseif false then\n"),
    ], scene("clock_set_back"), I3),
    lua("renewal_creates_a_key", &[(
        "if type(held) == 'string' and lease ~= '0' then\n",
        "if lease ~= '0' then\n    redis.call('HSET', lock, id, '1')\n    held = '1'\n",
    )], NETWORK, &["I1", "I2", "I8"]),
    lua("holder_not_asked", &[(
        "  redis.pcall('PUBLISH', inbox, 'wanted ' .. holder)\n",
        "",
    )], scene("asked_for_idle"), I3),
    lua("writer_not_asked", &[("local ends, holder = first_lease()\n", "local ends, holder = first_lease(), false\n")],
        scene("idle_writer"), I3),
    rust("wanted_ignored", Mutant::WantedIgnored, scene("asked_for_idle"), I3),
    rust("queued_grant_kept", Mutant::QueuedGrantKept, RETAINED_FAULT_FREE, I3),
    rust("idle_hold_left", Mutant::IdleHoldLeft, scene("closed_idle"), I8),
    rust("attempt_id_reused", Mutant::AttemptIdReused, NETWORK, &["I1", "I8"]),
    rust("gone_trusted_after_resend", Mutant::GoneTrustedAfterResend, scene("stale_message"), I3),
    rust("late_grant_released", Mutant::LateGrantReleased, scene("known_grant"), I1),
    rust("grant_trusted_after_resend", Mutant::GrantTrustedAfterResend, scene("second_copy"), I1),
    rust("deaf_while_asking", Mutant::DeafWhileAsking, scene("lost_answer"), I3),
    lua("hand_over_drops_the_new_hold", &[(
        "  if ending then redis.call('HDEL', lock, ending) end\n",
        "  if ending then redis.call('DEL', lock) end\n",
    )], FAULT_FREE, &["I1", "I3", "I10"]),
    lua("resend_not_known", &[(
        "  holder, held = hold[1], hold[1] == id and hold[2]\n",
        "  holder, held = hold[1], false\n",
    )], NETWORK, I10),
    lua("stale_before_mine", &[(
        "-- A resend, or the message about the grant was lost.\n",
        "if late then return {'STALE', now} end\n",
    )], scene("late_copy"), I10),
    rust("stale_not_learned", Mutant::StaleNotLearned, scene("clock_forward"), I3),
    rust("announcement_ignored", Mutant::AnnouncementIgnored, scene("woken_by_java"), I3),
    rust("subscription_no_news", Mutant::SubscriptionNoNews, scene("woken_by_java"), I3),
    rust("watch_gap_ignored", Mutant::WatchGapIgnored, scene("observed_gap"), I22),
    rust("report_during_look_ignored", Mutant::ReportDuringLookIgnored, scene("observed"), I22),
    rust("lease_end_not_looked_at", Mutant::LeaseEndNotLookedAt, scene("observed_death"), I22),
    lua("held_by_java_too", &[("if left then return {'BUSY', left, 0, now} end\n", "")], scene("beside_java"), I1),
    lua("tokens_handed_out_twice", &[("last - budget + 1", "last + 0")], scene("beside_java"), I2),
    lua("shared_call_not_remembered", &[(
        "  redis.call('SET', mark, answer, 'PX', string.format('%.0f', math.max(known_until - now + 1, 1)))\n",
        "",
    )], scene("latch_with_java"), I10),
    lua("ended_permit_not_remembered", &[(
        "if marked ~= -2 then\n",
        "if false then\n",
    )], scene("timed_permits_with_java"), I8),
    lua("permit_taken_by_each_copy", &[(
        "local ends = redis.call('ZSCORE', leases, permit)\nif ends then\n  -- The id",
        "local ends = redis.call('ZSCORE', leases, permit)\nif false then\n  -- The id",
    )], scene("timed_permits_with_java"), I8),
    lua("ended_permit_not_given_back", &[(
        "local more = sweep()\n",
        "local more = false\n",
    )], scene("timed_permits_with_java"), I3),
    rust("permits_kept_on_drop", Mutant::PermitsKeptOnDrop, scene("permits_with_java"), I8),
    rust("no_not_after", Mutant::NoNotAfter, scene("late_request"), I7),
    lua("token_without_clock", &[(
        "token = clock\nlocal last = token\n",
        "token = '1'\nlocal last = token\n",
    )], LOSSES, I2),

    lua(
        "counter_as_short_as_the_lease",
        &[("lease * 2 > COUNTER_TTL and lease * 2 .. '' or 'COUNTER_TTL'", "lease")],
        scene("late_successor"),
        I2,
    ),
    lua("old_counter_ignored", &[("  if highest >= token + 0 then\n", "  if false then\n")], FAULT_FREE, I2),
    lua("publish_before_asking", &[
        ("  if client == listener or not counts_everyone then return true end\n", "  do return true end\n"),
        (
            "  return type(redis.pcall('PUBLISH', inbox_prefix .. client, message)) == 'number'\n",
            "  local heard = redis.pcall('PUBLISH', inbox_prefix .. client, message)\n  \
            return type(heard) == 'number' and (heard > 0 or not counts_everyone)\n",
        ),
    ], scene("demoted_listener"), I1),
    lua("role_not_checked", &[("if type(held) == 'number' then takes_writes(lock) end\n", "")], scene("asked_a_replica"), LOST),
    rust("renewal_counted_without_acknowledgement", Mutant::UnacknowledgedRenewalCounted, scene("cut_off_master"), I1),
    rust("token_not_compared", Mutant::TokenNotCompared, ACKNOWLEDGED, I2),
    rust("wait_after_a_read", Mutant::WaitAfterARead, scene("lost_grant"), I1),
    lua("hold_deleted_first", &[(
        "  takes_writes(lock)\n  ending, free = id, true\n",
        "  remove_hold(id)\n",
    )], scene("handed_over_in_a_moving_slot"), I12),
    lua("expired_deleted_first", &[(
        "      ending, leaving = table.remove(over), units\n",
        "",
    )], scene("expired_in_a_moving_slot"), I12),
    rust("resent_after_unknown", Mutant::ResentAfterUnknown, scene("lost_reply"), LOST),
    rust("receivers_believed", Mutant::ReceiversBelieved, scene("heard_elsewhere"), I3),
    rust("subscription_left_behind", Mutant::SubscriptionLeftBehind, scene("cut_off_listener"), I3),
    rust("moved_not_followed", Mutant::MovedNotFollowed, scene("moving_slot"), I3),
    rust("short_renewed_in_full", Mutant::ShortRenewedInFull, scene("lone_holds_in_a_moving_slot"), LOST),
    rust("ask_updates_map", Mutant::AskUpdatesMap, scene("moving_slot"), LOST),
    rust("older_map_taken", Mutant::OlderMapTaken, scene("old_map"), I3),
    rust("late_answer_believed", Mutant::LateAnswerBelieved, scene("thawed_answer"), I1),
    rust("release_not_repeated", Mutant::ReleaseNotRepeated, scene("lost_releases"), I3),
    rust("ended_not_looked_for", Mutant::EndedNotLookedFor, scene("lost_releases"), I3),
    rust("ended_grant_left", Mutant::EndedGrantLeft, scene("lost_hand_over"), I3),
    rust("replacement_without_gap", Mutant::ReplacementWithoutGap, scene("lost_with_its_master"), I1),
    rust("inbox_left_behind", Mutant::InboxLeftBehind, scene("moved_inbox"), I3),
    rust("inbox_open_too_soon", Mutant::InboxOpenTooSoon, scene("opening_inbox"), I3),
    rust("no_heartbeat_after_subscription", Mutant::NoHeartbeatAfterSubscription, scene("opening_inbox"), I3),
    rust("one_link_redialled", Mutant::OneLinkRedialled, scene("parted_links"), I3),

    // Mistakes about the length of a hold.
    lua("refusal_taken_for_loss", &[
        ("or redis.call('PEXPIRE', lock, lease, 'GT')", "or redis.pcall('PEXPIRE', lock, lease, 'GT')"),
        ("  redis.call('PEXPIRE', lock, lease)\nend\nif extended", "  lease = redis.pcall('PEXPIRE', lock, lease)\nend\nif extended"),
        ("if type(held) == 'number' then takes_writes(lock) end\n", "  if type(lease) == 'table' then held = -1 end\n"),
        ("  local held = renew(KEYS", "  local _, held = pcall(renew, KEYS"),
        (
            "  if type(held) == 'number' then takes_writes(KEYS[2 * i - 1]) end\n",
            "  if type(held) == 'table' or string.match(held, '^[^%d-]') then held = -1 end\n",
        ),
    ], scene("refused_renewal"), LOST),
    rust("ties_by_id", Mutant::TiesById, scene("flapping"), LOST),
    rust("renewal_without_bound", Mutant::RenewalWithoutBound, scene("silent_renewal"), LOST),
    rust("lease_from_reply", Mutant::LeaseFromReply, scene("frozen_requester"), I1),
    rust("lease_from_message", Mutant::LeaseFromMessage, scene("stale_message"), I1),
    rust("lease_from_first_request", Mutant::LeaseFromFirstRequest, scene("long_wait"), I3),
    rust("no_drift", Mutant::NoDrift, scene("slow_clock"), I1),
    rust("late_grant_kept", Mutant::LateGrantKept, scene("slow_answer"), I1),
    lua("heartbeat_keeps_the_old_ttl", &[(
        "  extend(lease)\n  return string.match",
        "  return string.match",
    )], scene("late_message"), I1),
    rust("renewal_after_release", Mutant::RenewalAfterRelease, FAULT_FREE, I8),
    rust("renewal_not_retried", Mutant::RenewalNotRetried, scene("broken_renewal"), LOST),
    rust("release_cut_off", Mutant::ReleaseCutOff, scene("closed_release"), LOST),
    rust("resent_release_lost", Mutant::ResentReleaseLost, scene("resent_release"), LOST),
    rust("revoked_grant_held", Mutant::RevokedGrantHeld, scene("revoked_grant"), I1),
    rust("loss_not_signalled", Mutant::LossNotSignalled, scene("lost_data"), I1),
    rust("no_verify_after_gap", Mutant::NoVerifyAfterGap, scene("missed_revocation"), I1),
    rust("lost_hold_entered", Mutant::LostHoldEntered, scene("expired_reentry"), I1),
    rust("protect_waits_for_signal", Mutant::ProtectWaitsForSignal, scene("frozen_work"), I1),

    // Mistakes about the next waiter.
    lua("release_promotes_no_ticket", &[(
        "is_queued(ticket), ARGV[5])\nend\nlocal more, granted = promote({[ticket] = true})",
        "is_queued(ticket), ARGV[5])\nend\nlocal more, granted = 0, {}",
    )], FAULT_FREE, I3),
    lua("reply_names_no_grant", &[("'RELEASED', more, now, unpack(messages)}", "'RELEASED', more, now}")], FAULT_FREE, I3),
    lua("cancel_promotes_no_ticket", &[(
        "local more = promote({})\ndrop_ended()\nreturn {outcome,",
        "local more = 0\ndrop_ended()\nreturn {outcome,",
    )], FAULT_FREE, I3),
    lua("fast_path_barges", &[(
        "local unused = redis.call('EXISTS', lock, queue, tickets) == 0\n",
        "local unused = redis.call('EXISTS', lock) == 0\n",
    )], scene("newcomers"), I4),
    lua("try_barges", &[(
        "  local more, _, rest = promote({})\n",
        "  local more, rest = 0, redis.call('EXISTS', KEYS[1]) == 0 and 'none'\n",
    )], scene("newcomers"), I4),
    lua("client_clock_in_the_queue", &[
        (
            "local function refresh(ticket, ttl)\n",
            "local function skew(ticket) return (tonumber(string.sub(ticket, 1, 1), 16) - 8) * 60000 end\n\
            local function refresh(ticket, ttl)\n",
        ),
        ("redis.pcall('ZADD', tickets, now + ttl,", "redis.pcall('ZADD', tickets, now + ttl + skew(ticket),"),
        ("redis.call('ZADD', tickets, 'XX', now + ttl,", "redis.call('ZADD', tickets, 'XX', now + ttl + skew(ticket),"),
    ], FAULT_FREE, I3),
    lua("enqueued_twice", &[(
        "  if queued then\n    refresh(",
        "  if false then\n    refresh(",
    )], NETWORK, &["I10", "I12"]),
    lua("cancelled_ticket_stays_in_the_list", &[(
        "  if removed == 1 then waiting = waiting - redis.call('LREM', queue, from, ticket) end\n",
        "",
    )], FAULT_FREE, I12),
    lua("half_a_queue", &[(
        "  if waiting ~= scored then forget_queue() end\n",
        "",
    )], scene("half_a_queue"), I3),
    lua("dead_counted_as_waiters", &[
        ("while dropped < MAX_TRIMMED and", "while dropped < 0 and"),
        ("return redis.call('ZCOUNT', tickets, '(' .. now, '+inf')", "return waiting"),
    ], scene("full_of_the_dead"), I3),
    lua("expired_ticket_granted", &[(
        "if not id or not expires or expires <= now then",
        "if not id or not expires then",
    )], CRASHES, &["I3", "I4"]),
    lua("granted_to_no_client", &[(
        "if asked and count > 0 then",
        "if asked then",
    )], scene("crashed_crowd"), I3),
    lua("silent_client_tried_again", &[
        ("    elseif audible[client] == false and not own[ticket] then\n", "    elseif false then\n"),
        ("  if audible[client] == nil then\n", "  if true then\n"),
    ], scene("crashed_crowd"), I3),
    lua("own_ticket_not_known", &[
        ("elseif audible[client] == false and not own[ticket] then", "elseif audible[client] == false then"),
        ("elseif not (own[ticket] or listens(client)) then", "elseif not listens(client) then"),
    ], scene("deaf_waiter"), I3),
    rust("no_heartbeat_after_gap", Mutant::NoHeartbeatAfterGap, scene("missed_grant"), I3),
    rust("gap_before_answer_forgotten", Mutant::GapBeforeAnswerForgotten, scene("gap_before_answer"), I3),
    rust("gap_during_heartbeat_forgotten", Mutant::GapDuringHeartbeatForgotten, scene("gap_during_heartbeat"), I3),
    rust("unread_reply_forgotten", Mutant::UnreadReplyForgotten, scene("unread_reply"), I3),
    rust("more_not_done", Mutant::MoreNotDone, scene("expired_crowd"), I3),

    // Mistakes in the local hand-off.
    rust("lost_hold_handed_off", Mutant::LostHoldHandedOff, scene("robbed_cohort"), I1),
    rust("token_handed_on", Mutant::TokenHandedOn, FAULT_FREE, I2),
    rust("cohort_never_ends", Mutant::CohortNeverEnds, scene("long_cohort"), I4),
    rust("cohort_takes_its_time", Mutant::CohortTakesItsTime, scene("slow_cohort"), I4),
    lua("granted_ahead_past_others", &[(
        "    if live_waiters() == 0 then",
        "    if true then",
    )], scene("busy_cohort"), I4),
    lua("writers_granted_ahead_past_others", &[(
        "    if live_waiters() == 0 then",
        "    if true then",
    )], scene("busy_writers"), I4),
    lua("permits_go_on_past_others", &[(
        "if others > 0 or (",
        "if (",
    )], scene("busy_permits"), I4),
    rust("downgraded_to_another_token", Mutant::DowngradedToAnotherToken, scene("downgraded_cohort"), I2),
    rust("ahead_forgotten", Mutant::AheadForgotten, scene("busy_cohort"), I3),
    rust("ahead_not_checked", Mutant::AheadNotChecked, scene("lost_before_ahead"), I1),
    lua("lost_budget_not_seen", &[
        ("if counter(present) > counter(known) then", "if present ~= known then"),
        ("return ahead(known, function(token)", "return ahead(present, function(token)"),
    ], scene("lost_budget"), I2),
    rust("turn_swallowed", Mutant::TurnSwallowed, scene("left_cohort"), I3),
    rust("ticket_outlives_its_cohort", Mutant::TicketOutlivesItsCohort, FAULT_FREE, &["I3", "I7"]),
    rust("lost_hold_keeps_the_cohort", Mutant::LostHoldKeepsTheCohort, scene("kept_guard"), I3),
    rust("one_asks_for_permits", Mutant::OneAsksForPermits, scene("shared_cohort"), I3),
    lua("writer_reserves_one_token", &[
        ("return reserve(string.sub(id, -1) == 'r' and LARGEST_BUDGET or HANDOFF_BUDGET, lease)", "return reserve(1, lease)"),
        ("    local budget = string.sub(id, -1) == 'r' and LARGEST_BUDGET or HANDOFF_BUDGET\n", "    local budget = 1\n"),
    ], scene("late_clock"), I2),
    lua("permits_released_without_queueing_up", &[(
        "  enqueue(ticket, is_queued(ticket), ARGV[6])\n",
        "",
    )], PERMITS_FAULT_FREE, I3),

    rust("smaller_hold_handed_off", Mutant::SmallerHoldHandedOff, scene("parted_permits"), I5),

    // Mistakes about permits.
    lua("part_given_back_twice", &[("if held and held > rest then", "if held and held > 1 then rest = held - 1")],
        scene("copied_permits"), I10),
    lua("drained_twice", &[("local units = held_by(id)\n", "local units\n")], scene("copied_permits"), I10),
    lua("reader_passes_a_writer", &[(
        "if keys == 2 and not late then",
        "if not unused and not late then",
    )], PERMITS_FAULT_FREE, I4),
    lua("reader_tries_past_a_writer", &[(
        "  if rest == 'none' and has_capacity(units) then",
        "  if has_capacity(units) then",
    )], PERMITS_FAULT_FREE, I4),
    lua("reader_has_its_own_token", &[(
        "  if units == ALL_UNITS then return reserve(",
        "  if true then return reserve(",
    )], PERMITS_FAULT_FREE, I2),
    lua("one_is_woken", &[(
        "        grants = grants + 1\n",
        "        do return call_again, granted, 'full' end\n",
    )], PERMITS_FAULT_FREE, I3),
    lua("downgrade_promotes_no_ticket", &[(
        "local more = promote({})\ndrop_ended()\nif held ~= units then",
        "local more = 0\ndrop_ended()\nif held ~= units then",
    )], PERMITS_FAULT_FREE, I3),
    lua("upgrade_beside_readers", &[(
        "  local busy = units > old + rest and not has_capacity(units - old - rest)\n",
        "  local busy = false\n",
    )], PERMITS_FAULT_FREE, I5),
    lua("late_change_honoured", &[(
        "  if not old or not rest then\n",
        "  if not old then old, old_token = 0, reserve(0, 0) end\n  if not rest then\n",
    )], PERMITS_NETWORK, &["I2", "I10"]),
    lua("refused_change_tried_again", &[(
        "if held then\n  extend(new_id, ARGV[4])\n",
        "if held and held ~= units and has_capacity(units - held) then\n  \
        remove_hold(new_id, held)\n  held, token = units, write_hold(new_id, ARGV[4], units)\n\
        elseif held then\n  extend(new_id, ARGV[4])\n",
    )], scene("refused_upgrade"), I10),
    lua("upgrade_behind_others", &[("ARGV[6], mode == 'first')", "ARGV[6], false)")], PERMITS_FAULT_FREE, I3),
    lua("upgrade_keeps_the_rest", &[("  if rest > 0 then remove_hold(ARGV[9], rest) end\n", "")], PERMITS_FAULT_FREE, I5),
    rust("upgrade_lets_go", Mutant::UpgradeLetsGo, PERMITS_FAULT_FREE, &["I6"]),
    rust("renewed_while_changing", Mutant::RenewedWhileChanging, PERMITS_NETWORK, I8),
    rust("rest_renewed_while_changing", Mutant::RestRenewedWhileChanging, PERMITS_NETWORK, I8),
    lua("late_release_credits", &[
        (
            "  if held then remove_hold(id, held) end\n  return {held and",
            "  remove_hold(id, held or 1)\n  return {held and",
        ),
        (
            "if not held then\n  local more = promote({})\n  drop_ended()\n  return {'NOT_HELD', more, now}\nend\nend_hold(id, held)",
            "end_hold(id, held or 1)",
        ),
    ], PERMITS_FAULT_FREE, &["I5", "I10"]),
    lua("sole_hold_not_counted", &[(
        "\nif not first then\n",
        "\nif false then\n",
    )], PERMITS_FAULT_FREE, &["I1", "I5", "I7"]),
    lua("sole_lease_cut_short", &[(" + left, hold[1])", ", hold[1])")], PERMITS_FAULT_FREE, &["I1", "I5"]),
    lua("used_outlives_its_leases", &[(
        "      used = used - units\n",
        "",
    )], PERMITS_NETWORK, I5),

    lua("smaller_limit_ignored", &[(
        "  limit = stored or limit\n",
        "  stored = stored and math.max(stored, limit)\n  limit = stored or limit\n",
    )], PERMITS_FAULT_FREE, &["I4", "I5"]),
    lua("oversized_not_told", &[(
        "    remove(ticket, '1')\n    tell(client, 'gone ' .. id)\n  else\n",
        "    remove(ticket, '1')\n  else\n",
    )], PERMITS_FAULT_FREE, I3),
    lua("oversized_stays", &[("  if id and exceeds_limit(amount, own) then\n", "  if false then\n")], PERMITS_FAULT_FREE, &["I3", "I5"]),
    lua("raised_limit_promotes_no_ticket", &[(
        "local more = promote({})\ndrop_ended()\nreturn {'LIMIT',",
        "local more = 0\ndrop_ended()\nreturn {'LIMIT',",
    )], PERMITS_FAULT_FREE, I3),

    // Mistakes about latches.
    lua("latch_wakes_one", &[("local more = #ids > MAX_TOLD\n", "ids = {ids[1]}\n  local more = false\n")], LATCHES_FAULT_FREE, I3),
    lua("open_latch_notifies_no_waiter", &[(
        "count == 1 and tell('open') or 0, now}",
        "count == 1 and redis.call('UNLINK', tickets) * 0 or 0, now}",
    )], LATCHES_FAULT_FREE, I3),
    lua("deletion_notifies_no_waiter", &[(
        "tell(left or 'gone')",
        "redis.call('UNLINK', tickets) * 0",
    )], LATCHES_FAULT_FREE, I3),
    lua("deletion_opens", &[("tell(left or 'gone')", "tell('open')")], LATCHES_FAULT_FREE, I13),
    lua("end_opens", &[("elseif count and count < 1 then\n", "elseif not count or count < 1 then\n")], LATCHES_FAULT_FREE, I13),
    lua("open_latch_waited_for", &[(
        "if not count or count < 1 then\n  takes_writes(latch)\n  return {count and 'OPEN' or 'NONE', now}",
        "if not count then\n  takes_writes(latch)\n  return {'NONE', now}",
    )], LATCHES_FAULT_FREE, I13),
    lua("late_wait_honoured", &[(
        "if not redis.call('ZSCORE', tickets, id) and is_late(not_after) then return {'STALE', now} end\n",
        "",
    )], LATCHES_NETWORK, I13),
    lua("late_count_honoured", &[(
        "if is_late(not_after) then return {'STALE', now} end\nif not count or count < 1",
        "if not count or count < 1",
    )], scene("late_count"), I10),
    lua("counted_twice", &[(
        "if is_known(id) then\n  takes_writes(latch)\n  return {'COUNT',",
        "if false then\n  return {'COUNT',",
    )], LATCHES_NETWORK, I10),
    lua("call_forgotten_with_its_latch", &[
        ("outlive(calls, known_until - now + 1)", "redis.call('PEXPIRE', calls, math.max(ends - now, 1))"),
    ], LATCHES_NETWORK, I10),
    lua("refused_call_forgotten", &[("unchanged('-' .. id)\n  return {'EXISTS'", "takes_writes(latch)\n  return {'EXISTS'")], scene("refused_set"), I10),
    lua("idle_call_forgotten", &[("  if resent then return remember(member, function() end) end\n", "")], scene("idle_count"), I10),
    lua("call_forgotten_after_its_first_copy", &[
        ("redis.call('ZADD', calls, known_until, member)", "redis.call('ZADD', calls, not_after, member)"),
        ("outlive(calls, known_until - now + 1)", "outlive(calls, not_after - now + 1)"),
    ], scene("later_copy"), I10),
    rust("call_sent_anew", Mutant::CallSentAnew, LATCHES_NETWORK, I10),
    lua("cancelled_waiter_stays", &[(
        "redis.call('ZREM', tickets, id) == 1",
        "redis.call('ZSCORE', tickets, id)",
    )], LATCHES_FAULT_FREE, I7),
    lua("rest_waits_for_the_next_latch", &[(
        "if left and tell(left) == 1 then return {'MORE', now} end\n",
        "",
    )], scene("rest_of_a_latch"), &["I3", "I13"]),
    lua("rest_not_known", &[("    redis.call('ZADD', tickets, '0', word)\n", "")], LATCHES_FAULT_FREE, &["I3", "I7", "I10", "I13"]),
    lua("tickets_for_ever", &[("pcall(outlive, tickets, QUEUE_TTL)", "true")], LATCHES_FAULT_FREE, I9),

    // Mistakes with several masters.
    rust("uptime_ignored", Mutant::UptimeIgnored, scene("young_votes"), I1),
    rust("answers_count_as_votes", Mutant::AnswersCountAsVotes, scene("refused_proposal"), I2),
    rust("vote_from_answer", Mutant::VoteFromAnswer, scene("slow_votes"), I1),
    rust("vote_regained_with_fresh_token", Mutant::VoteRegainedWithFreshToken, scene("regained_vote"), I2),
    rust("regained_vote_barred", Mutant::RegainedVoteBarred, scene("barred_vote"), I3),
    rust("unused_votes_left", Mutant::UnusedVotesLeft, scene("late_vote"), I3),
    rust("late_votes_kept", Mutant::LateVotesKept, scene("vote_after_release"), I3),
    rust("turn_before_votes", Mutant::TurnBeforeVotes, scene("early_turn"), I3),

    lua("claim_passes_the_queue", &[(
        "if redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5]) ~= 0 then\n",
        "if redis.call('EXISTS', KEYS[3]) ~= 0 then\n",
    )], scene("claimed_turn"), I4),
    lua("free_claim_passes_the_queue", &[(
        "redis.call('EXISTS', lock, KEYS[3], KEYS[4], KEYS[5]) == 0",
        "redis.call('EXISTS', lock, KEYS[3]) == 0",
    )], scene("claimed_turn"), I4),
    lua("turn_left_to_nobody", &[(
        "local waited_for = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0\n",
        "local waited_for = false\n",
    )], scene("early_turn"), I3),

    lua("vote_for_ever", &[
        (
            "local token = accepted and proposal or '0'\n",
            "local token = accepted and proposal or '0'\nredis.call('HSET', lock, id, token)\nlocal lock = id\n",
        ),
        ("local token = proposal\n", "local token = proposal\nredis.call('HSET', lock, id, token)\nlocal lock = id\n"),
    ], scene("slow_votes"), I9),

    // What is left.
    rust("timeout_ignored", Mutant::TimeoutIgnored, NETWORK, I11),
    rust("no_clean_up_on_expiry", Mutant::NoCleanUpOnExpiry, scene("late_renewal"), I3),
    lua("queue_for_ever", &[
        ("  if is_new and type(redis.pcall('PEXPIRE', queue, 'QUEUE_TTL')) ~= 'number' then forget_queue() end\n", ""),
        ("  redis.call('PEXPIRE', queue, 'QUEUE_TTL')\n", ""),
    ], FAULT_FREE, I9),
    rust("no_clean_up_on_drop", Mutant::NoCleanUpOnDrop, FAULT_FREE, &["I3", "I7"]),
    rust("no_release_on_drop", Mutant::NoReleaseOnDrop, FAULT_FREE, &["I3", "I7"]),

    // Mistakes about runs that happen once in a period.
    lua("period_with_two_runs", &[("local counts = last and last >= begins and (", "local counts = last and last > time and (")],
        scene("once_in_a_period"), I16),
    lua("period_from_the_last_run", &[("local begins = time - (time - first) % (period * 1000)\n", "local begins = time - period * 1000\n")],
        scene("once_in_a_period"), I16),
    lua("run_beside_another", &[("if held[1] or counts or is_another or by == id then\n", "if counts or is_another or by == id then\n")],
        scene("once_in_a_period"), &["I1", "I16"]),
    lua("run_in_another_period", &[("local is_another = first > 0 and begins ~= first\n", "local is_another = false\n")],
        scene("once_by_cron"), I16),

    // Mistakes about elections.
    lua("election_end_unnoted", &[("if revision and what ~= 'ended' and term ~= holder then", "if false then")],
        scene("last_term"), I19),
    lua("election_copy_noted", &[("number + 0 >= new_number + 0", "number + 0 > new_number + 0")],
        scene("elections"), I19),
    lua("election_change_untold", &[("  send('open', ids)\n", "")],
        scene("elections"), I19),

    // Mistakes about barriers.
    lua("one_party_short", &[("local passes = not stays and waiting + 1 >= own_parties\n", "local passes = waiting + 2 >= own_parties\n")],
        scene("barrier"), I20),
    lua("pass_untold", &[("    if client then tell(client, numbered", "    if false then tell(client, numbered")],
        scene("barrier"), I3),
    lua("leave_breaks_nothing", &[("  break_generation(all_tickets(), why_broken() or LEFT, math.max(keep, life))\n", "  redis.call('ZREM', tickets, id)\n")],
        scene("barrier"), I20),
    lua("party_arrives_again", &[("if known then\n  takes_writes(barrier)\n  return {'ENDED', known, now}\n", "if false then\n  takes_writes(barrier)\n  return {'ENDED', known, now}\n")],
        scene("barrier"), I20),
    rust("arrives_before_it_has_left", Mutant::ArrivesBeforeItHasLeft, scene("barrier"), I20),
    lua("one_leaves_alone", &[("  are_ready = are_ready and word == ready\n", "")], scene("double_barrier"), I21),
    lua("nobody_breaks_inside", &[("  return ends <= now and EXPIRED or nil\n", "  return nil\n")], scene("dead_inside"), I3),
    lua("dead_party_counts", &[("  return ends <= now and EXPIRED or nil\n", "  return nil\n")],
        scene("dead_party"), I3),

    // Mistakes about rate limiters.
    lua("permits_come_back_twice", &[("math.max(micros - written, 0) * 1000", "math.max(micros - written, 0) * 2000")],
        scene("rate"), I17),
    lua("check_beside_the_waiters", &[("local limited = wait > longest\n", "local limited = wait > longest and longest > 0\n")],
        scene("rate"), I17),
    lua("waits_for_the_clock", &[("math.max(micros - written, 0) * 1000", "(micros - written) * 1000")],
        scene("rate"), I17),
    rust("permits_from_request", Mutant::PermitsFromRequest, scene("rate"), I17),
    rust("permits_taken_again", Mutant::PermitsTakenAgain, scene("lost_checks"), I18),
];
