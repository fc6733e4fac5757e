-- Looks at permits without changing anything.
-- KEYS: permits leases queue tickets fence
-- ARGV: limit listed
-- Reply: now used limit waiters held [attempt_id units token ttl_ms]... [ticket]...
-- limit is the one in force, held the number of holds that follow. Only holds and waiters whose time is not over count;
-- at most a thousand holds are looked at, those that end first. The tickets are the live ones among the first `listed`
-- of the queue.

--@include clock
local permits, leases, queue, tickets, listed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]
local fields = redis.call('HMGET', permits, 'used', 'limit')
local ends = redis.call('ZRANGE', leases, 0, MAX_INSPECTED - 1, 'WITHSCORES')
if not fields[1] and not fields[2] and not ends[1] then
  -- Stored short, see the fragment sole.
  local hold = redis.call('HGETALL', permits)
  if hold[1] and not hold[3] then
    ends, fields[1] = {hold[1], now + redis.call('PTTL', permits)}, string.match(hold[2], '^%d+')
  end
end
local used, held = #ends > 0 and tonumber(fields[1]) or 0, 0
local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
local reply = {now, 0, tonumber(fields[2]) or tonumber(ARGV[1]), waiters, 0}
for i = 1, #ends, 2 do
  local id, left = ends[i], tonumber(ends[i + 1]) - now
  local units, token = string.match(redis.call('HGET', permits, id) or '', '^(%d+) (%d+) ?%d*$')
  if units and left >= 0 then
    held = held + 1
    for _, word in ipairs({id, tonumber(units), token, left}) do reply[#reply + 1] = word end
  elseif units then
    used = used - units
  end
end
reply[2], reply[5] = used, held
--@include listed
return reply
