-- Counts a latch in the format of Redisson's RCountDownLatch down by one; at zero, deletes it and wakes all who wait.
-- KEYS: counter mark
-- ARGV: not_after_ms known_until_ms resent channel how
-- Reply: COUNT n now | STALE now
-- n is what is left; a latch that does not exist has 0. A second copy of a call gets the answer of the first, see the
-- fragment mark. The message at zero is `0`. how is that of the fragment publish.

local counter, mark = KEYS[1], KEYS[2]
local not_after, known_until, resent = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local channel, how = ARGV[4], ARGV[5]
--@include clock
--@include absent
--@include publish
--@include mark
--@include stored

local known = redis.call('GET', mark)
if known then
  takes_writes(counter)
  return {'COUNT', tonumber(known), now}
end
if is_late() then return {'STALE', now} end
if wrong then return wrong end
if not count then
  unchanged('0')
  return {'COUNT', 0, now}
end
if count > 1 then
  local left = count - 1
  changed(string.format('%.0f', left), function() redis.call('INCRBY', counter, '-1') end)
  return {'COUNT', left, now}
end
-- A count that Java has set to zero is open already, and ends like one of 1.
local function try()
  redis.call('DEL', mark)
  remember('0')
end
announced('0', '0', try, function() redis.call('DEL', counter) end)
return {'COUNT', 0, now}
