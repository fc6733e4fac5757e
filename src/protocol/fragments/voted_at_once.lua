-- Steps: vote for a proposal that is larger than the counter, on a free lock, and return the reply. Most votes end
-- here, before any function is made. Otherwise leaves everything as it was.
-- Expects what the fragments clock, process and ballot set, and the local: turn, as in the fragment voted. The lock is
-- free, and the caller names no set of masters.

--@include counter_ttl
local before = redis.call('SET', fence, proposal .. ' ' .. owner, 'PX', counter_ttl, 'GET')
-- Two texts of the same length are in the order of their numbers.
if not before or string.find(before, ' ', 1, true) == #proposal + 1 and before < proposal then
  local token = proposal
--@include hold
  if run_id == '=' and (not turn or turn == clock) then return micros end
  return {'ACCEPTED', proposal, run_id, uptime, saved, micros, turn}
end
redis.call('SET', fence, before, 'PX', counter_ttl)
