-- Queues for any driver: everything by name.

-- Sends one message, visible after a delay, and returns its number.
CREATE OR REPLACE FUNCTION pubsub.queue_send(
    queue text, payload bytea, headers jsonb DEFAULT NULL, delay_ms bigint DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (pubsub.queue_send_batch(queue, ARRAY[payload], ARRAY[headers], delay_ms))[1];
END $$;

CREATE OR REPLACE FUNCTION pubsub.queue_send_batch(
    queue text, payloads bytea[], headers jsonb[] DEFAULT NULL, delay_ms bigint DEFAULT 0) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    sent bigint[];
BEGIN
    IF payloads IS NULL OR array_position(payloads, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a payload is null' USING ERRCODE = 'DP011';
    END IF;
    IF delay_ms IS NULL OR delay_ms < 0 THEN
        RAISE EXCEPTION 'delay_ms is %, and must be 0 or more', coalesce(delay_ms::text, 'null')
            USING ERRCODE = 'DP011';
    END IF;
    IF cardinality(headers) > cardinality(payloads) THEN
        RAISE EXCEPTION 'there are % headers for % payloads', cardinality(headers), cardinality(payloads)
            USING ERRCODE = 'DP011';
    END IF;
    IF EXISTS (SELECT FROM unnest(payloads) AS p WHERE length(p) > 8388608) THEN
        RAISE EXCEPTION 'a payload is larger than the 8388608 bytes that are allowed' USING ERRCODE = 'DP002';
    END IF;
    EXECUTE format('SELECT pubsub.queue_send_%s($1, $2, $3)', (pubsub.queue_named(queue)).queue_id)
       INTO sent USING payloads, coalesce(headers, '{}'), delay_ms;
    RETURN sent;
END $$;

-- The oldest messages that are visible, which are then hidden for a while (NULL: as long as the
-- queue says).
CREATE OR REPLACE FUNCTION pubsub.queue_claim(queue text, most int DEFAULT 1, claim_ms bigint DEFAULT NULL)
RETURNS TABLE (message_id bigint, claim bigint, attempts int, sent_at timestamptz, headers jsonb, payload bytea)
LANGUAGE plpgsql AS $$
BEGIN
    IF most IS NULL OR most NOT BETWEEN 1 AND 10000 OR claim_ms <= 0 THEN
        RAISE EXCEPTION 'claiming % messages for % ms is not possible (1 to 10000)', most, claim_ms
            USING ERRCODE = 'DP011';
    END IF;
    RETURN QUERY EXECUTE format('SELECT * FROM pubsub.queue_claim_%s($1, $2)', (pubsub.queue_named(queue)).queue_id)
        USING most, claim_ms;
END $$;

-- Refuses lists that do not say one claim for each message, and times that there are not.
CREATE OR REPLACE FUNCTION pubsub.check_claims(ids bigint[], claims bigint[], after_ms bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF ids IS NULL OR claims IS NULL OR cardinality(ids) <> cardinality(claims)
        OR array_position(ids, NULL) IS NOT NULL OR array_position(claims, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'each message needs its claim: there are % messages and % claims', cardinality(ids),
            cardinality(claims) USING ERRCODE = 'DP011';
    END IF;
    IF after_ms IS NULL OR after_ms < 0 THEN
        RAISE EXCEPTION '% ms is not a time to wait', coalesce(after_ms::text, 'null') USING ERRCODE = 'DP011';
    END IF;
END $$;

-- Acknowledges messages. Returns those whose claim had run out: another worker has them now, or
-- will.
CREATE OR REPLACE FUNCTION pubsub.queue_ack(queue text, ids bigint[], claims bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    refused bigint[];
BEGIN
    PERFORM pubsub.check_claims(ids, claims, 0);
    EXECUTE format('SELECT pubsub.queue_ack_%s($1, $2)', (pubsub.queue_named(queue)).queue_id)
       INTO refused USING ids, claims;
    RETURN refused;
END $$;

-- Not done: visible again after a delay, with a reason that dead letters keep.
CREATE OR REPLACE FUNCTION pubsub.queue_nack(
    queue text, ids bigint[], claims bigint[], delay_ms bigint DEFAULT 0, reason text DEFAULT 'given back')
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    refused bigint[];
BEGIN
    PERFORM pubsub.check_claims(ids, claims, delay_ms);
    EXECUTE format('SELECT pubsub.queue_move_%s($1, $2, $3, $4)', (pubsub.queue_named(queue)).queue_id)
       INTO refused USING ids, claims, delay_ms, coalesce(reason, 'given back');
    RETURN refused;
END $$;

-- More time: the claims run out after so many milliseconds from now.
CREATE OR REPLACE FUNCTION pubsub.queue_extend(queue text, ids bigint[], claims bigint[], claim_ms bigint)
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    refused bigint[];
BEGIN
    PERFORM pubsub.check_claims(ids, claims, claim_ms);
    EXECUTE format('SELECT pubsub.queue_move_%s($1, $2, $3, NULL)', (pubsub.queue_named(queue)).queue_id)
       INTO refused USING ids, claims, claim_ms;
    RETURN refused;
END $$;

-- The dead letters, the oldest first. What was claimed too often, by workers that did not come
-- back, died when its last claim ran out, though its row is moved by the next claim. It is shown
-- from where it is and not moved first, so that a session which may only read can call this
-- function.
CREATE OR REPLACE FUNCTION pubsub.queue_dead(queue text)
RETURNS TABLE (message_id bigint, sent_at timestamptz, headers jsonb, payload bytea, attempts int, reason text,
               died_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    target CONSTANT pubsub.queues := pubsub.queue_named(queue);
BEGIN
    RETURN QUERY EXECUTE format('SELECT d.message_id, d.sent_at, d.headers, d.payload, d.attempts, '
        'd.reason, d.died_at FROM pubsub.queue_%1$s_dead AS d UNION ALL '
        'SELECT m.message_id, m.sent_at, m.headers, m.payload, s.attempts, '
        'coalesce(s.reason, ''no worker acknowledged it''), s.visible_at '
        'FROM pubsub.queue_%1$s_state AS s JOIN pubsub.queue_%1$s AS m USING (message_id) '
        'WHERE s.visible_at <= statement_timestamp() AND s.attempts >= $1 ORDER BY message_id',
        target.queue_id)
        USING target.max_attempts;
END $$;

-- What is done, if the queue keeps it, the oldest first.
CREATE OR REPLACE FUNCTION pubsub.queue_done(queue text)
RETURNS TABLE (message_id bigint, sent_at timestamptz, headers jsonb, payload bytea, attempts int, done_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT d.message_id, m.sent_at, m.headers, m.payload, d.attempts, d.done_at '
        'FROM pubsub.queue_%1$s_done AS d JOIN pubsub.queue_%1$s AS m USING (message_id) ORDER BY d.message_id',
        (pubsub.queue_named(queue)).queue_id);
END $$;

-- Deletes what was done before a moment. Returns how many messages.
CREATE OR REPLACE FUNCTION pubsub.queue_forget_done(queue text, done_before timestamptz DEFAULT now()) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    forgotten bigint;
BEGIN
    EXECUTE format('WITH notes AS (DELETE FROM pubsub.queue_%1$s_done WHERE done_at < $1 RETURNING message_id), '
        'messages AS (DELETE FROM pubsub.queue_%1$s AS m USING notes AS n WHERE m.message_id = n.message_id) '
        'SELECT count(*) FROM notes', (pubsub.queue_named(queue)).queue_id)
       INTO forgotten USING done_before;
    RETURN forgotten;
END $$;

-- Deletes the messages that no worker has claimed, those that are delayed too. Returns how many.
-- What is claimed stays its worker's, and is there again if that one does not acknowledge it.
CREATE OR REPLACE FUNCTION pubsub.queue_purge(queue text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    id CONSTANT int := (pubsub.queue_named(queue)).queue_id;
    purged bigint;
BEGIN
    -- What was claimed too often is a dead letter, and those stay.
    EXECUTE format('SELECT pubsub.queue_bury_tried_%s()', id);
    EXECUTE format('WITH free AS (SELECT message_id FROM pubsub.queue_%1$s_state '
        'WHERE claim IS NULL OR visible_at <= statement_timestamp() FOR UPDATE SKIP LOCKED), '
        'states AS (DELETE FROM pubsub.queue_%1$s_state AS s USING free AS f WHERE s.message_id = f.message_id '
        'RETURNING s.message_id), '
        'messages AS (DELETE FROM pubsub.queue_%1$s AS m USING states AS s WHERE m.message_id = s.message_id) '
        'SELECT count(*) FROM states', id)
       INTO purged;
    RETURN purged;
END $$;

-- Deletes the dead letters that died before a moment (NULL: all of them). Returns how many.
CREATE OR REPLACE FUNCTION pubsub.queue_forget_dead(queue text, died_before timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    id CONSTANT int := (pubsub.queue_named(queue)).queue_id;
    forgotten bigint;
BEGIN
    EXECUTE format('SELECT pubsub.queue_bury_tried_%s()', id);
    EXECUTE format('WITH letters AS (DELETE FROM pubsub.queue_%s_dead '
        'WHERE died_at < coalesce($1, ''infinity'') RETURNING message_id) '
        'SELECT count(*) FROM letters', id)
       INTO forgotten USING died_before;
    RETURN forgotten;
END $$;

CREATE OR REPLACE FUNCTION pubsub.queue_redrive(queue text, most int DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    risen bigint;
BEGIN
    EXECUTE format('SELECT pubsub.queue_redrive_%s($1)', (pubsub.queue_named(queue)).queue_id) INTO risen USING most;
    RETURN risen;
END $$;

CREATE OR REPLACE FUNCTION pubsub.queue_stats(queue text, OUT ready bigint, OUT delayed bigint, OUT claimed bigint,
    OUT dead bigint, OUT done bigint, OUT oldest_ms bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    id CONSTANT int := (pubsub.queue_named(queue)).queue_id;
BEGIN
    -- What was claimed too often, by workers that did not come back, is dead, though its row is
    -- moved by the next claim.
    EXECUTE format('SELECT count(*) FILTER (WHERE visible_at <= statement_timestamp() AND attempts < $1), '
        'count(*) FILTER (WHERE visible_at > statement_timestamp() AND claim IS NULL), '
        'count(*) FILTER (WHERE visible_at > statement_timestamp() AND claim IS NOT NULL), '
        'count(*) FILTER (WHERE visible_at <= statement_timestamp() AND attempts >= $1) '
        '+ (SELECT count(*) FROM pubsub.queue_%1$s_dead), (SELECT count(*) FROM pubsub.queue_%1$s_done), '
        '(SELECT (extract(epoch FROM statement_timestamp() - sent_at) * 1000)::bigint FROM pubsub.queue_%1$s '
        'WHERE message_id = (SELECT min(message_id) FROM pubsub.queue_%1$s_state)) '
        'FROM pubsub.queue_%1$s_state', id) USING (pubsub.queue_named(queue)).max_attempts
       INTO ready, delayed, claimed, dead, done, oldest_ms;
END $$;
