-- Asks for the next hand-off budget of a hold that goes on: granted if no other ticket waits; else a ticket queues up.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id known_token lease_ms budget ticket ticket_ttl_ms not_after_ms
-- Reply: GRANTED token now | QUEUED now | NOT_HELD now | STALE now
-- The hold keeps its attempt id and gets a new token, the first of the budget. A hold whose token is larger than
-- known_token has got its budget by an earlier copy of the call. After a failover that has lost a budget, it is
-- smaller. A caller that does not hold the lock queues nothing.
-- The longest lease that is stored with an extended hold stays there.

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, known, lease, budget, ticket = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ticket_ttl, not_after = ARGV[6], tonumber(ARGV[7])
--@include clock
--@include counter
--@include token
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include place
--@include ahead
open_queue()

local held = not free and redis.call('HGET', lock, id)
if not held then
  takes_writes(lock)
  return {'NOT_HELD', now}
end
local present, longest = string.match(held, '^(%d*)(.*)$')
if counter(present) > counter(known) then
  extend(lease)
  return {'GRANTED', present, now}
end

return ahead(known, function(token)
  redis.call('HSET', lock, id, token .. longest)
  extend(lease)
end)
