-- Fragment: the fencing counter.
-- Expects clock.lua before it, and the local fence: the counter's key.

-- A counter out of range was not written by us, and must not break the lock.
local function counter(text)
  local n = tonumber(text) or 0
  return n >= 0 and n < COUNTER_LIMIT and n or 0
end

-- What the counter's key has, looked up once.
local stored_counter

local function fenced()
  if stored_counter == nil then stored_counter = redis.call('GET', fence) end
  return stored_counter
end

-- How long the counter lives after a grant. Once it is gone the clock alone makes tokens grow, which it does unless it was
-- set back by as much.
local function counter_life(lease)
  return math.max(COUNTER_TTL, 2 * lease)
end

-- Reserves `span` fencing tokens for a grant of that lease, and returns the first, larger than `known` if that is given.
-- The clock is the floor, so that tokens grow even after the counter was lost.
local function reserve(span, lease, known)
  local last = math.max(counter(fenced()), counter(known))
  local first = math.max(last + 1, time[1] * 1000000 + time[2])
  local token = string.format('%.0f', first)
  stored_counter = tonumber(span) == 1 and token or string.format('%.0f', first + span - 1)
  redis.call('SET', fence, stored_counter, 'PX', counter_life(lease))
  return token
end
