-- Fragment: the renewal of one hold of permits.
-- Expects the local: now. Expects the fragments outlive and absent.

-- Returns the token as text if the attempt id holds permits and its lease is not over; the number 0 if not, -1 if a key
-- has a wrong type. A lease of 0 looks without renewing. The other arguments are those of the
-- script permit_renew.
local function renew(permits, leases, id, lease, longest, extended)
  local fields = redis.pcall('HMGET', permits, id, 'limit', 'used')
  if fields.err then
    if wrong_type(fields) then return -1 end
    -- Here and below the second call raises what the first one returned.
    redis.call('HMGET', permits, id, 'limit', 'used')
  end
  local ends = redis.pcall('ZSCORE', leases, id)
  if type(ends) == 'table' then
    if wrong_type(ends) then return -1 end
    redis.call('ZSCORE', leases, id)
  end
  local units, token, longest_before = string.match(fields[1] or '', '^(%d+) (%d+) ?(%d*)$')
  local stored = tonumber(longest_before) or 0
  if units and not ends and not fields[2] and not fields[3] then
    -- Stored short, see the fragment sole.
    local lock, held = permits, units .. ' ' .. token
    if lease ~= '0' then
--@include renewed
    end
    return token
  end
  if not fields[1] or tonumber(ends or 0) < now then return 0 end
  if lease ~= '0' then
    -- Always written: a caller that waits for replicas waits for this.
    local left = redis.call('PTTL', leases)
    local ttl = left > lease + 0 and left or lease
    redis.call('PEXPIRE', leases, ttl)
    -- Before Redis 7.2 a script sees the time pass, so that this may be later than before. The other key must not end
    -- first.
    outlive(permits, fields[2] and math.max(ttl, LIMIT_TTL) or ttl)
    -- Not shorter than what any copy of any call asks for: this may be a late one. The keys may outlive the leases.
    local lasts = tonumber(ends) - now
    if lasts <= lease + 0 then
      redis.call('ZADD', leases, 'XX', now + lease, id)
    elseif longest ~= '0' and lasts > longest + 0 and longest + 0 >= stored then
      redis.call('ZADD', leases, 'XX', now + longest, id)
    end
    if extended == '1' and token and longest + 0 > stored then
      redis.call('HSET', permits, id, units .. ' ' .. token .. ' ' .. longest)
    end
  end
  return token or ''
end
