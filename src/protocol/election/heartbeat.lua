-- Keeps the attempt ids of one client waiting for a change of an election, and what is known of it.
-- KEYS: lock watchers changes
-- ARGV: inbox_prefix known leads [attempt_id ticket_ttl_ms]...
-- Reply: now ttl_ms [WAITING | OPEN]...
-- OPEN: there may be something that the caller does not know, by the revision known and the term leads. ttl_ms is what
-- is left of the leader's lease.

local lock, watchers, changes = KEYS[1], KEYS[2], KEYS[3]
local inbox_prefix, known, leads = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include outlive
--@include absent
--@include changes
load_changes()
--@include news

local states, waiting = {}, false
for i = 4, #ARGV, 2 do
  local outcome = 'OPEN'
  if is_new then
    redis.call('ZREM', watchers, ARGV[i])
  elseif redis.call('ZSCORE', watchers, ARGV[i]) then
    redis.call('ZADD', watchers, 'XX', now + ARGV[i + 1], ARGV[i])
    outcome, waiting = 'WAITING', true
  end
  states[#states + 1] = outcome
end
if waiting then
  outlive(watchers, QUEUE_TTL)
  outlive(changes, QUEUE_TTL)
else
  takes_writes(lock)
end
tell_watchers()
return {now, redis.call('PTTL', lock), unpack(states)}
