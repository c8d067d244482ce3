-- PostgreSQL 18 computes CRC32C. The type of the column is int, so the upper half is folded into the sign.
CREATE OR REPLACE FUNCTION pubsub.body_crc(body bytea) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT (crc32c(body) - CASE WHEN crc32c(body) > 2147483647 THEN 4294967296 ELSE 0 END)::int $$;
