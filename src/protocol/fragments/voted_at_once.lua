-- Steps: vote for a proposal that is larger than the counter, on a free lock, and return the reply. Most votes end
-- here, before any function is made.
-- Expects what the fragments clock, process and ballot set, and the local: turn, as in the fragment voted. The lock is
-- free, the proposal is larger than the counter, and the caller names no set of masters.

local token = proposal
--@include fence_ttl
redis.call('SET', fence, proposal .. ' ' .. owner, 'PX', fence_ttl)
--@include hold
if run_id == '=' and (not turn or turn == clock) then return micros end
return {'ACCEPTED', proposal, run_id, uptime, saved, micros, turn}
