-- Steps: read the server's clock, once in a script. No client's clock is ever sent.
-- Sets the locals: clock, the time in microseconds, as text, which is how commands take numbers fastest; micros, the
-- same as a number; now, the milliseconds.

local time = redis.call('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local micros = clock + 0
local now = (micros - micros % 1000) / 1000
