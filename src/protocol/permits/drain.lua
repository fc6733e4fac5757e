-- Takes all permits that are free, without waiting and without passing those who wait.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id lease_ms limit not_after_ms inbox_prefix counts_everyone
-- Reply: GRANTED units now | BUSY more now | STALE now
-- BUSY: no permit is free, somebody waits, or there is more to reap. A second copy replies how many the first one took,
-- and takes no others.
-- not_after_ms 0 means no limit. more = 1: call again, there is more to reap, to drop or to grant than one call may.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease, limit, not_after = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local inbox_prefix, counts_everyone = ARGV[5], ARGV[6] == '1'
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
open_queue()

local units = held_by(id)
if units then
  extend(id, lease)
  return {'GRANTED', units, now}
end
-- A request that lay in a frozen server's buffer must not take permits for a client that gave up.
if not_after > 0 and now > not_after then return {'STALE', now} end

local more, _, rest = promote({})
-- As for a try, waiters that cannot be notified do not count.
units = rest == 'none' and more == 0 and limit - used or 0
if units > 0 then write_hold(id, lease, units) end
drop_ended()
if units > 0 then return {'GRANTED', units, now} end
takes_writes(permits)
return {'BUSY', more, now}
