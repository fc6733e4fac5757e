-- Fragment: granting a lock.
-- Expects the locals: lock, fence, clock.

-- Whether the lock can be granted. reap_expired() sets it, unless the script has set it before.
local free

-- The attempt id of the hold that ends in this call. Its field is deleted last, because a cluster that is moving a key
-- refuses to write it again after it was deleted.
local ending

local function write_hold(id, lease, budget)
  local token
--@include reserve
--@include hold
  if id == ending then ending = nil end
  free = false
  return token
end
