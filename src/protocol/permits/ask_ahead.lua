-- Asks for the next hand-off budget of a writer that goes on: granted if no ticket waits; else a ticket queues up.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id known_token lease_ms budget ticket ticket_ttl_ms not_after_ms
-- Reply: GRANTED token now | QUEUED now | NOT_HELD now | STALE now
-- The hold keeps its attempt id and gets a new token, the first of the budget. A hold whose token is larger than
-- known_token has got its budget by an earlier copy of the call. After a failover that has lost a budget, it is
-- smaller. A caller that does not hold queues nothing.
-- The longest lease that is stored with an extended hold stays there.
-- A hold of fewer than all units is no writer's: the reply is NOT_HELD.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, known, lease, budget, ticket = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ticket_ttl, not_after = ARGV[6], tonumber(ARGV[7])
--@include clock
--@include counter
--@include token
--@include outlive
--@include absent
--@include permit_renewed
--@include queue
--@include place
--@include ahead

--@include held_permit
local units, longest = string.match(redis.call('HGET', permits, id), '^(%d+) %d+(.*)$')
if tonumber(units) ~= ALL_UNITS then
  takes_writes(permits)
  return {'NOT_HELD', now}
end
if counter(token) > counter(known) then
  renew(permits, leases, id, lease, '0', '0')
  return {'GRANTED', token, now}
end

-- No other hold can be beside a writer's, so there is nothing to reap.
waiting = redis.call('LLEN', queue)
if waiting ~= redis.call('ZCARD', tickets) then forget_queue() end
return ahead(known, function(first)
  redis.call('HSET', permits, id, units .. ' ' .. first .. longest)
  renew(permits, leases, id, lease, '0', '0')
end)
