-- Waits for a latch to be counted down.
-- KEYS: latch tickets calls
-- ARGV: attempt_id ticket_ttl_ms not_after_ms
-- Reply: OPEN now | NONE now | QUEUED ttl_ms now | STALE now
-- OPEN: the latch has been counted down. NONE: there is no latch, and the call does not wait. If an earlier copy of the
-- call has waited, its latch has ended since, counted down or not. ttl_ms is what is left of the latch.

local latch, tickets = KEYS[1], KEYS[2]
local id, ttl, not_after = ARGV[1], ARGV[2], tonumber(ARGV[3])
--@include clock
--@include outlive
--@include absent
--@include latch
load_latch()

if not count or count < 1 then
  takes_writes(latch)
  return {count and 'OPEN' or 'NONE', now}
end
if not redis.call('ZSCORE', tickets, id) and is_late(not_after) then return {'STALE', now} end

--@include watched
return {'QUEUED', ends - now, now}
