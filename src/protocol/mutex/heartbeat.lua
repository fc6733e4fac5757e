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
open_queue()

local live = {}
if waiting > 0 then
  for i = 3, #ARGV, 2 do
    if expiry(ARGV[i]) then
      refresh(ARGV[i], ARGV[i + 1])
      live[ARGV[i]] = true
    end
  end
  if next(live) then keep_queue() end
end

local more, granted = promote(live)
for ticket in pairs(granted) do live[ticket] = nil end

local reply = {now, redis.call('PTTL', lock), more}
for i = 3, #ARGV, 2 do
  local outcome, token = 'GONE', ''
  if live[ARGV[i]] then
    outcome = 'WAITING'
  else
    local id, _, lease = parse(ARGV[i])
    local held = id and redis.call('HGET', lock, id)
    if held then
      extend(lease)
      outcome, token = 'GRANTED', string.match(held, '^%d*')
    else
      takes_writes(lock)
    end
  end
  reply[#reply + 1] = outcome
  reply[#reply + 1] = token
end
return reply
