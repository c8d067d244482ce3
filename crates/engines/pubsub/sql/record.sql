-- Records inside a row's body: packing, unpacking, and which partition a key belongs to.

CREATE OR REPLACE FUNCTION pubsub.int4_at(body bytea, at int) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT ('x' || encode(substring(body FROM at + 1 FOR 4), 'hex'))::bit(32)::int $$;

CREATE OR REPLACE FUNCTION pubsub.int8_at(body bytea, at int) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT ('x' || encode(substring(body FROM at + 1 FOR 8), 'hex'))::bit(64)::bigint $$;

CREATE OR REPLACE FUNCTION pubsub.int2_at(body bytea, at int) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT get_byte(body, at) * 256 + get_byte(body, at + 1) $$;

-- FNV-1a, 64 bits, of the key, modulo the number of partitions. Two halves of 32 bits, because bigint
-- has no multiplication that wraps: the prime is 2^40 + 435.
CREATE OR REPLACE FUNCTION pubsub.key_partition(key bytea, partitions int) RETURNS int
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    high bigint := 3421674724;  -- 0xcbf29ce4
    low bigint := 2216829733;   -- 0x84222325
    low_product bigint;
BEGIN
    FOR at IN 0 .. length(key) - 1 LOOP
        low := low # get_byte(key, at);
        low_product := low * 435;
        high := (high * 435 + (low_product >> 32) + (low << 8)) & 4294967295;
        low := low_product & 4294967295;
    END LOOP;
    RETURN ((high % partitions) * (4294967296 % partitions) + low) % partitions;
END $$;

-- Murmur2 as the default partitioner of Kafka's Java client computes it: the lower 31 bits, modulo the number of partitions.
-- The factor 0x5bd1e995 is below 2^31, so that its product with 32 bits fits a bigint.
CREATE OR REPLACE FUNCTION pubsub.murmur2_partition(key bytea, partitions int) RETURNS int
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    m CONSTANT bigint := 1540483477;  -- 0x5bd1e995
    whole CONSTANT int := length(key) / 4 * 4;
    rest CONSTANT int := length(key) % 4;
    hash bigint := 2538058380 # length(key);  -- the seed 0x9747b28c
    four bigint;
