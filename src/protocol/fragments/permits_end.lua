-- Fragment: how a call ends a hold of permits and hands its units on.
-- Expects the fragment permits.

-- Gives the units of a hold back. drop_ended() comes after promote().
local function end_hold(id, units)
  ending, leaving, used = id, units, used - units
end
