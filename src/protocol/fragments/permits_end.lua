-- Fragment: how a call ends a hold of permits and hands its units on.
-- Expects the fragment permits.

-- Gives the units of a hold back. drop_ended() comes after promote().
local function end_hold(id, units)
  -- A server that is out of memory lets a script that has begun to write go on to its end. It refuses a first write
  -- that takes memory, so the first one takes none.
  takes_writes(permits)
  ending, leaving, used = id, units, used - units
end
