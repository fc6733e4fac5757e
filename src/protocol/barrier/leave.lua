-- Notes that a party inside a double barrier is ready to leave. When all are, all leave.
-- KEYS: barrier tickets ended
-- ARGV: attempt_id keep_ms inbox_prefix
-- Reply: ENDED number now | QUEUED ttl_ms now | GONE now
-- As with barrier_arrive. GONE: nothing is known of the attempt id. A second copy changes nothing.

local barrier, tickets, ended = KEYS[1], KEYS[2], KEYS[3]
local id, inbox_prefix = ARGV[1], ARGV[3]
--@include clock
--@include outlive
--@include absent
--@include barrier
load_barrier()
answered[id] = true

-- Parties leave a server that is out of memory, too: see barrier_cancel.
takes_writes(barrier)

local known = end_of(id)
if known then return {'ENDED', known, now} end
if not redis.call('ZSCORE', tickets, id) then return {'GONE', now} end
local life = math.max(keep, ARGV[2] + 0)
local ids = all_tickets()
-- Who leaves has passed the entry, and all were inside then.
local broken = why_broken() or #ids < parties and FORGOTTEN
if broken then
  break_generation(ids, broken, life)
  return {'ENDED', end_of(id), now}
end
redis.call('HSET', barrier, id, ready)
local are_ready = true
for _, word in ipairs(redis.call('HMGET', barrier, unpack(ids))) do
  are_ready = are_ready and word == ready
end
if not are_ready then return {'QUEUED', ends - now, now} end
local numbered = end_generation(ids, 0, 1, life)
redis.call('UNLINK', tickets)
tell_first(#ids, numbered)
return {'ENDED', end_of(id), now}
