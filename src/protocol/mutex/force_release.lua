-- For operators: takes the lock from that holder, tells it, and reserves a token that fences it out.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id inbox_prefix counts_everyone
-- Reply: RELEASED token more now | NOT_HELD more now
-- The token is larger than the old holder's and smaller than the next one's. more = 1: call again.

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, inbox_prefix, counts_everyone = ARGV[1], ARGV[2], ARGV[3] == '1'
--@include clock
--@include counter
--@include token
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include promote
--@include inbox
open_queue()

local held = redis.call('HGET', lock, id)
if not held then
  takes_writes(lock)
  local more = promote({})
  return {'NOT_HELD', more, now}
end

-- A full server lets an operator take a lock, too: the first write takes no memory.
takes_writes(lock)
-- The hold may have outlived the counter, and its guard may have any token of a budget.
local known = string.format('%.0f', counter(string.match(held, '^%d*')) + LARGEST_BUDGET - 1)
local token = reserve(1, redis.call('PTTL', lock), known)
local client = string.match(id, '^([^:]+):')
if client then
  -- The answer changes nothing: a right that is missing is an error here, where the client's check at connect meets it.
  subscribers(client)
  -- To the inbox without a slot: a holder that has not waited reads no other.
  redis.call('PUBLISH', string.match(inbox_prefix, '^[^{]*') .. client, 'revoked ' .. id)
end
end_hold(id)
local more = promote({})
drop_ended()
return {'RELEASED', token, more, now}
