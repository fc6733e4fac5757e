-- Lets a party leave a barrier. That breaks the generation of those that wait with it.
-- KEYS: barrier tickets ended
-- ARGV: attempt_id keep_ms inbox_prefix
-- Reply: CANCELLED now | GONE now
-- GONE: it did not wait. A copy of its arrival that comes later finds that it has left, for keep_ms.

local barrier, tickets, ended = KEYS[1], KEYS[2], KEYS[3]
local id, life, inbox_prefix = ARGV[1], ARGV[2] + 0, ARGV[3]
--@include clock
--@include outlive
--@include absent
--@include barrier
load_barrier()
answered[id] = true

-- Parties leave a server that is out of memory, too: it looks at the first write of a script, and this one needs none.
takes_writes(barrier)
if redis.call('ZSCORE', tickets, id) then
  break_generation(all_tickets(), why_broken() or LEFT, math.max(keep, life))
  return {'CANCELLED', now}
end
if not end_of(id) then
  note({string.format('%.0f', now * PLACES + LEFT), id}, life)
end
return {'GONE', now}
