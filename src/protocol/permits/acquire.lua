-- Takes permits, or (mode `wait`) a place in the queue for them.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id mode lease_ms units limit ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: 'token clock' | GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now | FULL length now | STALE now |
--        OVER limit now
-- The first is a text and no list: granted, and the server's time in microseconds.
-- mode is `try` or `wait`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the first lease in
-- the way, negative if there is none. OVER: more units than the limit in force. more = 1: call again (heartbeat or try),
-- there is more to reap, to drop or to grant than one call may.

local KEYS, ARGV = KEYS, ARGV
local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease, units, limit, not_after = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
local unused = redis.call('EXISTS', permits, leases, queue, tickets) == 0
--@include clock
local late = not_after ~= '0' and now > not_after + 0
local fences = limit == 'ALL_UNITS'

-- The fast path, before any function is made: nothing is held, and there is no queue.
if unused and not late and limit - units >= 0 then
  local token
  local reads = fences and units ~= limit
  if reads then
--@include read_token
  elseif fences then
    local budget = HANDOFF_BUDGET
--@include reserve
  else
    token = '0'
  end
  -- The first reader after the counter was lost reserves a token below.
  if token then
    redis.call('HSET', permits, id, units .. ' ' .. token, 'used', units)
    local done = redis.pcall('ZADD', leases, now + lease, id)
    if done == 1 then done = redis.pcall('PEXPIRE', leases, lease) end
    if done == 1 then done = redis.pcall('PEXPIRE', permits, lease) end
    if done ~= 1 then
      -- A hold must not last for ever.
      redis.call('UNLINK', permits, leases)
      return done
    end
    if reads then
--@include keep_counter
    end
    return token .. ' ' .. clock
  end
end

local mode = ARGV[2]
units, limit = units + 0, limit + 0
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
load_permits()

-- Others hold: nothing to reap, no queue, and there is capacity.
if redis.call('EXISTS', queue, tickets) == 0 and sound and not late and not (first_end and first_end <= now) and has_capacity(units)
  and redis.call('HEXISTS', permits, id) == 0 then
  return write_hold(id, lease, units) .. ' ' .. clock
end

local inbox_prefix, counts_everyone = ARGV[9], ARGV[10] == '1'
--@include queue
open_queue()

-- A resend, or the message about the grant was lost.
local held, token = held_by(id)
if held then
  extend(id, lease)
  return {'GRANTED', token, now}
end

local ticket = id .. '/' .. lease .. '/' .. units .. '/' .. tonumber(ARGV[5])
local already_queued = is_queued(ticket)

-- A request that lay in a frozen server's buffer must not take permits for a client that gave up. Holds and tickets that
-- exist are the client's to cancel, so they were looked for first.
if not already_queued and late then
  return {'STALE', now}
end

if units > limit then
  if already_queued then
    remove(ticket, '1')
    promote({})
  end
  takes_writes(permits)
  return {'OVER', limit, now}
end

if mode == 'try' then
  local more, _, rest = promote({})
  -- No waiter can take it now: the caller stands behind them and is next.
  if rest == 'none' and has_capacity(units) then
    return {'GRANTED', write_hold(id, lease, units), now}
  end
  takes_writes(permits)
  return {'BUSY', first_left(), more, now}
end

local waiters = not already_queued and too_many_waiters(tonumber(ARGV[7]), units)
if waiters then
  takes_writes(permits)
  return {'FULL', waiters, now}
end
enqueue(ticket, already_queued, ARGV[6])
local more, granted = promote({[ticket] = true})
if granted[ticket] then return {'GRANTED', granted[ticket], now} end
return {'QUEUED', first_left(), waiting, more, now}
