-- Fragment: a cyclic barrier.
-- Expects the locals: barrier, tickets, ended, now, inbox_prefix. Expects the fragment outlive.
-- The hash barrier has `parties`; `generation`, the last one that has ended; `keep`, for how long, in ms, a party of
-- the generation that waits may ask for its end; `of`, at the entry of a double barrier, after which generation those
-- that wait have come inside; and per attempt id of which the end is known a number: that of the
-- generation, times PLACES, plus the place of the party, from 0 on, or the reason why it did not pass, from LEFT on. Of
-- a double barrier it also has the word `ready` for each party that wants to leave.
-- The sorted set tickets has the attempt ids that wait, with their expiry, and ended those with a number, with the
-- server's ms until which it is remembered. The server's ms are the floor of the generations, so that no two have the
-- same number, also after the hash was lost.

local parties, generation, keep
-- When the first lease of those that wait ends, server ms; nil if none waits.
local ends
-- The attempt ids that learn their ends by the answer of this call.
local answered = {}

-- The fields as they were stored.
local stored

local function load_barrier()
  stored = redis.call('HMGET', barrier, 'parties', 'generation', 'keep', 'of')
  parties, generation, keep = tonumber(stored[1]), tonumber(stored[2]) or 0, tonumber(stored[3]) or QUEUE_TTL
  redis.call('ZCARD', ended)
  ends = tonumber(redis.call('ZRANGE', tickets, '0', '0', 'WITHSCORES')[2])
end

-- Why those that wait cannot pass any more; nil if they can, or if none waits.
local function why_broken()
  if not ends then return nil end
  if not parties then return FORGOTTEN end
  return ends <= now and EXPIRED or nil
end

local ready = 'ready'

-- The number that tells how the generation of the attempt id ended, as text; false if that is not known.
local function end_of(id)
  local number = redis.call('HGET', barrier, id)
  return number ~= ready and number
end

local function all_tickets()
  return redis.call('ZRANGE', tickets, '0', MAX_PARTIES - 1)
end

-- Lets the keys live for as long as a number is remembered. Both live equally long, because a number without a time
-- would stay.
local function prolong(life)
  life = math.max(life, QUEUE_TTL)
  outlive(barrier, life)
  outlive(ended, life)
end

-- Changes fields of the barrier. A server that is out of memory refuses that, if it is the first write of the script.
local function store(life, ...)
  redis.call('HSET', barrier, ...)
  local ok, why = pcall(prolong, life)
  if ok then return end
  -- Not a key for ever, and nothing of a call that has failed.
  for at, field in ipairs({'parties', 'generation', 'keep', 'of'}) do
    if stored[at] then redis.call('HSET', barrier, field, stored[at]) else redis.call('HDEL', barrier, field) end
  end
  error(why, 0)
end

-- Numbers of which nothing says until when they are remembered, because the sorted set was lost. This is the only loop
-- over all of them. Of what the scripts do, only the first end of a double barrier leads to it.
local function forget_lost()
  if redis.call('ZCARD', ended) > 0 or redis.call('HLEN', barrier) < 4 then return end
  local all = redis.call('HGETALL', barrier)
  for at = 1, #all, 2 do
    if string.find(all[at], ':', 1, true) and all[at + 1] ~= ready then redis.call('HDEL', barrier, all[at]) end
  end
end

-- Remembers numbers of attempt ids, both in one list, for `life` ms, and forgets at least as many whose time is over.
local function note(numbered, life)
  local ids, fields, members = {}, {}, {}
  for at = 1, #numbered, 2 do
    local id = numbered[at + 1]
    ids[#ids + 1] = id
    fields[at], fields[at + 1] = id, numbered[at]
    members[at], members[at + 1] = string.format('%.0f', now + life), id
  end
  forget_lost()
  redis.call('HSET', barrier, unpack(fields))
  local ok, why = pcall(function()
    redis.call('ZADD', ended, unpack(members))
    prolong(life)
  end)
  if not ok then
    -- Not a key for ever.
    redis.call('HDEL', barrier, unpack(ids))
    redis.call('ZREM', ended, unpack(ids))
    error(why, 0)
  end
  local over = redis.call('ZRANGEBYSCORE', ended, '-inf', '(' .. now, 'LIMIT', '0', #ids + MAX_FORGOTTEN)
  if #over > 0 then
    redis.call('HDEL', barrier, unpack(over))
    redis.call('ZREM', ended, unpack(over))
  end
end

-- Ends the generation of these attempt ids. The first has the number that ends with `place`, and each later one a
-- number larger by `step`. Returns numbers and ids in one list.
local function end_generation(ids, place, step, life)
  local last = math.max(now, generation + 1)
  local numbered = {}
  for at, id in ipairs(ids) do
    numbered[2 * at - 1] = string.format('%.0f', last * PLACES + place + (at - 1) * step)
    numbered[2 * at] = id
  end
  note(numbered, life)
  redis.call('HSET', barrier, 'generation', string.format('%.0f', last))
  generation = last
  return numbered
end

local listener, messages
--@include inbox

-- Notifies the first parties of the list of their numbers. Nothing is undone if a message is not sent or not heard: the
-- party learns the same from its next heartbeat.
local function tell_first(parties_told, numbered)
  for at = 1, parties_told do
    local id = numbered[2 * at]
    local client = not answered[id] and string.match(id, '^([^:]+):')
    if client then tell(client, numbered[2 * at - 1] .. string.format(' %.0f ', now) .. id) end
  end
end

-- Breaks the generation of these attempt ids. `call` is the attempt id of the call that breaks it, if it has one.
local function break_generation(ids, why, life, call)
  local waiters = #ids
  ids[waiters + 1] = call
  local numbered = end_generation(ids, why, 0, life)
  redis.call('ZREM', tickets, unpack(ids))
  tell_first(waiters, numbered)
end
