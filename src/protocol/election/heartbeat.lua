-- Keeps the attempt ids of one client waiting for a change of an election, and what is known of it. If others are left
-- to be told of a change, the next of them are.
-- KEYS: lock watchers changes
-- ARGV: inbox_prefix known [attempt_id ticket_ttl_ms]...
-- Reply: now ttl_ms more [WAITING | OPEN]...
-- OPEN: there may be a change after the revision known. ttl_ms is what is left of the leader's lease. more is 1 if
-- others are left still: then it is to be called again.

local lock, tickets, changes = KEYS[1], KEYS[2], KEYS[3]
local inbox_prefix, known = ARGV[1], ARGV[2] + 0
--@include clock
--@include outlive
--@include absent
--@include latch_messages
--@include changes
load_changes()

local more = settle(held_term())
local is_new = revision and revision + 0 > known
local states, waiting = {}, false
for i = 3, #ARGV, 2 do
  local outcome = 'OPEN'
  if not is_new and redis.call('ZSCORE', tickets, ARGV[i]) then
    redis.call('ZADD', tickets, 'XX', now + ARGV[i + 1], ARGV[i])
    outcome, waiting = 'WAITING', true
  end
  states[#states + 1] = outcome
end
if waiting then
  outlive(tickets, QUEUE_TTL)
  outlive(changes, QUEUE_TTL)
else
  takes_writes(lock)
end
local left = untold()
if left then more = tell(left) end
return {now, redis.call('PTTL', lock), more, unpack(states)}
