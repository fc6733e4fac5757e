-- Renews the leases of many holds of permits, each of which is stored short: see the fragment sole.
-- KEYS: permits...
-- ARGV: [attempt_id lease_ms longest_ms extended]...
-- Reply: now [held]...
-- Arguments and reply are those of permit_renew. held is also -2, if the attempt id has permits that are stored in
-- full. Their lease stays as it is, and may be over: call permit_renew for them.

--@include clock
--@include absent

local reply = {now}
for i, lock in ipairs(KEYS) do
  local id, lease, longest, extended = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
  local fields = redis.pcall('HMGET', lock, id, 'limit', 'used')
  if fields.err and not wrong_type(fields) then
    -- The second call raises what the first one returned.
    redis.call('HMGET', lock, id, 'limit', 'used')
  end
  local units, token, longest_before = string.match(fields[1] or '', '^(%d+) (%d+) ?(%d*)$')
  if fields.err then
    token = -1
  elseif not fields[1] then
    token = 0
  elseif not units or fields[2] or fields[3] then
    token = -2
  elseif lease ~= '0' then
    local held, stored = units .. ' ' .. token, tonumber(longest_before) or 0
--@include renewed
  end
  if token == 0 or token == -1 then takes_writes(lock) end
  reply[i + 1] = token
end
return reply
