-- Fragment: a count-down latch.
-- Expects KEYS: latch tickets calls
-- The hash latch has `count`, and `ends`, the server's ms when there is no latch any more. The sorted set tickets has the
-- attempt ids that wait, with their expiry.

local latch = KEYS[1]
--@include clock
--@include outlive
--@include absent

local fields = redis.call('HMGET', latch, 'count', 'ends')
local count, ends = fields[1], tonumber(fields[2]) or 0
-- Nil if there is no latch. What is no number was not written by us, and keeps nobody waiting.
count = count and ends > now and (tonumber(count) or 0) or nil

-- A copy that comes later than this is refused. 0 is no limit.
local function late(not_after)
  return not_after > 0 and now > not_after
end
