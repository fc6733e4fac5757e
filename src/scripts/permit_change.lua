-- Gives up one hold for another with more or fewer units: a writer becomes a reader, a sole reader the writer.
-- KEYS: permits leases queue tickets fence
-- ARGV: old_id new_id units lease_ms limit not_after_ms inbox_prefix counts_everyone
-- Reply: CHANGED token more now | NOT_HELD more now | BUSY more now | STALE now
-- A new hold, so that a late copy finds that the old one is over and changes nothing. The first copy's effect is
-- reported to a second one. Fewer units keep the token, and wake those who fit then; all units get a new token. Never
-- waits: BUSY, and the old hold stays, if the units are not free. more = 1: call again (touch; after BUSY the same).
-- not_after_ms 0 means no limit.

local old_id, new_id, units, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local not_after, inbox_prefix, counts_everyone = tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
--@include units
--@include queue

local changed, token = held_by(new_id)
if changed then
  extend(new_id, ARGV[4])
else
  local old, old_token = held_by(old_id)
  if not old then
    local more = promote({})
    return {'NOT_HELD', more, now}
  end
  -- The old hold stayed if an earlier copy was BUSY: one that comes late must not take it from whoever was told so.
  if not_after > 0 and now > not_after then return {'STALE', now} end
  if units > old and not room(units - old) then return {'BUSY', again, now} end
  -- The counter may be lost, and the clock may stand before the old token.
  token = fences and units == ALL and reserve(1, old_token) or old_token
  hold(new_id, ARGV[4], units, token)
  undo(old_id, old)
end
local more = promote({})
return {'CHANGED', token, more, now}
