-- Releases the hold and hands the lock to the next waiter; with a ticket, also queues up for the next turn.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id inbox_prefix counts_everyone ticket ticket_ttl_ms listens
-- Reply: RELEASED more now [message]... | GRANTED token more now [message]... | NOT_HELD more now
-- ticket may be empty. GRANTED: released, and the ticket was next. Whoever does not hold the lock queues nothing.
-- listens = 1: the caller looks in the reply for messages to its client, which are not sent to its inbox then.

local id = ARGV[1]
--@include hold

local held = redis.call('HEXISTS', lock, id) == 1
if held then free = false end
local ticket = ARGV[4]
if ticket == '' and redis.call('EXISTS', queue, tickets) == 0 then
  if held then redis.call('DEL', lock) else takes_writes(lock) end
  return {held and 'RELEASED' or 'NOT_HELD', 0, now}
end

local inbox_prefix, counts_everyone = ARGV[2], ARGV[3] == '1'
--@include queue

if not held then
  takes_writes(lock)
  local more = promote({})
  return {'NOT_HELD', more, now}
end
ends(id)
if ARGV[6] == '1' then listener = string.match(id, '^([^:]+):') end
if ticket ~= '' then enqueue(ticket, waits(ticket), ARGV[5]) end
local more, taken = promote({[ticket] = true})
vacate()
if taken[ticket] then return {'GRANTED', taken[ticket], more, now, unpack(told)} end
return {'RELEASED', more, now, unpack(told)}
