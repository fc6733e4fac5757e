-- Ends an acquisition that was given up, wherever it stands: its ticket goes, its hold is released.
-- KEYS: permits leases queue tickets fence
-- ARGV: ticket from limit inbox_prefix counts_everyone
-- Reply: CANCELLED more now | RELEASED more now | GONE more now
-- from is 1 or -1: the end of the queue that the ticket is nearer to, head or tail. more = 1: call again.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ticket, limit = ARGV[1], tonumber(ARGV[3])
local inbox_prefix, counts_everyone = ARGV[4], ARGV[5] == '1'
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
open_queue()

local outcome = remove(ticket, ARGV[2]) and 'CANCELLED' or 'GONE'
local id = parse(ticket)
local held = id and held_by(id)
if held then
  end_hold(id, held)
  outcome = 'RELEASED'
end
-- Always: those behind a ticket that asked for much may fit.
local more = promote({})
drop_ended()
return {outcome, more, now}
