-- Fragment: the permits of a semaphore or a read-write lock as the queue sees them: a resource of `limit` units.
-- Expects the locals: permits, leases, queue, tickets, fence, now, fences, and limit: that of the caller, ALL_UNITS for
-- a read-write lock, whose writers take all units. Expects the fragments permit_token, absent and outlive.
-- The hash permits has `used`, the units held; `limit`, if an operator has set one; and per attempt id
-- `<units> <token>`, for a lease that was extended followed by the longest that was asked for.
-- A hold counts until its lease is over, by the sorted set leases; a call after that reaps it. The last millisecond
-- belongs to the lease, as with keys: the server counts whole ones, and its first may have been almost over.
-- A hold that began while nothing else was stored is stored short, see the fragment sole, until a call needs the rest.
-- A script stores a sole hold in full, and calls load_permits(), before the other functions: see the fragment load.

-- The parts of a ticket: attempt id, client, lease, units, limit. Call sites of one semaphore may have different
-- limits, as in every deployment that changes it: each ticket is judged by its own, unless a limit is stored.
local ticket_pattern = '^(([^:]+):%d+r?)/(%d+)/(%d+)/(%d+)$'

-- The units held; the stored limit, if there is one; when the first lease ends, nil if there is none; whether units are
-- held exactly if there are leases: if not, one of the two keys was evicted, or another program wrote to them; and how
-- many of the fields `used` and `limit` there are.
local used, stored, first_end, sound, extra

-- The attempt id whose hold ends in this call, and its units, which are not in `used` any more but are still stored.
-- drop_ended() removes them last, because a cluster that is moving a key refuses to write the key after it was deleted.
local ending, leaving = nil, 0

-- The time for which this call knows that both keys live.
local kept = 0

-- Reads a number of units. A text that no script wrote is nil.
local function units_in(text)
  local n = tonumber(string.match(text or '', '^%d+$'))
  return n and n <= ALL_UNITS and n or nil
end

-- When the first lease ends, and the attempt id of its hold.
local function first_lease()
  local first = redis.call('ZRANGE', leases, '0', '0', 'WITHSCORES')
  return tonumber(first[2]), first[1]
end

-- `first` is when the first lease ends, nil if there is none.
local function load_permits(first)
  local fields = redis.call('HMGET', permits, 'used', 'limit')
  used, stored = units_in(fields[1]) or 0, not fences and units_in(fields[2]) or nil
  extra = (fields[1] and 1 or 0) + (fields[2] and 1 or 0)
  limit = stored or limit
  first_end = first
  sound = (used > 0) == (first_end ~= nil)
end

-- The rest of the first lease, and the attempt id of its hold. Like PTTL, it is negative if there is none.
local function first_left()
  -- Without a hold the key may be deleted by now, and a cluster that is moving the slot refuses to read a deleted key.
  if used == 0 then return -2 end
  local ends, holder = first_lease()
  return ends and math.max(ends - now, 0) or -2, holder
end

local function has_capacity(amount, own)
  -- Only the first ticket knows its limit.
  if not amount then return used < (stored or ALL_UNITS) end
  return used + amount <= (stored or own or limit)
end

local function exceeds_limit(amount, own)
  return amount > (stored or own)
end

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

-- After half of the two keys was lost: the holds are those that both keys have, and `used` is their sum. This is the
-- only loop over all holds, and nothing that the scripts do leads to it. If no lease is left it is not needed: the last
-- leases end with their key while a stored limit keeps the hash.
local function recount()
  used, leaving = 0, 0
  if redis.call('EXISTS', leases) == 0 then
    redis.call('UNLINK', permits)
    write_used()
    return
  end
  local ids, all = {}, redis.call('HGETALL', permits)
  for i = 1, #all, 2 do
    local id, units = all[i], units_in(string.match(all[i + 1], '^(%d+) %d+ ?%d*$'))
    if units and id ~= ending and redis.call('ZSCORE', leases, id) then
      ids[id] = true
      used = used + units
    elseif id ~= 'used' and id ~= 'limit' then
      redis.call('HDEL', permits, id)
    end
  end
  for _, id in ipairs(redis.call('ZRANGE', leases, '0', '-1')) do
    if not ids[id] then redis.call('ZREM', leases, id) end
  end
  write_used()
