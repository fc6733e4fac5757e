-- For operators: sets a limit that wins over those of the call sites, for a day after the last use at least.
-- KEYS: permits leases queue tickets fence
-- ARGV: limit not_after_ms inbox_prefix counts_everyone
-- Reply: LIMIT more now | STALE now
-- What is held stays held: a smaller limit drains. A ticket that asks for more than the limit is dropped, and its
-- client is told `gone <attempt id>`: at once among the first tickets, else when it comes to the head or sends a
-- heartbeat. not_after_ms 0 means no limit. more = 1: call again (heartbeat).

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local limit, not_after = tonumber(ARGV[1]), tonumber(ARGV[2])
local inbox_prefix, counts_everyone = ARGV[3], ARGV[4] == '1'
--@include clock
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
--@include load
--@include queue
--@include promote
--@include inbox
open_queue()

-- A copy that comes late must not undo what was set after it.
if not_after > 0 and now > not_after then return {'STALE', now} end

local old = stored
limit, stored = tonumber(ARGV[1]), tonumber(ARGV[1])
redis.call('HSET', permits, 'limit', limit, 'used', used + leaving)
local ok, why = pcall(outlive, permits, LIMIT_TTL)
if not ok then
  -- Not a key for ever.
  stored = old
  if used + leaving == 0 and not old then redis.call('DEL', permits) end
  error(why, 0)
end

local index = 0
for _ = 1, math.min(waiting, MAX_EXCEEDING) do
  local ticket = redis.call('LINDEX', queue, index)
  local id, client, _, amount, own = parse(ticket)
  if id and exceeds_limit(amount, own) then
    remove(ticket, '1')
    tell(client, 'gone ' .. id)
  else
    index = index + 1
  end
end
local more = promote({})
drop_ended()
return {'LIMIT', more, now}
