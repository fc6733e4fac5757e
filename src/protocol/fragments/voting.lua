-- Steps: read what the master has voted before. Returns the reply OTHER if that was for other masters.
-- Sets the locals: last and by, the token that the master has accepted and the hold that proposed it; other, the set of
-- masters of the last vote; held, what is stored if the attempt has the lock; busy, whether another one has it.
-- Expects what the fragments clock, process and ballot set.

local held = redis.call('HGET', lock, id)
local busy = not held and redis.call('EXISTS', lock) == 1
local last, by, others
if set ~= '' or not busy then
  last, by, others = string.match(redis.call('GET', fence) or '', '^(%d+) ([^ ]*) ?(.*)$')
end
local other, ends = string.match(others or '', '^([^ ]+) (%d+)$')
if set ~= '' and other and other ~= set and not held and (busy or now < tonumber(ends)) then
  -- Versions next to each other differ by one master, so majorities of both share one.
  local name, version, size = string.match(set, '^(.*)/(%d+)/(%d+)$')
  local its, theirs, number = string.match(other, '^(.*)/(%d+)/(%d+)$')
  if not name or its ~= name or math.abs(theirs - version) ~= 1 or math.abs(number - size) ~= 1 then
    return {'OTHER', other, run_id, uptime, saved, micros}
  end
end
