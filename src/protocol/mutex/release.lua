-- Releases the hold and hands the lock to the next waiter; with a ticket, also queues up for the next turn.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id inbox_prefix counts_everyone ticket ticket_ttl_ms listens
-- Reply: 1 or 0 | RELEASED more now [message]... | GRANTED token more now [message]... | NOT_HELD more now
-- A number and no list if there is no queue: 1 released, 0 not held. ticket may be empty. GRANTED: released, and the
-- ticket was next. A caller that does not hold the lock queues nothing. listens = 1: the caller looks in the reply for
-- messages to its client, which are not sent to its inbox then.

local KEYS, ARGV = KEYS, ARGV
local lock, queue, tickets = KEYS[1], KEYS[2], KEYS[3]
local id, ticket = ARGV[1], ARGV[4]

-- The fast path, before any function is made: there is no queue. The deletion shows that the server takes writes, also
-- if there is nothing to delete.
local length = ticket == '' and redis.call('LLEN', queue)
if length == 0 then
  return redis.call('HDEL', lock, id)
end

local fence, inbox_prefix, counts_everyone = KEYS[4], ARGV[2], ARGV[3] == '1'
--@include clock
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include promote
waiting = length
--@include end_own
if ARGV[6] == '1' then listener = string.match(id, '^([^:]+):') end
if ticket ~= '' then
--@include place
  enqueue(ticket, is_queued(ticket), ARGV[5])
end
local more, granted = promote({[ticket] = true})
drop_ended()
if granted[ticket] then return {'GRANTED', granted[ticket], more, now, unpack(messages)} end
return {'RELEASED', more, now, unpack(messages)}
