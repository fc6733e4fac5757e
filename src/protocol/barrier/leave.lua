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

local known = end_of(id)
if known or not redis.call('ZSCORE', tickets, id) then
  takes_writes(barrier)
  if known then return {'ENDED', known, now} end
  return {'GONE', now}
end
local life = math.max(keep, ARGV[2] + 0)
local broken, ids = why_broken(), all_tickets()
if broken then
  break_generation(ids, broken, life)
  return {'ENDED', end_of(id), now}
end
redis.call('HSET', barrier, id, ready)
local are_ready = #ids >= parties
for _, word in ipairs(redis.call('HMGET', barrier, unpack(ids))) do
  are_ready = are_ready and word == ready
end
if not are_ready then return {'QUEUED', ends - now, now} end
local numbered = end_generation(ids, 0, 1, life)
redis.call('UNLINK', tickets)
tell_first(#ids, numbered)
return {'ENDED', end_of(id), now}
