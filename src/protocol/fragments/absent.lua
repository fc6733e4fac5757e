-- Fragment: "not there" is an answer of servers that take writes only.

-- Whether a command failed because its key has another type than the scripts give it. Every other error is about the
-- server or the user, and says nothing about the key.
local function wrong_type(reply)
  return string.find(reply.err, '^WRONGTYPE') ~= nil
end

-- A server that was demoted, or that cannot replicate or store, may not know of a hold or a ticket, or may forget it. So before
-- a script says that something is not there, it has written, or it calls this function: it deletes a field that no hash has,
-- which changes and replicates nothing. But the server checks first whether it takes writes; if not, the call raises why.
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
