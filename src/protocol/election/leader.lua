-- Looks at an election without changing anything.
-- KEYS: lock changes
-- ARGV: known most
-- Reply: holder token now missed [change]...
-- holder is the attempt id of the leader, empty if there is none. The changes are those after the revision known, 0 for
-- none, the newest first, and not more than most. missed = 1: there may have been others after known.

local lock, changes = KEYS[1], KEYS[2]
local known = ARGV[1]
--@include clock

local hold = redis.call('HGETALL', lock)
local reply = {hold[1] or '', string.match(hold[2] or '', '^%d*'), now, 1}
for at = 1, ARGV[2] + 0 do
  local change = redis.call('LINDEX', changes, -at)
  if (change and string.match(change, '^%d*') or '0') == known then reply[4] = 0 end
  if not change or reply[4] == 0 then break end
  reply[#reply + 1] = change
end
return reply
