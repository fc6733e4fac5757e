-- Steps: is there something that the caller of a watch does not know?
-- Expects the locals: known, the last revision that it has read, 0 for none; leads, the term that it takes for the
-- present one, 0 for none. Expects the fragment changes. Sets the local: is_new.
-- A revision that is not the last one may be unknown here, after a failover. The term counts if the list was lost, or
-- the beginning of that term alone.

local holder = held_term()
settle(holder)
local is_new = (revision or '0') ~= known or leads ~= '0' and leads ~= holder
