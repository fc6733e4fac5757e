-- Steps: read the arguments of a request for a vote, and what the master has voted before.
-- Returns the reply OTHER if that vote was for other masters.
-- Sets the locals: lock, fence, id, lease, proposal, owner, granted, set; last and by, the token that the master has
-- accepted and the hold that proposed it; other, the set of masters of the last vote; held, what is stored if the
-- attempt has the lock; busy, whether another one has it; late, whether the request has come too late.
-- Expects the fragments clock and process.

local lock, fence = KEYS[1], KEYS[2]
local id, lease, proposal, owner, granted, not_after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local set = ARGV[7]
local late = not_after > 0 and now > not_after

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
