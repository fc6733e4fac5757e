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
load_permits()
--@include queue
--@include place
--@include promote
open_queue()

local live = {}
if waiting > 0 then
  for i = 4, #ARGV, 2 do
    if expiry(ARGV[i]) then
      local _, _, _, amount, own = parse(ARGV[i])
      -- A stored limit that it counted on may be lost.
      if amount and exceeds_limit(amount, own) then
        remove(ARGV[i], '1')
      else
        refresh(ARGV[i], ARGV[i + 1])
        live[ARGV[i]] = true
      end
    end
  end
  if next(live) then keep_queue() end
end

local more, granted = promote(live)
drop_ended()
for ticket in pairs(granted) do live[ticket] = nil end

local reply = {now, first_left(), more}
for i = 4, #ARGV, 2 do
  local outcome, token = 'GONE', ''
  if live[ARGV[i]] then
    outcome = 'WAITING'
  else
    local id, _, lease = parse(ARGV[i])
    local held, stored_token
    if id then held, stored_token = held_by(id) end
    if held then
      extend(id, lease)
      outcome, token = 'GRANTED', stored_token
    else
      takes_writes(permits)
    end
  end
  reply[#reply + 1] = outcome
  reply[#reply + 1] = token
end
return reply
