-- Steps: read which process of the server this is. Only the server knows how long it has been up. A connection cannot
-- tell: the server may restart just before this call.
-- INFO takes longer than a whole vote. A server that starts counts that as its last save, so a server whose last save
-- is the one that the caller knows has not restarted since.
-- Expects the local: known, the time of the last save of the process that the caller knows, in whole seconds, 0 for
-- none.
-- Sets the locals: run_id, `=` if it is the process that the caller knows, empty if the server does not say it; uptime,
-- in whole seconds, 0 with `=`; saved, the time of the last save, 0 if the server does not say it.

local saved = redis.pcall('LASTSAVE')
if type(saved) ~= 'number' then saved = 0 end
local run_id, uptime = '=', 0
if saved == 0 or saved ~= tonumber(known) then
  local info = redis.call('INFO', 'server')
  run_id = string.match(info, 'run_id:(%w+)') or ''
  uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or 0)
end