end

-- Ends expired holds, as many as one call may, and checks the rest.
local function reap_expired()
  if fences then redis.call('STRLEN', fence) end
  local over = {}
  if first_end and first_end < now then
    over = redis.call('ZRANGEBYSCORE', leases, '-inf', '(' .. now, 'LIMIT', '0', 'MAX_EXPIRED')
    local units
    for _, held in ipairs(redis.call('HMGET', permits, unpack(over))) do
      units = units_in(string.match(held or '', '^%d+')) or 0
      used = used - units
    end
    -- All holds are over. The last one stays stored until drop_ended(), so that no key is deleted before promote()
    -- writes to it. As in end_hold(), the first write takes no memory.
    if used == 0 and #over == redis.call('ZCARD', leases) then
      takes_writes(permits)
      ending, leaving = table.remove(over), units
    end
  end
  if #over > 0 then
    redis.call('HDEL', permits, unpack(over))
    redis.call('ZREM', leases, unpack(over))
  end
  local holds, stored_units = redis.call('ZCARD', leases), used + leaving
  if stored_units < holds or (stored_units > 0) ~= (holds > 0) or redis.call('HLEN', permits) - extra ~= holds then
    recount()
  elseif #over > 0 then
    write_used()
  end
  return #over == MAX_EXPIRED and 1 or 0
end

-- Removes a hold whose units were already given back.
local function drop(id)
  local leased = used + leaving < 1 and redis.call('ZCARD', leases) or 0
  redis.call('HDEL', permits, id)
  local dropped = redis.call('ZREM', leases, id)
  kept = 0
  -- Nothing is used, but there are other leases.
  if leased > dropped then recount() else write_used() end
end

local function remove_hold(id, units)
  used = used - units
  drop(id)
end

local function drop_ended()
  if not ending then return end
  leaving = 0
  drop(ending)
  ending = nil
end

-- The units and the token that the attempt id holds, or nil if it holds none. A hold whose lease is over does not
-- count, even if it is still stored.
local function held_by(id)
  local units, token = string.match(redis.call('HGET', permits, id) or '', '^(%d+) (%d+) ?%d*$')
  if not units or id == ending then return nil end
  if tonumber(redis.call('ZSCORE', leases, id) or 0) < now then
    remove_hold(id, units)
    return nil
  end
  return tonumber(units), token
end

local function keep(lease)
  if lease + 0 <= kept then return end
  outlive(leases, lease)
  outlive(permits, stored and math.max(lease, LIMIT_TTL) or lease)
  kept = lease + 0
end

-- Renews a hold that exists. Never shortens its lease: this may be a late copy of a call, and the lease may have been
-- extended since.
local function extend(id, lease)
  if tonumber(redis.call('ZSCORE', leases, id) or 0) > now + lease then return takes_writes(permits) end
  redis.call('ZADD', leases, 'XX', now + lease, id)
  keep(lease)
end

local function write_hold(id, lease, units, token)
  token = token or token_for(id, units, lease)
  if lease + 0 < 1 then lease = '1' end
  if id == ending then ending, leaving = nil, 0 end
  redis.call('HSET', permits, id, units .. ' ' .. token, 'used', used + units + leaving)
  used = used + units
  local ok, why = pcall(function()
    -- The attempt id already holds, by a ticket with other arguments, so both were counted.
    if redis.call('ZADD', leases, now + lease, id) == 0 then recount() end
    keep(lease)
    keep_counter(lease)
  end)
  if not ok then
    -- A hold without a TTL would never end.
    remove_hold(id, units)
    drop_ended()
    error(why, 0)
  end
  return token
end
