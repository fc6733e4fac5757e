-- Fragment: the fencing counter.
-- Expects the locals: fence (the counter's key), time (what TIME replied)

-- Reads a counter. One that is out of range was not written by a script, and must not break the lock.
local function counter(text)
  local n = tonumber(text or 0) or 0
  return n >= 0 and n < COUNTER_LIMIT and n or 0
end

-- How long the counter lives after a grant with that lease. After that the clock alone makes tokens grow, unless it was set
-- back by as much.
local function counter_ttl(lease)
  return lease * 2 > COUNTER_TTL and lease * 2 or 'COUNTER_TTL'
end

-- Reserves `budget` fencing tokens for a grant with that lease, and returns the first. They are larger than all earlier
-- ones, and than `known` if that is given. The clock is the floor, so that tokens grow even after the counter was lost;
-- so in the usual case the clock's token is stored at once, and the old counter is smaller.
local function reserve(budget, lease, known)
  local first = time[1] * 1000000 + time[2]
  local last = string.format('%.0f', first + budget - 1)
  local ttl = counter_ttl(lease)
  local floor = counter(redis.call('SET', fence, last, 'PX', ttl, 'GET'))
  if known then floor = math.max(floor, counter(known)) end
  if floor >= first then
    first = floor + 1
    redis.call('SET', fence, string.format('%.0f', first + budget - 1), 'PX', ttl)
  end
  return string.format('%.0f', first)
end
