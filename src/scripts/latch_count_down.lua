-- Counts a latch down by one; at zero, tells everybody who waits.
-- KEYS: latch tickets
-- ARGV: wire_id not_after_ms inbox_prefix
-- Reply: COUNT n now | STALE now
-- n is what is left; a latch that does not exist has 0. Each wire id counts once: a second copy is told what is left
-- now, and one that comes after not_after_ms is STALE. Clients are told `open <wire id> <wire id>...`.

local id, not_after, inbox_prefix = ARGV[1], tonumber(ARGV[2]), ARGV[3]
--@include latch

if redis.call('HEXISTS', latch, id) == 1 then return {'COUNT', count or 0, now} end
if late(not_after) then return {'STALE', now} end
remember(id, not_after)
if not count or count < 1 then return {'COUNT', 0, now} end

redis.call('HSET', latch, 'count', count - 1)
if count == 1 then wake(inbox_prefix, 'open') end
return {'COUNT', count - 1, now}
