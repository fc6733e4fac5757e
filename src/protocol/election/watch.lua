-- Waits for a change of an election.
-- KEYS: lock watchers changes
-- ARGV: attempt_id ticket_ttl_ms known not_after_ms inbox_prefix
-- Reply: OPEN now | QUEUED ttl_ms now | STALE now
-- OPEN: there is a change after the revision known. ttl_ms is what is left of the leader's lease.

local lock, tickets, changes = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, known, not_after, inbox_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4] + 0, ARGV[5]
--@include clock
--@include outlive
--@include absent
--@include latch_messages
--@include changes
load_changes()
settle(held_term())

if revision and revision + 0 > known + 0 then
  takes_writes(lock)
  return {'OPEN', now}
end
if not_after > 0 and now > not_after and not redis.call('ZSCORE', tickets, id) then return {'STALE', now} end
--@include watched
return {'QUEUED', redis.call('PTTL', lock), now}
