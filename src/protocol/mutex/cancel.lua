-- Ends an acquisition that is given up, wherever it stands: its ticket goes, its hold is released.
-- KEYS: lock queue tickets fence
-- ARGV: ticket from inbox_prefix counts_everyone
-- Reply: CANCELLED more now | RELEASED more now | GONE more now
-- from is 1 or -1: the end of the queue that the ticket is nearer to, head or tail. more = 1: call again.

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ticket = ARGV[1]
local inbox_prefix, counts_everyone = ARGV[3], ARGV[4] == '1'
--@include clock
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include promote
open_queue()

local outcome = remove(ticket, ARGV[2]) and 'CANCELLED' or 'GONE'
local id = parse(ticket)
if id and redis.call('HEXISTS', lock, id) == 1 then
  end_hold(id)
  outcome = 'RELEASED'
end
local more = promote({})
drop_ended()
return {outcome, more, now}
