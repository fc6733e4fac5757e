-- Keeps the tickets of one client alive, and tells what became of each.
-- KEYS: permits leases queue tickets fence
-- ARGV: limit inbox_prefix counts_everyone [ticket ticket_ttl_ms]...
-- Reply: now ttl_ms more [WAITING '' | GRANTED token | GONE '']...
-- ttl_ms is what is left of the first lease in the way, negative if there is none. A granted hold gets its full lease
-- again, counted from this call. GONE: the queue was lost, or the ticket asks for more than the limit in force; acquire
-- again. more = 1: call again.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local limit = tonumber(ARGV[1])
local inbox_prefix, counts_everyone = ARGV[2], ARGV[3] == '1'
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
--@include place
--@include promote
--@include heartbeat
open_queue()

local live = keep_alive(4, function(ticket)
  local _, _, _, amount, own = parse(ticket)
  -- A stored limit that it counted on may be lost.
  return not (amount and exceeds_limit(amount, own))
end)
local more, granted = promote(live)
drop_ended()
for ticket in pairs(granted) do live[ticket] = nil end

local left, holder = first_left()
-- Asks again, because the message may have been lost, or its client may have been granted the lock since.
if next(live) then
--@include wanted
end

return add_outcomes({now, left, more}, 4, live, permits, function(id, lease)
  local held, token = held_by(id)
  if not held then return end
  extend(id, lease)
  return token
end)
