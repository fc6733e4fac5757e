-- Steps: take the turn, which is free. Sets the local turn, which the script declares, to its token.
-- Expects the locals that the fragment clock sets.

do
  local lock, fence, id, lease, budget = KEYS[3], KEYS[6], ARGV[9], ARGV[10], '1'
  local token
--@include reserve
--@include hold
  turn = token
end
