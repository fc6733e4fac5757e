-- Keeps the tickets of one client alive, and tells what became of each.
-- KEYS: lock queue tickets fence
-- ARGV: inbox_prefix counts_everyone [ticket ticket_ttl_ms]...
-- Reply: now ttl_ms more [WAITING '' | GRANTED token | GONE '']...
-- ttl_ms is what is left of the lease of the hold in the way. A granted hold gets its full lease again, counted
-- from this call. more = 1: call again.

local inbox_prefix, counts_everyone = ARGV[1], ARGV[2] == '1'
--@include hold
--@include queue

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

local more, taken = promote(live)
for ticket in pairs(taken) do live[ticket] = nil end

local reply = {now, redis.call('PTTL', lock), more}
for i = 3, #ARGV, 2 do
  local outcome, token = 'GONE', ''
  if live[ARGV[i]] then
    outcome = 'WAITING'
  else
    local id, _, lease = parse(ARGV[i])
    if id and redis.call('HEXISTS', lock, id) == 1 then
      extend(lease)
      outcome, token = 'GRANTED', redis.call('HGET', lock, 'token')
    else
      takes_writes(lock)
    end
  end
  reply[#reply + 1] = outcome
  reply[#reply + 1] = token
end
return reply
