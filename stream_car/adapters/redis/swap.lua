#!lua
-- Compare and set: writes fields of a hash if the value of the first field starts with an expected prefix.
-- An empty prefix expects that the first field is missing or empty.
-- KEYS[1]: the hash. ARGV[1]: the number of the call. ARGV[2]: the prefix. ARGV[3] and on: field, value, field, value ...
-- Returns the number of the call, 1 if the fields were written or else 0, and the former value of the first field.
local stored = redis.call('HGET', KEYS[1], ARGV[3]) or ''
local is_expected = string.sub(stored, 1, #ARGV[2]) == ARGV[2] and (#ARGV[2] > 0 or #stored == 0)
if is_expected then redis.call('HSET', KEYS[1], unpack(ARGV, 3)) end
return {ARGV[1], is_expected and 1 or 0, stored}
