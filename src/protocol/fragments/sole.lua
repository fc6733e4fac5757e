-- Steps: store in full a hold that is stored short. One that begins while nothing else is stored is a field of the hash
-- alone, whose life is its lease. What counts holds, or ends one of several, needs the rest.
-- Expects the locals: permits, leases. Sets the local: sole, the units of a hold that was stored short, as text; nil if
-- there was none.

local hold = redis.call('HGETALL', permits)
local sole = not hold[3] and string.match(hold[2] or '', '^(%d+) %d+ ?%d*$')
if sole then
  -- Before Redis 7.2 the time passes in a script. What is left is read before the clock, so that the lease does not
  -- become shorter. In the last millisecond it is 0, and a key with that life would be deleted.
  local left = math.max(redis.call('PTTL', permits), 1)
  local seen = redis.call('TIME')
  redis.call('ZADD', leases, seen[1] * 1000 + math.floor(seen[2] / 1000) + left, hold[1])
  if type(redis.pcall('PEXPIRE', leases, left)) ~= 'number' then
    -- Not a key for ever. The second call raises what the first one returned.
    redis.call('UNLINK', leases)
    redis.call('PEXPIRE', permits, left)
  end
  redis.call('PEXPIRE', permits, left)
  redis.call('HSET', permits, 'used', sole)
end
