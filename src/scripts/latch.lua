-- Fragment: a count-down latch, who waits for it, and which calls have changed it.
-- Expects KEYS: latch tickets
-- The hash latch has `count`, and `ends`, the server's ms when there is no latch any more; and per wire id that has
-- changed something until when a copy of that call may come, which may be later. The sorted set tickets has the wire ids
-- that wait, with their expiry.

local latch, tickets = KEYS[1], KEYS[2]
--@include clock
--@include outlive

-- A key of a wrong type is found before anything is written.
local fields = redis.call('HMGET', latch, 'count', 'ends')
redis.call('ZCARD', tickets)
local count, ends = fields[1], tonumber(fields[2]) or 0
-- Nil if there is no latch. What is no number was not written by us, and keeps nobody waiting.
count = count and ends > now and (tonumber(count) or 0) or nil

-- A copy that comes later than this is refused. 0 is no limit.
local function late(not_after)
  return not_after > 0 and now > not_after
end

-- What was done, or refused, must not be done by a second copy, not even to the next latch of this name. `outcome` is
-- put before the time.
local function remember(id, not_after, outcome)
  if not count and not_after < 1 then return end
  redis.call('HSET', latch, id, (outcome or '') .. not_after)
  local ok, why = pcall(outlive, latch, not_after - now + 1)
  if not ok then
    -- Not a key for ever, nor a call that is known and was not made.
    redis.call('HDEL', latch, id)
    error(why, 0)
  end
end

-- Forgets the calls of which no copy can come any more. Returns until when one of the others can. It looks at as many
-- as there were since the last time.
local function forget()
  local last, over, all = 0, {}, redis.call('HGETALL', latch)
  for i = 1, #all, 2 do
    local not_after = tonumber(string.match(all[i + 1], '%d+$')) or 0
    if all[i] ~= 'count' and all[i] ~= 'ends' then
      if not_after >= now then last = math.max(last, not_after) else over[#over + 1] = all[i] end
    end
  end
  for i = 1, #over, 1000 do
    redis.call('HDEL', latch, unpack(over, i, math.min(i + 999, #over)))
  end
  return last
end

-- Tells everybody who waits, in one message per client: `<word> <wire id>...`. More waiters than one call may tell
-- learn it when they touch; so does whoever cannot be told.
local function wake(inbox_prefix, word)
  local clients, ids = {}, {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', tickets, '(' .. now, '+inf', 'LIMIT', 0, 10000)) do
    local client = string.match(id, '^([^:]+):')
    if client and not ids[client] then
      clients[#clients + 1] = client
      ids[client] = {word}
    end
    if client then table.insert(ids[client], id) end
  end
  for _, client in ipairs(clients) do
    redis.pcall('PUBLISH', inbox_prefix .. client, table.concat(ids[client], ' '))
  end
  redis.call('UNLINK', tickets)
end