BEGIN
    FOR at IN 0 .. whole - 1 BY 4 LOOP
        four := get_byte(key, at) + get_byte(key, at + 1) * 256 + get_byte(key, at + 2) * 65536
            + get_byte(key, at + 3) * 16777216::bigint;
        four := (four * m) & 4294967295;
        four := ((four # (four >> 24)) * m) & 4294967295;
        hash := ((hash * m) & 4294967295) # four;
    END LOOP;
    FOR at IN 0 .. rest - 1 LOOP
        hash := hash # (get_byte(key, whole + at)::bigint << (8 * at));
    END LOOP;
    IF rest > 0 THEN
        hash := (hash * m) & 4294967295;
    END IF;
    hash := ((hash # (hash >> 13)) * m) & 4294967295;
    RETURN ((hash # (hash >> 15)) & 2147483647) % partitions;
END $$;

-- The partition of a key in a topic; NULL without a key.
CREATE OR REPLACE FUNCTION pubsub.partition_of_key(topic pubsub.topics, key bytea) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE topic.partitioner WHEN 'murmur2' THEN pubsub.murmur2_partition(key, topic.partitions)
                ELSE pubsub.key_partition(key, topic.partitions) END
$$;

-- A header's value as bytes: a text, a null, or {"base64": "..."}, as unpack gives it back. Numbers and the like are refused:
-- what a reader would get is a text.
CREATE OR REPLACE FUNCTION pubsub.header_bytes(name text, value jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF jsonb_typeof(value) IN ('string', 'null') THEN
        RETURN convert_to(value #>> '{}', 'UTF8');
    ELSIF jsonb_typeof(value) = 'object' AND value ? 'base64' AND value - 'base64' = '{}' THEN
        RETURN decode(value ->> 'base64', 'base64');
    END IF;
    RAISE EXCEPTION 'header % is a JSON %, not a text, a null, {"base64": ...} or a list of those', left(name, 40),
        jsonb_typeof(value) USING ERRCODE = 'DP011';
END $$;

-- One record. Headers are a JSON object of values as header_bytes takes them; a list of some is a repeated header.
CREATE OR REPLACE FUNCTION pubsub.pack(time_us bigint, key bytea, headers jsonb, value bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    packed bytea := ''::bytea;
    header_count int := 0;
    name text;
    header_values jsonb;
    one jsonb;
    bytes bytea;
    record bytea;
BEGIN
    IF value IS NULL THEN
        RAISE EXCEPTION 'the value is null; a record has one, if an empty one' USING ERRCODE = 'DP011';
    END IF;
    IF jsonb_typeof(headers) NOT IN ('object', 'null') THEN
        RAISE EXCEPTION 'headers are a JSON %, not an object', jsonb_typeof(headers) USING ERRCODE = 'DP011';
    END IF;
    IF jsonb_typeof(headers) = 'object' THEN
        FOR name, header_values IN SELECT * FROM jsonb_each(headers) LOOP
            IF jsonb_typeof(header_values) <> 'array' THEN
                header_values := jsonb_build_array(header_values);
            END IF;
            IF header_values = '[]' THEN
                RAISE EXCEPTION 'header % is an empty list', left(name, 40) USING ERRCODE = 'DP011';
            END IF;
            FOR one IN SELECT * FROM jsonb_array_elements(header_values) LOOP
                bytes := pubsub.header_bytes(name, one);
                IF octet_length(name) > 65535 OR header_count = 65535 THEN
                    RAISE EXCEPTION 'header % is too long, or one too many', left(name, 40) USING ERRCODE = 'DP011';
                END IF;
                header_count := header_count + 1;
                packed := packed || substring(int4send(octet_length(name)) FROM 3) || convert_to(name, 'UTF8')
                    || CASE WHEN bytes IS NULL THEN int4send(-1) ELSE int4send(length(bytes)) || bytes END;
            END LOOP;
        END LOOP;
    END IF;
    record := int8send(time_us)
        || CASE WHEN key IS NULL THEN int4send(-1) ELSE int4send(length(key)) || key END
        || substring(int4send(header_count) FROM 3) || packed || value;
    IF length(record) > 8388608 THEN
        RAISE EXCEPTION 'a record of % bytes is larger than the 8388608 that are allowed', length(record)
            USING ERRCODE = 'DP002';
    END IF;
    RETURN int4send(length(record)) || record;
END $$;

-- A header's value as JSON: text where it is UTF-8, else an object with the bytes in base64. Not for
-- parallel workers, and so nothing that calls it is: it catches an error, and they may not.
CREATE OR REPLACE FUNCTION pubsub.header_value(bytes bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
    RETURN coalesce(to_jsonb(convert_from(bytes, 'UTF8')), 'null'::jsonb);
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN jsonb_build_object('base64', encode(bytes, 'base64'));
END $$;

CREATE OR REPLACE FUNCTION pubsub.unpack_headers(record bytea, INOUT at int, OUT headers jsonb)
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
DECLARE
    header_count int := pubsub.int2_at(record, at);
    bytes bytea;
    name text;
    size int;
    one jsonb;
BEGIN
    at := at + 2;
    FOR i IN 1 .. header_count LOOP
        size := pubsub.int2_at(record, at);
        bytes := substring(record FROM at + 3 FOR size);
        -- A text of PostgreSQL has no NUL. An error here would keep SQL from this record and from all that lie behind it, so
        -- such a name is shown with its bytes escaped.
        name := CASE WHEN position('\x00'::bytea IN bytes) > 0 THEN encode(bytes, 'escape')
                     ELSE convert_from(bytes, 'UTF8') END;
        at := at + 2 + size;
        size := pubsub.int4_at(record, at);
        one := CASE WHEN size < 0 THEN 'null'::jsonb
                    ELSE pubsub.header_value(substring(record FROM at + 5 FOR size)) END;
        at := at + 4 + greatest(size, 0);
        headers := coalesce(headers, '{}'::jsonb) || jsonb_build_object(name,
            CASE WHEN NOT coalesce(headers ? name, false) THEN one
                 WHEN jsonb_typeof(headers -> name) = 'array' THEN (headers -> name) || jsonb_build_array(one)
                 ELSE jsonb_build_array(headers -> name, one) END);
    END LOOP;
END $$;

-- The records of one row, in order. Rows that a client compressed need a client to read them.
CREATE OR REPLACE FUNCTION pubsub.unpack(base_offset bigint, flags smallint, body bytea)
RETURNS TABLE (message_offset bigint, "time" timestamptz, key bytea, headers jsonb, value bytea)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
DECLARE
    whole bytea := body || ''::bytea;  -- out of TOAST once, not for each field
    total int := length(whole);
    place int := 0;
    size int;
    record bytea;
    time_us bigint;
    key_size int;
    at int;
BEGIN
    IF flags & 3 <> 0 THEN
        RAISE EXCEPTION 'the row at offset % is compressed, which SQL cannot undo: read it with dyno or its library',
            base_offset USING ERRCODE = 'DP013';
    END IF;
    message_offset := base_offset;
    WHILE place < total LOOP
        size := CASE WHEN place + 4 <= total THEN pubsub.int4_at(whole, place) ELSE -1 END;
        IF size < 14 OR size > total - place - 4 THEN
            RAISE EXCEPTION 'the row at offset % is damaged at byte % of %', base_offset, place, total
                USING ERRCODE = 'DP014';
        END IF;
        record := substring(whole FROM place + 5 FOR size);
        time_us := pubsub.int8_at(record, 0);
        -- A producer may give any number. What a timestamp cannot hold is infinite, because an error would keep SQL from all
        -- records that lie behind this one.
        "time" := CASE WHEN time_us > 9000000000000000000 THEN 'infinity'
                       WHEN time_us < -210866803200000000 THEN '-infinity'
                       ELSE timestamptz 'epoch' + time_us * interval '1 microsecond' END;
        key_size := pubsub.int4_at(record, 8);
        key := CASE WHEN key_size >= 0 THEN substring(record FROM 13 FOR key_size) END;
        at := 12 + greatest(key_size, 0);
        SELECT h.at, h.headers INTO at, headers FROM pubsub.unpack_headers(record, at) AS h;
        value := substring(record FROM at + 1);
        RETURN NEXT;
        message_offset := message_offset + 1;
        place := place + 4 + size;
    END LOOP;
END $$;
