-- Counts a latch down by one; at zero, tells everybody who waits.
-- KEYS: latch tickets calls
-- ARGV: attempt_id not_after_ms known_until_ms resent inbox_prefix
-- Reply: COUNT n more now | STALE now
-- n is what is left; a latch that does not exist has 0. Each attempt id counts once: a second copy is told what is left
-- now, and one that comes after not_after_ms is STALE. resent is 1 if an earlier copy may have been executed. Clients
-- are told `open <attempt id> <attempt id>...`; more is 1 if some are left: latch_cancel, called again, tells them.

local latch, tickets, calls = KEYS[1], KEYS[2], KEYS[3]
local id, not_after, known_until, resent, inbox_prefix =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5]
--@include clock
--@include outlive
--@include absent
--@include latch
--@include latch_messages
--@include latch_calls
load_latch()

local left = untold()
if is_known(id) then
  takes_writes(latch)
  return {'COUNT', count or 0, left and 1 or 0, now}
end
if is_late(not_after) then return {'STALE', now} end
if not count or count < 1 then
  unchanged(id)
  return {'COUNT', 0, 0, now}
end

remember(id, function() redis.call('HSET', latch, 'count', count - 1) end)
return {'COUNT', count - 1, count == 1 and tell('open') or 0, now}
