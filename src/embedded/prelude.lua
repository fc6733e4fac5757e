-- Makes the table `redis` and closes the globals, as the server does for its scripts.
-- Argument: the function that executes a command and returns its reply or its error.
-- Returns the function that calls a script. Its results are whether the script succeeded, and the script's result or
-- error.

local execute = ...
local error, pcall, tostring, type = error, pcall, tostring, type

redis = {
  -- Scripts use commands of this version.
  REDIS_VERSION_NUM = 0x00070000,
  pcall = execute,
  call = function(...)
    local reply = execute(...)
    if type(reply) == 'table' and reply.err then error(reply) end
    return reply
  end,
}

for _, name in ipairs({'print', 'dofile', 'loadfile', 'newproxy', 'require', 'module', 'package'}) do
  _G[name] = nil
end

setmetatable(_G, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function(_, name)
    error("Script attempted to create global variable '" .. tostring(name) .. "'", 2)
  end,
})

return pcall
