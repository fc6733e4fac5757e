-- Waits for a change of an election.
-- KEYS: lock watchers changes
-- ARGV: attempt_id ticket_ttl_ms known leads not_after_ms inbox_prefix
-- Reply: OPEN now | QUEUED ttl_ms now | STALE now
-- OPEN: there may be something that the caller does not know, by the revision known and the term leads. ttl_ms is what
-- is left of the leader's lease.

local lock, watchers, changes = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, known, leads, not_after, inbox_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] + 0, ARGV[6]
local tickets = watchers
--@include clock
--@include outlive
--@include absent
--@include changes
load_changes()
--@include news

if is_new then
  takes_writes(lock)
  tell_watchers()
  return {'OPEN', now}
end
if not_after > 0 and now > not_after and not redis.call('ZSCORE', tickets, id) then return {'STALE', now} end
--@include watched
return {'QUEUED', redis.call('PTTL', lock), now}
