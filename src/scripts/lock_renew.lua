-- Renews the leases of many holds. Never creates a key; one bad key does not stop the others.
-- KEYS: lock...
-- ARGV: [wire_id lease_ms]...
-- Reply: now [held]...
-- held is 1 if the wire id holds the lock, 0 if not, -1 if the key is unusable. lease_ms 0 looks without renewing.

--@include clock
local reply = {now}
for i, lock in ipairs(KEYS) do
  local id, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local held = redis.pcall('HEXISTS', lock, id)
  if held == 1 and lease ~= '0' then held = redis.pcall('PEXPIRE', lock, lease) end
  reply[i + 1] = type(held) == 'number' and held or -1
end
return reply
