-- Keeps the tickets of one client alive, and says what became of each.
-- KEYS: lock queue tickets fence
-- ARGV: inbox_prefix counts_everyone [ticket ticket_ttl_ms]...
-- Reply: now ttl_ms more [WAITING '' | GRANTED token | GONE '']...
-- ttl_ms is what is left of the lease of the hold in the way. A granted hold gets its full lease again, counted
-- from this call. more = 1: call again.

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local inbox_prefix, counts_everyone = ARGV[1], ARGV[2] == '1'
--@include clock
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include place
--@include promote
--@include heartbeat
open_queue()

local live = keep_alive(3, function() return true end)
local more, granted = promote(live)
for ticket in pairs(granted) do live[ticket] = nil end
-- Asks again, because the message may have been lost, or its client may have been granted the lock since.
if next(live) then
  local holder = redis.call('HGETALL', lock)[1]
--@include wanted
end

return add_outcomes({now, redis.call('PTTL', lock), more}, 3, live, lock, function(id, lease)
  local held = redis.call('HGET', lock, id)
  if not held then return end
  extend(lease)
  return string.match(held, '^%d*')
end)
