-- Steps: read what is stored of the last run: its token, when it began and ended, in ms (0: it has not), how it ended,
-- and its attempt id.
-- Expects the local: fence. Sets the locals: last (the token, a number), began, outcome, by; all nil if there was none.

local last, began, _, outcome, by =
  string.match(redis.call('GET', fence) or '', '^(%d+) (%d+) (%d+) (%l+) (%S+)$')
last = tonumber(last)
