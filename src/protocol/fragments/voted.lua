-- Steps: vote, and return the reply.
-- Expects what the fragments clock, process, ballot and voting set, and the local: turn, the token of the turn that was
-- taken in the same step, or nil.

if busy then return {'BUSY', redis.call('PTTL', lock), run_id, uptime, saved, micros, turn} end
if late and not held then return {'STALE', 0, run_id, uptime, saved, micros} end

--@include counter
local highest = counter(last)
local accepted = highest < tonumber(proposal)
if highest == tonumber(proposal) and by == owner then accepted = true end
-- The counter orders grants. A lock that is taken again for a hold that lives is no grant, and leaves a larger counter
-- as it is.
if accepted or set ~= '' or other then
  local counted = accepted and proposal .. ' ' .. owner or (last or 0) .. ' ' .. (by or '')
  if set ~= '' then counted = counted .. ' ' .. set .. ' ' .. string.format('%.0f', now + lease) end
--@include fence_ttl
  redis.call('SET', fence, counted, 'PX', fence_ttl)
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
if accepted then return {'ACCEPTED', proposal, run_id, uptime, saved, micros, turn} end
return {'REFUSED', string.format('%.0f', highest), run_id, uptime, saved, micros, turn}
