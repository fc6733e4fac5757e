-- Looks at a semaphore in the format of Redisson's RPermitExpirableSemaphore without changing anything.
-- KEYS: counter leases
-- ARGV: listed
-- Reply: now available acquired [permit_id ttl_ms]...
-- Permits whose leases are over are available, although they are not given back yet. listed is how many of the others
-- are told, those that end first. Their ids are hexadecimal digits. ttl_ms is -1 for a lease without an end.

local counter, leases, listed = KEYS[1], KEYS[2], ARGV[1]
--@include clock
--@include absent
--@include stored

if wrong then return wrong end
local ended = redis.call('ZCOUNT', leases, '-inf', now)
local acquired = redis.call('ZCARD', leases) - ended
if not count and acquired == 0 then takes_writes(counter) end
local reply = {now, math.max((count or 0) + ended, 0), acquired}
local held = {}
if listed ~= '0' then
  local from = '(' .. string.format('%.0f', now)
  held = redis.call('ZRANGEBYSCORE', leases, from, '+inf', 'WITHSCORES', 'LIMIT', 0, listed)
end
for i = 1, #held, 2 do
  local digits = string.gsub(held[i], '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  reply[#reply + 1], reply[#reply + 2] = digits, held[i + 1] + 0 < NO_END and held[i + 1] - now or -1
end
return reply
