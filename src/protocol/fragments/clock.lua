-- Fragment: the server's clock. Every script reads it once, and no client clock is ever sent.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
