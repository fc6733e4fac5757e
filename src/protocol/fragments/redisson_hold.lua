-- Steps: try the right to publish, and make the functions that take a lock in Redisson's format.
-- Expects the locals: lock, id, lease, not_after, now, probe, how. Expects the fragment absent.

--@include probe

-- Whether the attempt id holds the lock: this is a second copy of the call. The lease begins anew, and is not
-- shortened.
local function held()
  if redis.call('HEXISTS', lock, id) == 0 then return false end
  if redis.call('PTTL', lock) < lease + 0 then redis.call('PEXPIRE', lock, lease) end
  return true
end

-- A request that lay in a frozen server's buffer must not lock for a client that gave up.
local function is_late()
  return not_after ~= '0' and now > not_after + 0
end

-- What is left of the lease of the hold in the way. No value if there is none.
local function in_the_way()
  local left = redis.call('PTTL', lock)
  if left == -2 then return end
  takes_writes(lock)
  return left
end

local function write_hold()
  local token = '1'
--@include hold
end
