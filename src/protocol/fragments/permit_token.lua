-- Fragment: the fencing tokens of the holds of permits.
-- Expects the locals: fence, and fences, whether holds have tokens: those of a read-write lock have.
-- Expects the fragments token and outlive.

-- The token of readers, and for how long the counter is known to live for them, in this call.
local read_token, counter_kept = nil, 0

-- A writer reserves as many tokens as other acquisitions may write with its hold. Readers carry the last of those of the
-- last writer. Permits of a semaphore cannot fence.
local function token_for(units, lease)
  if not fences then return '0' end
  if units == ALL_UNITS then return reserve(HANDOFF_BUDGET, lease) end
  if not read_token then
    local last = counter(redis.call('GET', fence))
    read_token = last >= 1 and string.format('%.0f', last) or reserve(1, lease)
  end
  return read_token
end

-- Readers read the counter that the last writer wrote, so it lives for as long as after a grant of theirs.
local function keep_counter(lease)
  local ttl = read_token and tonumber(counter_ttl(lease)) or 0
  if ttl > counter_kept then
    counter_kept = ttl
    outlive(fence, ttl)
  end
end
