-- Reads the labels of clients.
-- KEYS: labels leases
-- ARGV: client...
-- Reply: now [label]...
-- A client without a label, and one whose label is over, has an empty one.

local labels, leases = KEYS[1], KEYS[2]
--@include clock

local found = redis.call('HMGET', labels, unpack(ARGV))
local reply = {now}
for n, client in ipairs(ARGV) do
  local ends = found[n] and redis.call('ZSCORE', leases, client)
  reply[n + 1] = ends and ends + 0 > now and found[n] or ''
end
return reply
