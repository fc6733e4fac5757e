-- Gives permits back and hands them to the next waiters; with a ticket, also queues up for the next turn.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id limit inbox_prefix counts_everyone ticket ticket_ttl_ms listens
-- Reply: 1 | RELEASED more now [message]... | GRANTED token more now [message]... | NOT_HELD more now
-- 1, a number and no list: released; no one waits. ticket may be empty. GRANTED: released, and the ticket was next. A
-- caller that holds nothing gives nothing back and queues nothing. more = 1: call again (heartbeat).
-- listens = 1: the caller looks in the reply for messages to its client, which are not sent to its inbox then.

local KEYS, ARGV = KEYS, ARGV
local permits, leases, queue, tickets = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, ticket = ARGV[1], ARGV[5]

local length = ticket == '' and redis.call('LLEN', queue)

-- The fast paths, before any function is made: there is no queue, and no limit is stored.
if length == 0 then
  local fields = redis.call('HMGET', permits, id, 'limit', 'used')
  local units, used = string.match(fields[1] or '', '^(%d+) %d+ ?%d*$'), fields[3]
  if units and not fields[2] and not used then
    -- A sole hold, see the fragment sole.
    redis.call('HDEL', permits, id)
    return 1
  end
  local rest = units and not fields[2] and string.find(used, '^%d+$') and used - units
  -- The release also succeeds if the lease is over but the hold is still stored: a script removes expired holds before
  -- it grants their units to somebody else.
  if rest and (rest > 0 or rest == 0 and redis.call('ZCARD', leases) == 1) and redis.call('ZREM', leases, id) == 1 then
    if rest > 0 then
      redis.call('HDEL', permits, id)
      redis.call('HSET', permits, 'used', rest)
    else
      redis.call('HDEL', permits, id, 'used')
    end
    return 1
  end
end

--@include clock
local fence, limit = KEYS[5], tonumber(ARGV[2])
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
--@include permits_end
-- A server that is out of memory lets a script that has begun to write go on to its end. It refuses a first write that
-- takes memory, so the first one takes none.
takes_writes(permits)
--@include load

if length == 0 and sound then
  local held = held_by(id)
  if held then remove_hold(id, held) end
  return {held and 'RELEASED' or 'NOT_HELD', 0, now}
end

local inbox_prefix, counts_everyone = ARGV[3], ARGV[4] == '1'
--@include queue
--@include promote
waiting = length
open_queue()

local held = held_by(id)
if not held then
  local more = promote({})
  drop_ended()
  return {'NOT_HELD', more, now}
end
end_hold(id, held)
if ARGV[7] == '1' then listener = string.match(id, '^([^:]+):') end
if ticket ~= '' then
--@include place
  enqueue(ticket, is_queued(ticket), ARGV[6])
end
local more, granted = promote({[ticket] = true})
drop_ended()
if granted[ticket] then return {'GRANTED', granted[ticket], more, now, unpack(messages)} end
return {'RELEASED', more, now, unpack(messages)}
