-- Fragment: the hold of a lock. The hash lock has one field: the attempt id of the hold, with its fencing token.
-- Expects the local: lock. Expects the fragment token.

-- Whether the lock can be granted. reap_expired() finds out, unless the script has done so before.
local free

-- The attempt id whose hold ends in this call. Its field goes last: a key that is deleted and then written again is refused
-- half-way by a cluster that is moving it.
local ending

local function write_hold(id, lease, budget)
  local token = reserve(budget, lease)
  redis.call('HSET', lock, id, token)
  if redis.pcall('PEXPIRE', lock, lease) ~= 1 then
    -- A hold must not last for ever. The second call raises what the first one returned.
    redis.call('HDEL', lock, id)
    redis.call('PEXPIRE', lock, lease)
  end
  if id == ending then ending = nil end
  free = false
  return token
end
