-- Fragment: only a server that accepts writes may answer that something does not exist.

-- Whether a command failed because the key has a type that the scripts do not write. Every other error is about the
-- server or the user, and says nothing about the key.
local function wrong_type(reply)
  return string.find(reply.err, '^WRONGTYPE') ~= nil
end

-- A server that was demoted, or that cannot replicate or store, may not know a hold or a ticket, or may lose it. Before
-- a script replies that something does not exist, it has therefore written, or it calls this function. The function
-- deletes a field that no hash has, which changes and replicates nothing. But the server first checks whether it
-- accepts writes, and if it does not, the call raises the reason.
local shown
local function takes_writes(hash)
  if shown then return end
  local answer = redis.pcall('HDEL', hash, '')
  if type(answer) ~= 'number' and not wrong_type(answer) then
    -- Raises what the first call returned.
    redis.call('HDEL', hash, '')
  end
  shown = true
end
