-- Fragment: the changes of an election, the newest last.
-- Expects the locals: lock, changes, watchers (the attempt ids that wait for a change), now, micros, inbox_prefix.
-- A change is `<revision> <what> <term> <number> <client> <length> <label><value>`. what is `led` (the term has begun),
-- `said` (its leader has published a value) or `ended`. number counts what a leader says in its term, and length is
-- that of the label in bytes. A script calls load_changes() first, and tell_watchers() last.
-- The clock is the floor of the revisions, so that no two changes have the same one, also after the list was lost.

--@include send

-- The newest change, nil if none is known; and whether this call has added one.
local revision, what, term, number
local changed = false

-- Keys of a wrong type are found here, before the first write.
local function load_changes()
  redis.call('ZCARD', watchers)
  revision, what, term, number =
    string.match(redis.call('LINDEX', changes, '-1') or '', '^(%d+) (%l+) (%d+) (%d+) ')
end

-- The term of the hold, nil if there is no hold.
local function held_term()
  return string.match(redis.call('HGETALL', lock)[2] or '', '^%d+')
end

local function add_change(new_what, new_term, new_number, said)
  revision = string.format('%.0f', math.max(micros, (revision or 0) + 1))
  what, term, number, changed = new_what, new_term, new_number, true
  local change = table.concat({revision, what, term, number, said}, ' ')
  local ttl = string.format('%.0f', math.max(QUEUE_TTL, 2 * redis.call('PTTL', lock)))
  local length = redis.call('RPUSH', changes, change)
  if type(redis.pcall('PEXPIRE', changes, ttl)) ~= 'number' then
    -- A list without a TTL must not remain. The second call raises what the first one returned.
    redis.call('LREM', changes, '-1', change)
    redis.call('PEXPIRE', changes, ttl)
  end
  if length > MAX_CHANGES then redis.call('LREM', changes, '1', redis.call('LINDEX', changes, '0')) end
end

-- Notes that the last term has ended, unless it is that of the hold.
local function settle(holder)
  if revision and what ~= 'ended' and term ~= holder then add_change('ended', term, number, '- 0 ') end
end

-- Notifies up to 1,000 waiters of the changes that this call has added. The others learn of them from their
-- heartbeats.
local function tell_watchers()
  local ids = changed and redis.call('ZRANGEBYSCORE', watchers, '(' .. now, '+inf', 'LIMIT', '0', 'MAX_TOLD') or {}
  if #ids == 0 then return end
  send('open', ids)
  redis.call('ZREM', watchers, unpack(ids))
end
