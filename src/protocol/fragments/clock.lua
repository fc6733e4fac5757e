-- Fragment: the server's clock. A script reads it once, and no client's clock is ever sent.

-- Returns what TIME replies, seconds and microseconds, and the time in milliseconds.
local function read_clock()
  local time = redis.call('TIME')
  return time, time[1] * 1000 + math.floor(time[2] / 1000)
end
