-- Before PostgreSQL 18 a server has no CRC32C: rows that its functions write have none.
CREATE OR REPLACE FUNCTION pubsub.body_crc(body bytea) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT NULL::int $$;
