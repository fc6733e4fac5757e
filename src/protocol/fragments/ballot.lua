-- Steps: read the arguments of a request for a vote.
-- Sets the locals: lock, fence, id, lease, proposal, owner, granted, set, known; late, whether the request has come too
-- late. Expects the fragment clock.

local lock, fence = KEYS[1], KEYS[2]
local id, lease, proposal, owner, granted, not_after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local set, known = ARGV[7], ARGV[8]
local late = not_after > 0 and now > not_after
