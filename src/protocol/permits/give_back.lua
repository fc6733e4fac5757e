-- Gives some units of a hold back and hands them to the next waiters. The hold goes on with the rest.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id rest limit inbox_prefix counts_everyone
-- Reply: RELEASED more now | GONE more now
-- rest: the units that the hold has afterwards, at most. The units of a hold never become more, so that a late copy, or
-- one that is overtaken by another call, changes nothing. GONE: the attempt id holds nothing. more = 1: call again.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, rest, limit = ARGV[1], math.max(tonumber(ARGV[2]), 1), tonumber(ARGV[3])
local inbox_prefix, counts_everyone = ARGV[4], ARGV[5] == '1'
--@include clock
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
-- A server that is out of memory lets a script that has begun to write go on to its end. It refuses a first write that
-- takes memory, so the first one takes none.
takes_writes(permits)
--@include load
--@include queue
--@include promote
open_queue()

local held = held_by(id)
if held and held > rest then
  local after = string.match(redis.call('HGET', permits, id), '^%d+(.*)$')
  used = used - held + rest
  redis.call('HSET', permits, id, rest .. after, 'used', used + leaving)
end
local more = promote({})
drop_ended()
return {held and 'RELEASED' or 'GONE', more, now}
