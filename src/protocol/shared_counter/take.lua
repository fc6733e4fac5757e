-- Takes permits of a semaphore in the format of Redisson's RSemaphore, if there are enough.
-- KEYS: counter mark
-- ARGV: permits not_after_ms known_until_ms resent channel how probe
-- Reply: TAKEN n now | STALE now
-- permits 0 means all that are there, but MAX_SHARED at most. n is how many were taken: all that were asked for, or 0.
-- A second copy of a call gets the answer of the first, see the fragment mark; it is 0 if the call was given up by
-- shared_release. probe is a channel to which the right to publish is tried, or empty. how is that of the fragment
-- publish.

local counter, mark = KEYS[1], KEYS[2]
local wanted, not_after, known_until, resent = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local channel, how, probe = ARGV[5], ARGV[6], ARGV[7]
--@include clock
--@include absent
--@include publish
--@include probe
--@include mark
--@include stored

local known = redis.call('GET', mark)
if known then
  takes_writes(counter)
  return {'TAKEN', tonumber(known), now}
end
if is_late() then return {'STALE', now} end
if wrong then return wrong end
if not count or count < math.max(wanted, 1) then
  unchanged('0')
  return {'TAKEN', 0, now}
end
local taken = string.format('%.0f', wanted > 0 and wanted or math.min(count, MAX_SHARED))
changed(taken, function() redis.call('INCRBY', counter, '-' .. taken) end)
return {'TAKEN', tonumber(taken), now}
