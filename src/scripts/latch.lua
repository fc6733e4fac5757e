-- Fragment: a count-down latch.
-- Expects KEYS: latch tickets calls
-- The hash latch has `count`, and `ends`, the server's ms when there is no latch any more. The sorted set tickets has the
-- wire ids that wait, with their expiry.

local latch = KEYS[1]
--@include clock
--@include outlive

local fields = redis.call('HMGET', latch, 'count', 'ends')
local count, ends = fields[1], tonumber(fields[2]) or 0
-- Nil if there is no latch. What is no number was not written by us, and keeps nobody waiting.
count = count and ends > now and (tonumber(count) or 0) or nil

-- A copy that comes later than this is refused. 0 is no limit.
local function late(not_after)
  return not_after > 0 and now > not_after
end

-- Raises the server's refusal if it takes no writes now, by a write that changes nothing. An answer is not to be believed
-- without it: a replica that is still empty, or lags behind, has no latch either, or an old one. It comes before other
-- writes only where these are to be done by a server that is out of memory, which looks at the first write of a script.
local function takes_writes()
  redis.call('HDEL', latch, '')
end
