-- Renews the leases of many holds. Never creates a key; one bad key does not stop the others.
-- KEYS: [permits leases]...
-- ARGV: [wire_id lease_ms]...
-- Reply: now [held]...
-- held is 1 if the wire id holds permits and its lease is not over, 0 if not, -1 if a key is unusable. lease_ms 0 looks
-- without renewing.

--@include clock
--@include outlive

local function renew(permits, leases, id, lease)
  local hold, limit = unpack(redis.call('HMGET', permits, id, 'limit'))
  local ends = tonumber(redis.call('ZSCORE', leases, id) or 0)
  if not hold or ends <= now then return 0 end
  if lease > 0 then
    outlive(leases, lease)
    outlive(permits, limit and math.max(lease, DAY) or lease)
    redis.call('ZADD', leases, 'XX', now + lease, id)
  end
  return 1
end

local reply = {now}
for i = 1, #KEYS / 2 do
  local ok, held = pcall(renew, KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  reply[i + 1] = ok and held or -1
end
return reply
