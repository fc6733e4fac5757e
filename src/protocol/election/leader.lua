-- Looks at an election without changing anything.
-- KEYS: lock tickets changes
-- ARGV: known most
-- Reply: holder token ttl_ms candidates now missed [change]...
-- holder is the attempt id of the leader, empty if there is none. The changes are those after the revision known, the
-- newest first, and not more than most. missed = 1: there may have been others in between.

local lock, tickets, changes = KEYS[1], KEYS[2], KEYS[3]
local known = ARGV[1] + 0
--@include clock

local hold = redis.call('HGETALL', lock)
local token = string.match(hold[2] or '', '^%d*')
local candidates = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
local reply = {hold[1] or '', token, redis.call('PTTL', lock), candidates, now, 1}
for at = 1, ARGV[2] + 0 do
  local change = redis.call('LINDEX', changes, -at)
  if not change then break end
  local revision = tonumber(string.match(change, '^%d+')) or 0
  if revision <= known then
    if revision == known then reply[6] = 0 end
    break
  end
  reply[#reply + 1] = change
end
return reply
