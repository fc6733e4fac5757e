-- Renews the leases of many permits in the format of Redisson's RPermitExpirableSemaphore. Never creates a key; one key
-- of a wrong type does not stop the others.
-- KEYS: leases...
-- ARGV: [permit_id lease_ms longest_ms extended]...
-- Reply: now [held]...
-- held is an empty string if the lease of the permit is not over; the number 0 if it is, -1 if the key has a wrong
-- type. lease_ms 0 looks without renewing; a lease that lasts longer is not shortened. longest_ms and extended are
-- those of other renewals, and not read. Every other error is raised: a server that takes no writes has not said that a
-- lease is over.

local counter, leases
--@include clock
--@include absent
--@include publish
--@include timed

local function renew(id, lease)
  local permit = permit_of(id)
  local ends = redis.pcall('ZSCORE', leases, permit)
  if type(ends) == 'table' then
    if wrong_type(ends) then return -1 end
    -- Raises what the first call returned.
    redis.call('ZSCORE', leases, permit)
  end
  if not ends or tonumber(ends) <= now then return 0 end
  if lease ~= '0' then
    -- A server that is out of memory refuses a first write that takes memory, and must renew all the same.
    takes_writes(leases)
    -- The end is always written, because a caller that waits for replicas waits for this write.
    redis.call('ZADD', leases, 'XX', math.max(ends + 1, now + lease), permit)
  end
  return ''
end

local reply = {now}
for i = 1, #KEYS do
  leases = KEYS[i]
  local held = renew(ARGV[4 * i - 3], ARGV[4 * i - 2])
  if held == 0 then takes_writes(leases) end
  reply[i + 1] = held
end
return reply
