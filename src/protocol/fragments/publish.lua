-- Fragment: a message on a channel of Redisson. Expects the locals: channel, how.
-- how is `single` for one server, `sharded` if the channel is a shard channel, `both` for a cluster in which only
-- others may use shard channels.

-- Returns how many subscribers have got the message, as far as the server counts them, or an error: the user may not
-- publish there.
local function publish(message)
  local heard
  if how ~= 'single' then heard = redis.pcall('SPUBLISH', channel, message) end
  if how ~= 'sharded' then heard = redis.pcall('PUBLISH', channel, message) end
  return heard
end
