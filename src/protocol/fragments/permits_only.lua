-- Fragment: the hold of permits that nothing else is stored of.
-- Expects the locals: permits, leases, now. Expects the fragment permit_token.

local function limit_only_hold(id, lease)
  redis.call('ZADD', leases, now + lease, id)
  redis.call('PEXPIRE', leases, lease)
  redis.call('PEXPIRE', permits, lease)
  keep_counter(lease)
end

-- Grants units if neither permits nor leases exist, and returns the token.
local function write_only_hold(id, lease, units)
  local token = token_for(units, lease)
  redis.call('HSET', permits, id, units .. ' ' .. token, 'used', units)
  local ok, why = pcall(limit_only_hold, id, lease)
  if not ok then
    -- A hold must not last for ever.
    redis.call('UNLINK', permits, leases)
    error(why, 0)
  end
  return token
end
