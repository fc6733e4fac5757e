-- Takes permits of a rate limiter (GCRA), unless they are free only after the longest wait.
-- KEYS: tat
-- ARGV: cost_ns burst_ns longest_ns not_after_ms
-- Reply: TAKEN wait_ns ahead_ns now | LIMITED wait_ns ahead_ns now | STALE now
-- cost_ns is by how much the permits move the TAT on, and burst_ns how far ahead of the clock it may be without a wait.
-- ahead_ns is how far it is ahead now. LIMITED: nothing was taken. A second copy takes once more, so no copy is sent
-- whose predecessor may have been executed.

local key = KEYS[1]
local cost, burst, longest, not_after = ARGV[1], ARGV[2], ARGV[3] + 0, ARGV[4]
--@include clock
--@include tat

if not_after ~= '0' and now > not_after + 0 then return {'STALE', now} end
local wait = math.max(ahead + cost - burst, 0)
local limited = wait > longest
-- A refusal writes nothing, unless the clock was set back: the time that passes from now on would not count.
if limited and not (written and written + 0 > micros) then return {'LIMITED', wait, ahead, now} end

if not limited then ahead = ahead + cost end
local ttl = math.ceil(ahead / 1000000)
redis.call('SET', key, clock .. ' ' .. string.format('%.0f', ahead), 'PX', string.format('%.0f', ttl))
return {limited and 'LIMITED' or 'TAKEN', wait, ahead, now}
