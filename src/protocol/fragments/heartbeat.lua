-- Fragment: what the heartbeats of locks and of permits share. The tickets begin at the position `first` of ARGV.
-- Expects the fragments absent, queue and place.

-- Keeps the tickets alive for which `may_stay` returns true, removes the others, and returns the live ones as a set.
local function keep_alive(first, may_stay)
  local live = {}
  if waiting == 0 then return live end
  for i = first, #ARGV, 2 do
    if expiry(ARGV[i]) then
      if may_stay(ARGV[i]) then
        refresh(ARGV[i], ARGV[i + 1])
        live[ARGV[i]] = true
      else
        remove(ARGV[i], '1')
      end
    end
  end
  if next(live) then keep_queue() end
  return live
end

-- Adds to the reply what became of each ticket. `token_of` returns the token of an attempt's hold, if it has one, and
-- gives the hold its full lease again.
local function add_outcomes(reply, first, live, main, token_of)
  for i = first, #ARGV, 2 do
    local outcome, token = 'GONE', nil
    if live[ARGV[i]] then
      outcome = 'WAITING'
    else
      local id, _, lease = parse(ARGV[i])
      token = id and token_of(id, lease)
      if token then outcome = 'GRANTED' else takes_writes(main) end
    end
    reply[#reply + 1] = outcome
    reply[#reply + 1] = token or ''
  end
  return reply
end
