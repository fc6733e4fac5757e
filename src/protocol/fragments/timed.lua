-- Fragment: the permits of a semaphore in the format of Redisson's RPermitExpirableSemaphore.
-- Expects the locals: counter, leases, now. Expects the fragments absent and publish.
-- counter is a string, the number of free permits. leases has the id of each permit that is taken, with the end of its
-- lease. Redisson's ids are 16 bytes, which no argument can be: calls spell them in hexadecimal digits.

local function permit_of(hex)
  return (string.gsub(hex, '%x%x', function(digits) return string.char(tonumber(digits, 16)) end))
end

-- Adds permits to the free ones, and wakes as many of those who wait as there are then. ended has their ids and ends,
-- as ZRANGEBYSCORE lists them. Without the right to publish, those who wait find out when they look again. The first
-- write takes no memory, so that a full server gives permits back.
local function give_back(ended)
  local ids, again = {}, {}
  for i = 1, #ended, 2 do
    ids[#ids + 1] = ended[i]
    again[#again + 1], again[#again + 2] = ended[i + 1], ended[i]
  end
  redis.call('ZREM', leases, unpack(ids))
  local free = redis.pcall('INCRBY', counter, #ids)
  if type(free) ~= 'number' then
    redis.call('ZADD', leases, unpack(again))
    -- Raises what the first call returned.
    redis.call('INCRBY', counter, #ids)
  end
  if free > 0 then publish(string.format('%.0f', free)) end
end

-- Gives back permits whose leases are over, MAX_EXPIRED at most. Returns whether there may be more.
local function sweep()
  local ended = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'WITHSCORES', 'LIMIT', 0, MAX_EXPIRED)
  if #ended > 0 then give_back(ended) end
  return #ended >= 2 * MAX_EXPIRED
end
