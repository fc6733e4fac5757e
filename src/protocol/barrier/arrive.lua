-- Lets a party arrive at a barrier, where it waits until as many have arrived as there are parties; or come inside a
-- double barrier, where it stays until it has left.
-- KEYS: barrier tickets ended
-- ARGV: attempt_id parties ticket_ttl_ms keep_ms not_after_ms inbox_prefix stays of
-- Reply: ENDED number now | QUEUED ttl_ms generation now | OTHER parties now | STALE now
-- ENDED: the generation of the attempt id has ended, as the number says (see the fragment). The last party that arrives
-- gets this at once, and the others get the message `<number> <now> <attempt id>`. ttl_ms is what is left of the lease
-- that ends first. OTHER: those that wait are of another number of parties; or (stays 1) as many are inside as there
-- are parties. A second copy changes nothing; keep_ms is how long after the first one a copy may come, or the party may
-- ask. of, which may be empty, is the generation that the party has come inside after: those that wait with another one
-- are told that theirs is broken, or the party is, if its own is the older one.

local barrier, tickets, ended = KEYS[1], KEYS[2], KEYS[3]
local id, own_parties, ttl, not_after, inbox_prefix = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[5] + 0, ARGV[6]
local stays, of = ARGV[7] == '1', ARGV[8]
--@include clock
--@include outlive
--@include absent
--@include barrier
load_barrier()
answered[id] = true

local known = end_of(id)
if known then
  takes_writes(barrier)
  return {'ENDED', known, now}
end
local life = ARGV[4] + math.max(not_after - now, 0)
local broken = why_broken()
if of ~= '' and ends and not broken then
  local other = tonumber(stored[4]) or 0
  if other > of + 0 then
    note({string.format('%.0f', now * PLACES + LEFT), id}, math.max(keep, life))
    return {'ENDED', end_of(id), now}
  end
  broken = other < of + 0 and LEFT or nil
end
if redis.call('ZSCORE', tickets, id) then
  if broken then
    break_generation(all_tickets(), broken, math.max(keep, life))
    return {'ENDED', end_of(id), now}
  end
  redis.call('ZADD', tickets, 'XX', now + ttl, id)
  return {'QUEUED', ends - now, generation, now}
end
if not_after > 0 and now > not_after then return {'STALE', now} end

-- Keys of a moving slot must not be read or written after they are gone, so those of a broken generation go last.
local former = broken and all_tickets() or {}
local waiting = redis.call('ZCARD', tickets) - #former
if waiting > 0 and (parties ~= own_parties or waiting >= parties) then
  takes_writes(barrier)
  return {'OTHER', parties, now}
end
local is_first, of_former = waiting == 0, math.max(keep, life)
if not is_first then life = of_former end
local fields = {'parties', own_parties, 'keep', string.format('%.0f', life)}
if of ~= '' then fields[5], fields[6] = 'of', of end
store(life, unpack(fields))

local passes = not stays and waiting + 1 >= own_parties
if not passes then
--@include watched
end
if #former > 0 then break_generation(former, broken, of_former) end
if passes then
  local ids = is_first and {} or all_tickets()
  ids[waiting + 1] = id
  local numbered = end_generation(ids, 0, 1, life)
  if not is_first then redis.call('UNLINK', tickets) end
  tell_first(waiting, numbered)
  return {'ENDED', numbered[2 * waiting + 1], now}
end
return {'QUEUED', math.min(is_first and math.huge or ends, now + ttl) - now, generation, now}
