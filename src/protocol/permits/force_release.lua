-- For operators: takes holds away from their clients, and tells them.
-- KEYS: permits leases queue tickets fence
-- ARGV: limit inbox_prefix counts_everyone [attempt_id]...
-- Reply: holds token more now
-- holds: how many of the attempt ids held. token: larger than that of the writer among them and smaller than that of
-- the next one; 0 if there was no writer. more = 1: call again without attempt ids.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local limit, inbox_prefix, counts_everyone = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
--@include clock
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
--@include permits_end
-- A server that is out of memory lets a script that has begun to write go on to its end. It refuses a first write that
-- takes memory, so the first one takes none.
takes_writes(permits)
--@include load
--@include queue
--@include promote
--@include inbox
open_queue()

local taken, token = 0, '0'
for n = 4, #ARGV do
  local id = ARGV[n]
  local units, held = held_by(id)
  if units then
    -- Only the last hold may still be stored when the next one is granted.
    drop_ended()
    if fences and units == ALL_UNITS then
      -- The hold may have outlived the counter, and its guard may have any token of a budget.
      local known = string.format('%.0f', held + LARGEST_BUDGET - 1)
      token = reserve(1, redis.call('PTTL', leases), known)
    end
    local client = string.match(id, '^([^:]+):')
    if client then
      -- The answer changes nothing: a right that is missing is an error here.
      subscribers(client)
      -- To the inbox without a slot: a holder that has not waited reads no other.
      redis.call('PUBLISH', string.match(inbox_prefix, '^[^{]*') .. client, 'revoked ' .. id)
    end
    end_hold(id, units)
    taken = taken + 1
  end
end
local more = promote({})
drop_ended()
return {taken, token, more, now}
