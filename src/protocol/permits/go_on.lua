-- Asks for the next hand-off budget of a hold. Unlike ask_ahead, it queues no ticket: the caller names those that its
-- cohort has in the queue already. The budget is granted if no other ticket waits.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id lease_ms limit [ticket]...
-- Reply: GRANTED 0 now | WANTED now | NOT_HELD now
-- WANTED: another ticket waits, or more units are held than the limit in force. A copy that comes late extends the
-- lease of a hold that still exists, and does nothing else.

local permits, leases, queue, tickets = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, lease, limit = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include outlive
--@include absent
--@include permit_renewed
--@include queue

--@include held_permit

local fields = redis.call('HMGET', permits, 'limit', 'used')
waiting = redis.call('LLEN', queue)
if waiting ~= redis.call('ZCARD', tickets) then forget_queue() end
local others = live_waiters()
for i = 4, #ARGV do
  if (expiry(ARGV[i]) or 0) > now then others = others - 1 end
end
-- A hold that is stored short is the only one.
if others > 0 or (tonumber(fields[2]) or 0) > (tonumber(fields[1]) or limit + 0) then
  takes_writes(permits)
  return {'WANTED', now}
end
renew(permits, leases, id, lease, '0', '0')
return {'GRANTED', token, now}
