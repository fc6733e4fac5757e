-- Votes for a proposed token, and takes the lock for the hold that proposes it: the part of one master in a RedLock.
-- KEYS: lock fence
-- ARGV: attempt_id lease_ms proposal owner granted not_after_ms set
-- Reply: ACCEPTED proposal run_id uptime_s now | REFUSED counter run_id uptime_s now | BUSY ttl_ms run_id uptime_s
-- now | STALE 0 run_id uptime_s now | OTHER set run_id uptime_s now REFUSED: the lock is taken, but the proposal is not
-- larger than the counter. An attempt that has the lock already keeps the largest of its tokens and the longest of its
-- leases, because this may be a late copy. owner names the hold on all masters: it may propose what it proposed before.
-- granted 1: a majority has accepted the token already, and this master takes the lock for that hold whatever its
-- counter is. ttl_ms is what is left of the lease of the hold in the way, -1 if that has no end. not_after_ms 0 means
-- no limit. set is the set of masters that the caller knows, <name>/<version>/<number of masters>, or empty if it does
-- not say. OTHER: the vote before was for a set with which a majority of the caller's set need not share a master, and
-- its lease may not be over. run_id and uptime_s are those of the server process.

local lock, fence = KEYS[1], KEYS[2]
local id, lease, proposal, owner, granted, not_after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local set = ARGV[7]
--@include clock
--@include counter
--@include process

local held = redis.call('HGET', lock, id)
local busy = not held and redis.call('EXISTS', lock) == 1
local last, by, others
if set ~= '' or not busy then
  last, by, others = string.match(redis.call('GET', fence) or '', '^(%d+) ([^ ]*) ?(.*)$')
end
local other, ends = string.match(others or '', '^([^ ]+) (%d+)$')
if set ~= '' and other and other ~= set and not held and (busy or now < tonumber(ends)) then
  -- Versions next to each other differ by one master, so majorities of both share one.
  local name, version, size = string.match(set, '^(.*)/(%d+)/(%d+)$')
  local its, theirs, number = string.match(other, '^(.*)/(%d+)/(%d+)$')
  if not name or its ~= name or math.abs(theirs - version) ~= 1 or math.abs(number - size) ~= 1 then
    return {'OTHER', other, run_id, uptime, now}
  end
end
if busy then return {'BUSY', redis.call('PTTL', lock), run_id, uptime, now} end
if not held and not_after > 0 and now > not_after then
  return {'STALE', 0, run_id, uptime, now}
end

local highest = counter(last)
local accepted = highest < tonumber(proposal)
if highest == tonumber(proposal) and by == owner then accepted = true end
-- The counter orders grants. A lock that is taken again for a hold that lives is no grant, and leaves a larger counter
-- as it is.
if accepted or set ~= '' or other then
  local counted = accepted and proposal .. ' ' .. owner or (last or 0) .. ' ' .. (by or '')
  if set ~= '' then counted = counted .. ' ' .. set .. ' ' .. string.format('%.0f', now + lease) end
--@include counter_ttl
  redis.call('SET', fence, counted, 'PX', counter_ttl)
end
accepted = accepted or granted == '1'

local token = accepted and proposal or '0'
if held then
  local had, longest = string.match(held, '^(%d+)( ?%d*)$')
  if had and tonumber(had) > tonumber(token) then token = had end
  token = token .. (longest or '')
  local left = redis.call('PTTL', lock)
  if left > tonumber(lease) then lease = left end
end
--@include hold
if accepted then return {'ACCEPTED', proposal, run_id, uptime, now} end
return {'REFUSED', string.format('%.0f', highest), run_id, uptime, now}
