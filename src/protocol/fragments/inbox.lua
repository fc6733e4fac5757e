-- Steps: make the functions that notify clients. A script that needs them itself has them twice.
-- Expects the locals: inbox_prefix, listener, messages.

-- A prefix with a hash tag belongs to shard channels, which need other commands.
local sharded = string.find(inbox_prefix, '{', 1, true)

-- Returns whether the message was sent. A user without the right to publish cannot send any. The waiters then learn the
-- same from their heartbeats.
local function tell(client, message)
  if client == listener then
    messages[#messages + 1] = message
    return true
  end
  if sharded then return type(redis.pcall('SPUBLISH', inbox_prefix .. client, message)) == 'number' end
  return type(redis.pcall('PUBLISH', inbox_prefix .. client, message)) == 'number'
end

-- The number of subscribers of the client's inbox at this server. Subscribers to a pattern of channels do not count.
local function subscribers(client)
  return redis.call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', inbox_prefix .. client)[2]
end
