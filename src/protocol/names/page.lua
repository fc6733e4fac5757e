-- Lists one page of the names that are in use on the server that has the key.
-- KEYS: key
-- ARGV: cursor count pattern prefix [what]...
-- Reply: run_id cursor [word name]...
-- pattern matches the keys that matter, and perhaps others. what is the word of a kind with the end of a key that shows
-- that a name is in use. count is how many keys are looked at. A cursor of 0 begins, and ends, and is of use on the
-- server with this run_id only.

local at, wanted, match = #ARGV[4] + 1, {}, string.match
for n = 5, #ARGV do wanted[ARGV[n]] = true end
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[3], 'COUNT', ARGV[2])
local reply = {match(redis.call('INFO', 'server'), 'run_id:(%x+)'), page[1]}
for _, key in ipairs(page[2]) do
  local word, name, ending = match(key, '^:(%l+):%{([^{}]+)}(.*)$', at)
  if word and wanted[word .. ending] then
    reply[#reply + 1] = word
    reply[#reply + 1] = name
  end
end
return reply
