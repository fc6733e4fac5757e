-- Breaks the generation that waits at a barrier.
-- KEYS: barrier tickets ended
-- ARGV: attempt_id not_after_ms known_until_ms resent inbox_prefix
-- Reply: RESET now | GONE now | STALE now
-- GONE: none waited. A second copy gets the same reply and changes nothing, not even a generation that has begun since.
-- A call that found none is remembered only if it was sent before (resent), as with the calls of a latch.

local barrier, tickets, ended = KEYS[1], KEYS[2], KEYS[3]
local id, not_after, known_until, inbox_prefix = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[5]
--@include clock
--@include outlive
--@include absent
--@include barrier
load_barrier()

local known = end_of(id)
if known then
  takes_writes(barrier)
  return {known % PLACES == NONE_WAITED and 'GONE' or 'RESET', now}
end
if not_after > 0 and now > not_after then return {'STALE', now} end
local life = math.max(known_until - now, 0) + 1
if ends then
  -- A server that is out of memory does this too: see barrier_cancel.
  takes_writes(barrier)
  break_generation(all_tickets(), why_broken() or BROKEN_BY_RESET, math.max(keep, life), id)
  return {'RESET', now}
end
if ARGV[4] == '1' then
  note({string.format('%.0f', now * PLACES + NONE_WAITED), id}, life)
else
  takes_writes(barrier)
end
return {'GONE', now}
