-- Sets how many permits a semaphore in the format of Redisson's RPermitExpirableSemaphore has, taken ones included.
-- KEYS: counter leases mark
-- ARGV: new not_after_ms known_until_ms resent channel how
-- Reply: SET now | STALE now
-- If more permits are taken, the number of free ones is below zero until enough of them are given back. A second copy
-- of a call changes nothing, see the fragment mark. The message is the number of free permits, if that grows. how is
-- that of the fragment publish.

local counter, leases, mark = KEYS[1], KEYS[2], KEYS[3]
local new, not_after, known_until, resent = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local channel, how = ARGV[5], ARGV[6]
--@include clock
--@include absent
--@include publish
--@include mark
--@include stored

if redis.call('GET', mark) then
  takes_writes(counter)
  return {'SET', now}
end
if is_late() then return {'STALE', now} end
if wrong then return wrong end
local free = new - redis.call('ZCARD', leases)
local more = free - (count or 0)
if count and more == 0 then
  unchanged('0')
  return {'SET', now}
end
local function change() redis.call('INCRBY', counter, string.format('%.0f', more)) end
if more > 0 and free > 0 then
  announced('0', string.format('%.0f', free), function() redis.call('INCRBY', mark, '0') end, change)
else
  changed('0', change)
end
return {'SET', now}
