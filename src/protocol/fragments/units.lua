-- Fragment: the permits of a semaphore or a read-write lock as the queue sees them: a resource of `limit` units.
-- Expects KEYS: permits leases queue tickets fence
-- Expects the local limit: that of the caller, 1048576 for a read-write lock, whose writers take all units.
-- The hash permits has `used`, the units held; `limit`, if an operator has set one; and per attempt id `<units> <token>`.
-- A hold counts until its lease is over, by the sorted set leases; then it is purged, by whoever comes next.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
--@include clock
--@include token
--@include outlive
--@include absent

local fences = limit == ALL_UNITS

-- A number that is not one of ours is nil.
local function units_in(text)
  local n = tonumber(string.match(text or '', '^%d+$'))
  return n and n <= ALL_UNITS and n or nil
end

local fields = redis.call('HMGET', permits, 'used', 'limit')
local used, stored = units_in(fields[1]) or 0, not fences and units_in(fields[2]) or nil
local others = (fields[1] and 1 or 0) + (fields[2] and 1 or 0)
limit = stored or limit

-- When the first lease ends, nil if there is none.
local function first_end()
  return tonumber(redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2])
end

local first = first_end()
-- Units are held exactly if there are leases. If not, one of the two keys was evicted, or somebody else wrote to them.
local sound = (used > 0) == (first ~= nil)

-- What is left of the first lease; as PTTL, negative if there is none.
local function first_left()
  local ends = first_end()
  return ends and math.max(ends - now, 0) or -2
end

-- A ticket's amount is its units, and its last part the limit of its call site. Call sites of one semaphore may have
-- different limits, as in every deployment that changes it: each ticket is judged by its own, unless one is stored.
local ticket_pattern = '^(([^:]+):%d+)/(%d+)/(%d+)/(%d+)$'

local function room(amount, own)
  -- Only the head knows its limit.
  if not amount then return used < (stored or ALL_UNITS) end
  return used + amount <= (stored or own or limit)
end

local function oversized(amount, own)
  return amount > (stored or own)
end

-- The attempt id whose hold ends in this call, and its units, which are not in `used` any more but are still stored.
local ending, leaving = nil, 0

local function write_used()
  if stored then
    redis.call('HSET', permits, 'used', used + leaving, 'limit', stored)
    outlive(permits, LIMIT_TTL)
  elseif used + leaving > 0 then
    redis.call('HSET', permits, 'used', used + leaving)
  else
    redis.call('DEL', permits)
  end
end

-- After half of the two keys was lost: a hold is what both know of, and `used` is the sum. The only loop over all
-- holds, and nothing that the scripts do leads to it. That no lease is left is no such case: the last ones end with
-- their key while a stored limit keeps the hash.
local function recount()
  used, leaving = 0, 0
  if redis.call('EXISTS', leases) == 0 then
    redis.call('UNLINK', permits)
    write_used()
    return
  end
  local ids, all = {}, redis.call('HGETALL', permits)
  for i = 1, #all, 2 do
    local id, units = all[i], units_in(string.match(all[i + 1], '^(%d+) %d+$'))
    if units and id ~= ending and redis.call('ZSCORE', leases, id) then
      ids[id] = true
      used = used + units
    elseif id ~= 'used' and id ~= 'limit' then
      redis.call('HDEL', permits, id)
    end
  end
  for _, id in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if not ids[id] then redis.call('ZREM', leases, id) end
  end
  write_used()
end

-- Ends the holds whose leases are over, as many as one call may, and looks at what is left.
local function settle()
  redis.call('STRLEN', fence)
  local over = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, MAX_EXPIRED)
  if #over > 0 then
    for _, held in ipairs(redis.call('HMGET', permits, unpack(over))) do
      used = used - (units_in(string.match(held or '', '^%d+')) or 0)
    end
    redis.call('HDEL', permits, unpack(over))
    redis.call('ZREM', leases, unpack(over))
  end
  local holds = redis.call('ZCARD', leases)
  if used < holds or (used > 0) ~= (holds > 0) or redis.call('HLEN', permits) - others ~= holds then
    recount()
  elseif #over > 0 then
    write_used()
  end
  return #over == MAX_EXPIRED and 1 or 0
end

-- For how long both keys are known to live, in this call.
local kept = 0

-- Takes away a hold whose units are given back already.
local function drop(id)
  local leased = used + leaving < 1 and redis.call('ZCARD', leases) or 0
  redis.call('HDEL', permits, id)
  local dropped = redis.call('ZREM', leases, id)
  kept = 0
  -- Nothing is used, and somebody holds.
  if leased > dropped then recount() else write_used() end
end

local function undo(id, units)
  used = used - units
  drop(id)
end

-- Gives the units of a hold back, whose fields go last: a key that is deleted and then written again is refused half-way by
-- a cluster that is moving it.
local function ends(id, units)
  -- A server without memory lets a script go on to the end that has begun to write, but not begin with what takes memory.
  takes_writes(permits)
  ending, leaving, used = id, units, used - units
end

-- After promote(): what `ends` was told of is over.
local function vacate()
  if not ending then return end
  leaving = 0
  drop(ending)
end

-- The units and the token that the attempt id holds, nil if it holds none. Nobody holds what is over, purged or not.
local function held_by(id)
  local units, token = string.match(redis.call('HGET', permits, id) or '', '^(%d+) (%d+)$')
  if not units then return nil end
  if tonumber(redis.call('ZSCORE', leases, id) or 0) <= now then
    undo(id, units)
    return nil
  end
  return tonumber(units), token
end

local function keep(lease)
  if lease <= kept then return end
  outlive(leases, lease)
  outlive(permits, stored and math.max(lease, LIMIT_TTL) or lease)
  kept = lease
end

-- Of a hold that is there. Never shorter: this may be a late copy, and the lease may have been extended since.
local function extend(id, lease)
  if tonumber(redis.call('ZSCORE', leases, id) or 0) > now + lease then return takes_writes(permits) end
  redis.call('ZADD', leases, 'XX', now + lease, id)
  keep(tonumber(lease))
end

-- A writer reserves as many tokens as others may write with its hold, one after the other. Readers carry the last of
-- those of the last writer; permits cannot fence.
local reading
-- For how long the counter is known to live, in this call.
local counting = 0

local function fencing(units, lease)
  if not fences then return '0' end
  if units == ALL_UNITS then return reserve(HANDOFF_BUDGET, lease) end
  if not reading then
    local last = counter(redis.call('GET', fence))
    reading = last >= 1 and string.format('%.0f', last) or reserve(1, lease)
  end
  return reading
end

local function hold(id, lease, units, token)
  token, lease = token or fencing(units, lease), math.max(lease, 1)
  if id == ending then ending, leaving = nil, 0 end
  redis.call('HSET', permits, id, units .. ' ' .. token, 'used', used + units + leaving)
  used = used + units
  local ok, why = pcall(function()
    -- It holds already, by a ticket with other words: both were counted.
    if redis.call('ZADD', leases, now + lease, id) == 0 then recount() end
    keep(lease)
    if reading and counter_life(lease) > counting then
      counting = counter_life(lease)
      outlive(fence, counting)
    end
  end)
  if not ok then
    -- Not a hold for ever.
    undo(id, units)
    vacate()
    error(why, 0)
  end
  return token
end
