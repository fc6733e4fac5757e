-- Fragment: the changes of an election, the newest last.
-- Expects the locals: lock, changes, tickets (who waits for a change), now, micros, inbox_prefix. Expects the fragment
-- latch_messages.
-- A change is `<revision> <what> <term> <number> <since> <client> <length> <label><value>`. what is `led` (the term has
-- begun), `said` (its leader has published a value) or `ended`. number counts what a leader says in its term, since is
-- the server's ms when it began, and length that of the label in bytes. A script calls load_changes() first.
-- Revisions grow. The clock is their floor, so that they do so even after the list was lost or lacks its last changes.

-- The newest change; nil if none is known.
local revision, what, term, number, since

-- Keys of a wrong type are found here, before the first write.
local function load_changes()
  redis.call('ZCARD', tickets)
  revision, what, term, number, since =
    string.match(redis.call('LINDEX', changes, '-1') or '', '^(%d+) (%l+) (%d+) (%d+) (%d+) ')
end

-- The term of the hold, nil if there is no hold.
local function held_term()
  return string.match(redis.call('HGETALL', lock)[2] or '', '^%d+')
end

-- How long the list lives: while it is of use to anyone who leads or watches.
local function keep_changes()
  return redis.pcall('PEXPIRE', changes, math.max(QUEUE_TTL, 2 * redis.call('PTTL', lock)))
end

-- Returns whether the caller must call again for the others that wait.
local function add_change(new_what, new_term, new_number, new_since, said)
  revision = string.format('%.0f', math.max(micros, (revision or 0) + 1))
  what, term, number, since = new_what, new_term, new_number, new_since
  local change = table.concat({revision, what, term, number, since, said}, ' ')
  local length = redis.call('RPUSH', changes, change)
  if type(keep_changes()) ~= 'number' then
    -- A list without a TTL must not remain. The second call raises what the first one returned.
    redis.call('LREM', changes, '-1', change)
    redis.call('PEXPIRE', changes, 'QUEUE_TTL')
  end
  if length > MAX_CHANGES then redis.call('LREM', changes, '1', redis.call('LINDEX', changes, '0')) end
  return tell('open')
end

-- Notes that the last leader leads no more, if its hold has ended without a word.
local function settle(holder)
  if not revision or what == 'ended' or term == holder then return 0 end
  return add_change('ended', term, number, now, '- 0 ')
end
