-- Renews the leases of many holds. Never creates a key; one key of a wrong type does not stop the others.
-- KEYS: lock...
-- ARGV: [attempt_id lease_ms]...
-- Reply: now [held]...
-- held is 1 if the attempt id holds the lock, 0 if not, -1 if the key has a wrong type. lease_ms 0 looks without renewing;
-- a lease that lasts longer stays as it is.
-- Every other error is raised: a server that takes no writes has not said that a hold is over.

--@include clock
--@include absent
local _, now = read_clock()

local reply = {now}
for i, lock in ipairs(KEYS) do
  local id, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local held = redis.pcall('HEXISTS', lock, id)
  if type(held) ~= 'number' then
    -- The second call raises what the first one returned.
    held = wrong_type(held) and -1 or redis.call('HEXISTS', lock, id)
  end
  if held == 1 and lease ~= '0' then
    -- Never shorter: this may be a late copy, and the lease may have been extended since. Always written: a caller that
    -- waits for replicas waits for this.
    held = redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), tonumber(lease)))
  end
  if held ~= 1 then takes_writes(lock) end
  reply[i + 1] = held
end
return reply
