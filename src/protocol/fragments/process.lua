-- Steps: read which process of the server this is. Only the server knows how long it has been up. A connection cannot
-- tell: the server may restart just before this call.
-- Sets the locals: run_id, empty if the server does not say it; uptime, in whole seconds.

local info = redis.call('INFO', 'server')
local run_id = string.match(info, 'run_id:(%w+)') or ''
local uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or 0)
