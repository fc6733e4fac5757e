-- Sets a counter of Redisson, an RCountDownLatch or an RSemaphore, if there is none.
-- KEYS: counter mark
-- ARGV: new not_after_ms known_until_ms resent channel how message
-- Reply: SET now | EXISTS now | STALE now
-- The counter is a string, which has no TTL, as Redisson gives it none. A second copy of a call gets the answer of the
-- first, see the fragment mark. The message is `1` for a latch: it tells Java's clients that a new count has begun. For
-- a semaphore it is the number of permits: so many threads of each client are woken. how is that of the fragment
-- publish.

local counter, mark = KEYS[1], KEYS[2]
local new, not_after, known_until, resent = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local channel, how, message = ARGV[5], ARGV[6], ARGV[7]
--@include clock
--@include absent
--@include publish
--@include mark
--@include stored

local known = redis.call('GET', mark)
if known then
  takes_writes(counter)
  return {known, now}
end
if is_late() then return {'STALE', now} end
if wrong then return wrong end
if count then
  unchanged('EXISTS')
  return {'EXISTS', now}
end
-- The mark was set by the same command.
announced('SET', message, function() end, function() redis.call('SET', counter, new) end)
return {'SET', now}
