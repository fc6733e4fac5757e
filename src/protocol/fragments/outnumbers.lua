-- Steps: compare the proposal with the counter, without a function. Sets the local: larger. It may be false for a
-- proposal that is larger, if one of them is no token of today.
-- Expects what the fragment ballot sets.

local before = redis.call('GET', fence)
-- Two texts of the same length are in the order of their numbers.
local larger = not before or string.find(before, ' ', 1, true) == #proposal + 1 and before < proposal
