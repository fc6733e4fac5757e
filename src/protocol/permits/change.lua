-- Gives up one hold for another: with more or fewer units, as a writer becomes a reader and a sole reader the writer,
-- or with as many, as another client takes over what was left for it. Or gives up two, as an upgradable reader that has
-- got the rest of the units becomes the writer.
-- KEYS: permits leases queue tickets fence
-- ARGV: old_id new_id units lease_ms limit not_after_ms inbox_prefix counts_everyone rest_id guard_token
-- Reply: CHANGED token more now | BUSY more now | NOT_HELD more now | STALE now
-- Never waits: BUSY, if the units are not free; then the new hold has as many as the old one, and its token. Either way
-- the old hold is over, so that a late copy of the request finds that it is decided, and changes nothing. The hold of
-- rest_id, which may be empty, is over too. NOT_HELD: one of the old holds was not there; then neither is. The first
-- copy's effect is reported to a second one. Fewer units keep the token, and wake those who fit then; all units get a
-- new token. more = 1: call again (heartbeat; after BUSY the same: with leases left to end, nothing may be decided
-- yet). not_after_ms 0 means no limit.
-- guard_token is the token that is kept. The guard of a hold that was handed off, or that has got its next budget
-- ahead, has another one than is stored. If it is empty, the one that is stored is kept.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local old_id, new_id, units, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local not_after, inbox_prefix, counts_everyone = tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
--@include clock
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
--@include permits_end
--@include load
--@include queue
--@include promote
open_queue()

local held, token = held_by(new_id)
if held then
  extend(new_id, ARGV[4])
else
  local old, old_token = held_by(old_id)
  local rest = ARGV[9] == '' and 0 or held_by(ARGV[9])
  if not old or not rest then
    takes_writes(permits)
    if old then end_hold(old_id, old) elseif rest and rest > 0 then end_hold(ARGV[9], rest) end
    local more = promote({})
    drop_ended()
    return {'NOT_HELD', more, now}
  end
  -- A client that gave up cancels the new attempt id, and the old one if that was its own. If the new one's cancel
  -- comes first, this call must not come between.
  if not_after > 0 and now > not_after then return {'STALE', now} end
  local busy = units > old + rest and not has_capacity(units - old - rest)
  -- Some of those in the way may be over.
  if busy and call_again == 1 then return {'BUSY', 1, now} end
  held, token = busy and old or units, ARGV[10] == '' and old_token or ARGV[10]
  -- The counter may be lost, and the clock may stand before the old token, or the last that was reserved with it. What
  -- other readers had is not known then.
  if fences and held == ALL_UNITS then token = reserve(1, ARGV[4], string.format('%.0f', old_token + LARGEST_BUDGET - 1)) end
  write_hold(new_id, ARGV[4], held, token)
  remove_hold(old_id, old)
  if rest > 0 then remove_hold(ARGV[9], rest) end
end
local more = promote({})
drop_ended()
if held ~= units then return {'BUSY', more, now} end
return {'CHANGED', token, more, now}
