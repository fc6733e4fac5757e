-- Renews the leases of many leaders, and keeps what is known of them. Never creates a key; one key of a wrong type does
-- not stop the others.
-- KEYS: [lock changes]...
-- ARGV: [attempt_id lease_ms longest_ms extended]...
-- Reply: now [held]...
-- Arguments and reply are those of lock_renew.

--@include clock
--@include absent

local reply = {now}
for i = 1, #KEYS / 2 do
  local lock = KEYS[2 * i - 1]
  local id, lease, longest, extended = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
--@include renew
  if type(held) == 'string' and lease ~= '0' then
    redis.call('PEXPIRE', KEYS[2 * i], string.format('%.0f', math.max(QUEUE_TTL, 2 * lease)))
  end
  reply[i + 1] = held
end
return reply
