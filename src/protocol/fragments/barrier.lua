-- Fragment: a cyclic barrier.
-- Expects the locals: barrier, tickets, ended, now, inbox_prefix. Expects the fragment outlive.
-- The hash barrier has `parties`, `generation` (the last one that has ended) and `keep` (for how long, in ms, parties
-- may ask for the end of a generation). The sorted set tickets has the attempt ids that wait, with their expiry, and
-- ended those of which the end is known, each with a number: that of the generation, times PLACES, plus the place of
-- the party, from 0 on, or the reason why it did not pass, from LEFT on. The server's ms are the floor of the
-- generations, so that no two have the same number, also after the hash was lost.

local parties, generation, keep
-- When the first lease of those that wait ends, server ms; nil if none waits.
local ends

local function load_barrier(least_kept)
  local fields = redis.call('HMGET', barrier, 'parties', 'generation', 'keep')
  parties, generation = tonumber(fields[1]), tonumber(fields[2]) or 0
  keep = math.max(tonumber(fields[3]) or 0, least_kept)
  redis.call('ZCARD', ended)
  ends = tonumber(redis.call('ZRANGE', tickets, '0', '0', 'WITHSCORES')[2])
end

-- Whether the lease of a party has ended, so that its generation is broken.
local function is_over()
  return ends and ends <= now
end

-- The number that tells how the generation of the attempt id ended, as text; nil if that is not known.
local function end_of(id)
  return redis.call('ZSCORE', ended, id)
end

local function all_tickets()
  return redis.call('ZRANGE', tickets, '0', MAX_PARTIES - 1)
end

-- Changes fields of the barrier.
local function store(...)
  redis.call('HSET', barrier, ...)
  local ok, why = pcall(outlive, barrier, QUEUE_TTL)
  if ok then return end
  -- Not a key for ever.
  if not parties then redis.call('HDEL', barrier, 'parties', 'generation', 'keep') end
  error(why, 0)
end

-- Notes numbers of attempt ids, both in one list. They stay for as long as a party, or a copy of its request, may ask.
local function note(numbered)
  redis.call('ZADD', ended, unpack(numbered))
  local ok, why = pcall(outlive, ended, keep)
  if ok then return end
  -- Not a key for ever.
  for at = 2, #numbered, 2 do redis.call('ZREM', ended, numbered[at]) end
  error(why, 0)
end

-- Ends the generation of these attempt ids. The first has the number that ends with `place`, and each later one a
-- number larger by `step`. Returns numbers and ids in one list.
local function end_generation(ids, place, step)
  local last = math.max(now, generation + 1)
  local numbered = {}
  for at, id in ipairs(ids) do
    numbered[2 * at - 1] = string.format('%.0f', last * PLACES + place + (at - 1) * step)
    numbered[2 * at] = id
  end
  note(numbered)
  store('generation', string.format('%.0f', last))
  generation = last
  return numbered
end

local listener, messages
--@include inbox

-- Notifies the first parties of the list of their numbers. Nothing is undone if a message is not sent or not heard: the
-- party learns the same from its next heartbeat.
local function tell_first(parties_told, numbered)
  for at = 1, parties_told do
    local client = string.match(numbered[2 * at], '^([^:]+):')
    if client then tell(client, numbered[2 * at - 1] .. string.format(' %.0f ', now) .. numbered[2 * at]) end
  end
end

-- Breaks the generation of these attempt ids. `call` is the attempt id of the call that breaks it, if it has one.
local function break_generation(ids, why, call)
  local waiters = #ids
  ids[waiters + 1] = call
  local numbered = end_generation(ids, why, 0)
  redis.call('ZREM', tickets, unpack(ids))
  tell_first(waiters, numbered)
end
