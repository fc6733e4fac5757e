-- Fragment: the fencing tokens of the holds of permits.
-- Expects the locals: fence, and fences, whether holds have tokens: those of a read-write lock have.
-- Expects the fragment token.

-- The token of readers, and the longest of their leases that the counter is known to live for, in this call.
local read_token, longest = nil, 0

-- A writer reserves as many tokens as there are acquisitions that may use its hold: more for a retained one. Readers
-- have the last token of the last writer. Permits of a semaphore have no fencing token.
local function token_for(id, units, lease)
  if not fences then return '0' end
  if units == ALL_UNITS then return reserve(string.sub(id, -1) == 'r' and LARGEST_BUDGET or HANDOFF_BUDGET, lease) end
  if not read_token then
    local token
--@include read_token
    read_token = token or reserve(1, lease)
  end
  return read_token
end

-- Lets the counter live for as long after a grant to a reader as after one to a writer, up to the slack.
local function keep_counter(lease)
  if not read_token or lease + 0 <= longest then return end
--@include fence_ttl
  if redis.call('PTTL', fence) < fence_ttl - COUNTER_SLACK then redis.call('PEXPIRE', fence, fence_ttl) end
  longest = lease + 0
end
