#!lua flags=no-writes
-- Returns the values of fields of a hash, all as of one moment; nil for a field that is missing.
-- KEYS[1]: the hash. ARGV[1]: the number of the call, returned first. ARGV[2] and on: the fields.
return {ARGV[1], redis.call('HMGET', KEYS[1], unpack(ARGV, 2))}
