-- Gives permits back and hands them to the next waiters; with a ticket, also queues up for the next turn.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id limit inbox_prefix counts_everyone ticket ticket_ttl_ms listens
-- Reply: RELEASED more now [message]... | GRANTED token more now [message]... | NOT_HELD more now
-- ticket may be empty. GRANTED: released, and the ticket was next. Whoever does not hold gives nothing back and queues
-- nothing. more = 1: call again (touch). listens = 1: the caller looks in the reply for messages to its client, which
-- are not sent to its inbox then.

local id, ticket, limit = ARGV[1], ARGV[5], tonumber(ARGV[2])
--@include units

if sound and ticket == '' and redis.call('EXISTS', queue, tickets) == 0 then
  local held = held_by(id)
  if held then undo(id, held) else takes_writes(permits) end
  return {held and 'RELEASED' or 'NOT_HELD', 0, now}
end

local inbox_prefix, counts_everyone = ARGV[3], ARGV[4] == '1'
--@include queue

local held = held_by(id)
if not held then
  takes_writes(permits)
  local more = promote({})
  return {'NOT_HELD', more, now}
end
ends(id, held)
if ARGV[7] == '1' then listener = string.match(id, '^([^:]+):') end
if ticket ~= '' then enqueue(ticket, waits(ticket), ARGV[6]) end
local more, taken = promote({[ticket] = true})
vacate()
if taken[ticket] then return {'GRANTED', taken[ticket], more, now, unpack(told)} end
return {'RELEASED', more, now, unpack(told)}
