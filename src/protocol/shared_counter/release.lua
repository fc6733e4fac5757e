-- Gives permits to a semaphore in the format of Redisson's RSemaphore, and wakes those who wait.
-- KEYS: counter mark
-- ARGV: permits not_after_ms known_until_ms resent channel how taken
-- Reply: RELEASED now | STALE now
-- taken is `yes` if mark is that of a call which has taken the permits, or of a call that has taken none; and `unknown`
-- if the mark tells how many permits were taken, if any: then permits is ignored, and a copy of that call which comes
-- later takes nothing. A negative number of permits takes them away, also those that are not there. The message is the
-- new value, as Redisson sends it: so many threads of each client of Java are woken. how is that of the fragment
-- publish.

local counter, mark = KEYS[1], KEYS[2]
local permits, not_after, known_until, resent = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local channel, how, taken = ARGV[5], ARGV[6], ARGV[7]
--@include clock
--@include absent
--@include publish
--@include mark
--@include stored

-- A mark of 0 is that of an earlier copy of this call, or of a call that took nothing.
local known = redis.call('GET', mark)
if known == '0' then
  takes_writes(counter)
  return {'RELEASED', now}
end
if is_late() then return {'STALE', now} end
if taken == 'unknown' then permits = tonumber(known or 0) end
-- Permits have no lease, so a full server must take them back. After a write that needs no memory, a server accepts all
-- writes of the script.
if permits >= 0 then takes_writes(counter) end
if permits == 0 then
  remember('0')
  return {'RELEASED', now}
end
if wrong then return wrong end
local function change()
  redis.call('INCRBY', counter, string.format('%.0f', permits))
end
local value = (count or 0) + permits
if permits > 0 and value > 0 then
  local function try() redis.call('INCRBY', mark, '0') end
  announced('0', string.format('%.0f', value), try, change, known)
else
  changed('0', change, known)
end
return {'RELEASED', now}
