-- Asks the clients of holds to release them.
-- KEYS: main
-- ARGV: inbox_prefix [attempt_id]...
-- Reply: now
-- The main key is that of the name. A message to a client whose hold has ended is ignored there.

local main, inbox_prefix = KEYS[1], ARGV[1]
--@include clock
--@include absent
-- At a replica, other clients listen.
takes_writes(main)
for n = 2, #ARGV do
  -- To the inbox without a slot: a holder that has not waited reads no other.
  redis.call('PUBLISH', inbox_prefix .. string.match(ARGV[n], '^[^:]*'), 'asked ' .. ARGV[n])
end
return {now}
