-- Fragment: the fencing tokens.
-- Expects the locals: fence (the counter's key), clock (the time in microseconds). Expects the fragment counter.

-- Reserves `budget` fencing tokens for a grant with that lease, and returns the first. They are larger than all earlier
-- ones, and than `known` if that is given.
local function reserve(budget, lease, known)
  local token
--@include reserve
  if known and counter(known) >= token + 0 then
    -- The counter was lost, and the clock stands before what is known.
    redis.call('SET', fence, known, 'PX', fence_ttl)
    return reserve(budget, lease)
  end
  return token
end
