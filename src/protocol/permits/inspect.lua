-- Looks at permits without changing anything.
-- KEYS: permits leases queue tickets fence
-- ARGV: limit
-- Reply: used limit waiters now [attempt_id units token ttl_ms]...
-- limit is the one in force. Only holds and waiters whose time is not over count; at most a thousand holds are looked
-- at, those that end first.

--@include clock
local permits, leases = KEYS[1], KEYS[2]
local fields = redis.call('HMGET', permits, 'used', 'limit')
local ends = redis.call('ZRANGE', leases, 0, MAX_INSPECTED - 1, 'WITHSCORES')
if not fields[1] and not fields[2] and not ends[1] then
  -- Stored short, see the fragment sole.
  local hold = redis.call('HGETALL', permits)
  if hold[1] and not hold[3] then
    ends, fields[1] = {hold[1], now + redis.call('PTTL', permits)}, string.match(hold[2], '^%d+')
  end
end
local used, holds = #ends > 0 and tonumber(fields[1]) or 0, {}
for i = 1, #ends, 2 do
  local id, left = ends[i], tonumber(ends[i + 1]) - now
  local units, token = string.match(redis.call('HGET', permits, id) or '', '^(%d+) (%d+) ?%d*$')
  if units and left >= 0 then
    for _, word in ipairs({id, tonumber(units), token, left}) do holds[#holds + 1] = word end
  elseif units then
    used = used - units
  end
end
local waiters = redis.call('ZCOUNT', KEYS[4], '(' .. now, '+inf')
return {used, tonumber(fields[2]) or tonumber(ARGV[1]), waiters, now, unpack(holds)}
