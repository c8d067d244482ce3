-- Queues: each message is done by one worker. A narrow table has what changes (when it is visible,
-- which worker claimed it, how often it was tried), so that claiming does not write the payload
-- again.

CREATE OR REPLACE FUNCTION pubsub.queue_named(queue text) RETURNS pubsub.queues
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_queue pubsub.queues;
BEGIN
    SELECT * INTO found_queue FROM pubsub.queues AS q WHERE q.name = queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no queue %', quote_nullable(queue) USING ERRCODE = 'DP012';
    END IF;
    RETURN found_queue;
END $$;

-- The functions of one queue, with static statements. Claims are numbers: an acknowledgement with
-- the number of a claim that ran out is refused.
--
-- Their plans are made once in a session and stay ({plans}). Left to itself PostgreSQL would make
-- one for each call, which costs more than carrying it out: a plan for any limit looks dear beside
-- one for a limit of 1. And whatever size the tables have when the plan is made, it must be good
-- when they are large, which only those by index are.
CREATE OR REPLACE FUNCTION pubsub.make_queue_functions(queue int) RETURNS void
LANGUAGE plpgsql AS $make$
DECLARE
    template CONSTANT text := $template$
CREATE OR REPLACE FUNCTION pubsub.queue_send_{q}(
    payloads bytea[], message_headers jsonb[], delay_ms bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $queue$
DECLARE
    sent bigint;
BEGIN
    -- One message a transaction is what most programs send. Two plain statements cost it a quarter
    -- less than the one for many, whose plan has more to set up.
    IF cardinality(payloads) = 1 THEN
        sent := nextval('pubsub.queue_{q}_ids');
        INSERT INTO pubsub.queue_{q} (message_id, headers, payload) VALUES (sent, message_headers[1], payloads[1]);
        INSERT INTO pubsub.queue_{q}_state (message_id, visible_at)
        VALUES (sent, statement_timestamp() + delay_ms * interval '1 millisecond');
        RETURN ARRAY[sent];
    END IF;
    RETURN pubsub.queue_send_many_{q}(payloads, message_headers, delay_ms);
END $queue$;

CREATE OR REPLACE FUNCTION pubsub.queue_send_many_{q}(
    payloads bytea[], message_headers jsonb[], delay_ms bigint) RETURNS bigint[]
LANGUAGE plpgsql {plans} AS $queue$
DECLARE
    sent bigint[];
BEGIN
    WITH given AS MATERIALIZED (
        SELECT nextval('pubsub.queue_{q}_ids') AS id, g.payload, g.headers
          FROM unnest(payloads, message_headers) AS g (payload, headers)
    ), messages AS (
        INSERT INTO pubsub.queue_{q} (message_id, headers, payload) SELECT id, headers, payload FROM given
    ), states AS (
        INSERT INTO pubsub.queue_{q}_state (message_id, visible_at)
        SELECT id, statement_timestamp() + delay_ms * interval '1 millisecond' FROM given
    )
    SELECT coalesce(array_agg(id ORDER BY id), '{}') INTO sent FROM given;
    RETURN sent;
END $queue$;

-- Messages that were tried too often go to the dead letters; the others come back as a claim. Both
-- are found by one walk from the oldest visible message: a search for those that were tried too
-- often would read all that wait.
--
-- The index keeps the places of messages that are done until it is vacuumed, and a walk from its
-- beginning would pass all of them. So a session notes how far the front was at its last claim, in
-- a setting of its own, and begins a little before it. Once a second, or where nothing is found, it
-- begins at the beginning: a transaction that took long to send a message, or that was rolled back
-- after it claimed one, leaves it behind the front.
CREATE OR REPLACE FUNCTION pubsub.queue_claim_{q}(most int, claim_ms bigint)
RETURNS TABLE (message_id bigint, claim bigint, attempts int, sent_at timestamptz, headers jsonb, payload bytea)
LANGUAGE plpgsql {plans} AS $queue$
DECLARE
    now_s CONSTANT float8 := date_part('epoch', statement_timestamp());
    -- Where to begin, and when the last walk began at the beginning, in seconds since 1970.
    noted CONSTANT float8[] := nullif(current_setting('pubsub.queue_{q}_front', true), '')::float8[];
    -- A clock that goes back takes the note with it.
    is_noted CONSTANT boolean := coalesce(now_s BETWEEN noted[2] AND noted[2] + 1, false);
    walked_s float8 := CASE WHEN is_noted THEN noted[2] ELSE now_s END;
    walk_from timestamptz := CASE WHEN is_noted THEN to_timestamp(noted[1]) ELSE '-infinity' END;
    front timestamptz;
    settings pubsub.queues;
    number bigint;
    found_ids bigint[];
    tried_out bigint[];
BEGIN
    SELECT * INTO settings FROM pubsub.queues AS q WHERE q.queue_id = {q};
    LOOP
        SELECT array_agg(p.message_id) FILTER (WHERE p.attempts < settings.max_attempts),
               array_agg(p.message_id) FILTER (WHERE p.attempts >= settings.max_attempts), min(p.visible_at)
          INTO found_ids, tried_out, front FROM (
            SELECT s.message_id, s.attempts, s.visible_at FROM pubsub.queue_{q}_state AS s
             WHERE s.visible_at >= walk_from AND s.visible_at <= statement_timestamp()
             ORDER BY s.visible_at, s.message_id LIMIT most FOR UPDATE SKIP LOCKED) AS p;
        EXIT WHEN found_ids IS NOT NULL;
        IF tried_out IS NOT NULL THEN
            -- Nothing but dead letters at the front: behind them may be messages.
            PERFORM pubsub.queue_bury_{q}(tried_out, NULL);
        ELSIF walked_s + 0.05 < now_s THEN
            walk_from := '-infinity';
            walked_s := now_s;
        ELSE
            EXIT;
        END IF;
    END LOOP;
    PERFORM set_config('pubsub.queue_{q}_front',
        ARRAY[date_part('epoch', coalesce(front, statement_timestamp())) - 0.2, walked_s]::text, false);
    IF found_ids IS NULL THEN
        RETURN;
    END IF;
    IF tried_out IS NOT NULL THEN
        PERFORM pubsub.queue_bury_{q}(tried_out, NULL);
    END IF;
    number := nextval('pubsub.claim_ids');
    RETURN QUERY
        WITH claimed AS (
            UPDATE pubsub.queue_{q}_state AS s
               SET visible_at = statement_timestamp()
                       + coalesce(claim_ms, settings.visibility_ms) * interval '1 millisecond',
                   attempts = s.attempts + 1, claim = number
             WHERE s.message_id = ANY (found_ids)
            RETURNING s.message_id, s.attempts
        )
        SELECT c.message_id, number, c.attempts, m.sent_at, m.headers, m.payload
          FROM claimed AS c JOIN pubsub.queue_{q} AS m ON m.message_id = c.message_id
         ORDER BY c.message_id;
END $queue$;

CREATE OR REPLACE FUNCTION pubsub.queue_bury_{q}(ids bigint[], why text) RETURNS void
LANGUAGE plpgsql {plans} AS $queue$
BEGIN
    WITH states AS (
        DELETE FROM pubsub.queue_{q}_state WHERE message_id = ANY (ids) RETURNING message_id, attempts, reason
    ), messages AS (
        DELETE FROM pubsub.queue_{q} WHERE message_id = ANY (ids) RETURNING *
    )
    INSERT INTO pubsub.queue_{q}_dead (message_id, sent_at, headers, payload, attempts, reason)
    SELECT m.message_id, m.sent_at, m.headers, m.payload, s.attempts,
           coalesce(why, s.reason, 'no worker acknowledged it')
      FROM messages AS m JOIN states AS s USING (message_id);
END $queue$;

-- Buries the messages that were claimed too often by workers that did not come back. Otherwise the
-- next claim does, which is too late for those who look at the dead letters or delete messages.
CREATE OR REPLACE FUNCTION pubsub.queue_bury_tried_{q}() RETURNS void
LANGUAGE plpgsql {plans} AS $queue$
BEGIN
    PERFORM pubsub.queue_bury_{q}(array_agg(t.message_id), NULL) FROM (
        SELECT s.message_id FROM pubsub.queue_{q}_state AS s
         WHERE s.visible_at <= statement_timestamp()
           AND s.attempts >= (SELECT q.max_attempts FROM pubsub.queues AS q WHERE q.queue_id = {q})
           FOR UPDATE SKIP LOCKED) AS t
     HAVING count(*) > 0;
END $queue$;

-- Done: gone, or noted as done where the queue keeps such messages. Returns what was refused.
CREATE OR REPLACE FUNCTION pubsub.queue_ack_{q}(ids bigint[], claims bigint[]) RETURNS bigint[]
LANGUAGE plpgsql {plans} AS $queue$
DECLARE
    keep CONSTANT boolean := (SELECT q.keep_done FROM pubsub.queues AS q WHERE q.queue_id = {q});
    refused bigint[];
BEGIN
    WITH given AS (
        SELECT * FROM unnest(ids, claims) AS g (id, claim)
    ), states AS (
        DELETE FROM pubsub.queue_{q}_state AS s USING given AS g
         WHERE s.message_id = g.id AND s.claim = g.claim AND s.visible_at > statement_timestamp()
        RETURNING s.message_id, s.attempts
    ), gone AS (
        DELETE FROM pubsub.queue_{q} AS m USING states AS s WHERE NOT keep AND m.message_id = s.message_id
    ), kept AS (
        INSERT INTO pubsub.queue_{q}_done (message_id, attempts)
        SELECT s.message_id, s.attempts FROM states AS s WHERE keep
    )
    SELECT coalesce(array_agg(g.id ORDER BY g.id), '{}') INTO refused FROM given AS g
     WHERE g.id NOT IN (SELECT s.message_id FROM states AS s);
    RETURN refused;
END $queue$;

-- Visible again after so many milliseconds: a worker gives up (why: the reason) or wants more time
-- (NULL).
CREATE OR REPLACE FUNCTION pubsub.queue_move_{q}(ids bigint[], claims bigint[], after_ms bigint, why text)
RETURNS bigint[]
LANGUAGE plpgsql {plans} AS $queue$
DECLARE
    refused bigint[];
BEGIN
    WITH given AS (
        SELECT * FROM unnest(ids, claims) AS g (id, claim)
    ), moved AS (
        UPDATE pubsub.queue_{q}_state AS s
           SET visible_at = statement_timestamp() + after_ms * interval '1 millisecond',
               claim = CASE WHEN why IS NULL THEN s.claim END, reason = coalesce(why, s.reason)
          FROM given AS g
         WHERE s.message_id = g.id AND s.claim = g.claim AND s.visible_at > statement_timestamp()
        RETURNING s.message_id
    )
    SELECT coalesce(array_agg(g.id ORDER BY g.id), '{}') INTO refused FROM given AS g
     WHERE g.id NOT IN (SELECT m.message_id FROM moved AS m);
    -- What was given back for the last time is dead now, and not when a worker next asks for
    -- something.
    IF why IS NOT NULL THEN
        PERFORM pubsub.queue_bury_{q}(array_agg(s.message_id), NULL) FROM pubsub.queue_{q}_state AS s
          WHERE s.message_id = ANY (ids) AND s.claim IS NULL
            AND s.attempts >= (SELECT q.max_attempts FROM pubsub.queues AS q WHERE q.queue_id = {q})
         HAVING count(*) > 0;
    END IF;
    RETURN refused;
END $queue$;

-- Dead letters, the oldest first, become messages again. Returns how many.
CREATE OR REPLACE FUNCTION pubsub.queue_redrive_{q}(most int) RETURNS bigint
LANGUAGE plpgsql AS $queue$
DECLARE
    risen_count bigint;
BEGIN
    PERFORM pubsub.queue_bury_tried_{q}();
    WITH risen AS (
        DELETE FROM pubsub.queue_{q}_dead WHERE message_id IN (
            SELECT message_id FROM pubsub.queue_{q}_dead ORDER BY message_id LIMIT most FOR UPDATE SKIP LOCKED)
        RETURNING message_id, sent_at, headers, payload
    ), messages AS (
        INSERT INTO pubsub.queue_{q} (message_id, sent_at, headers, payload) SELECT * FROM risen
    ), states AS (
        INSERT INTO pubsub.queue_{q}_state (message_id, visible_at) SELECT message_id, statement_timestamp() FROM risen
    )
    SELECT count(*) INTO risen_count FROM risen;
    RETURN risen_count;
END $queue$;
$template$;
    plans CONSTANT text := 'SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off '
        'SET enable_hashjoin = off SET enable_mergejoin = off';
BEGIN
    EXECUTE replace(replace(template, '{q}', queue::text), '{plans}', plans);
    -- A stock of numbers in each session would not follow the order in which messages are sent, by
    -- which the oldest one is found. Queues of earlier versions have such stocks.
    EXECUTE format('ALTER SEQUENCE pubsub.queue_%s_ids CACHE 1', queue);
END $make$;

CREATE OR REPLACE FUNCTION pubsub.create_queue(
    queue text, visibility_ms bigint DEFAULT 30000, max_attempts int DEFAULT 5, keep_done boolean DEFAULT false)
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    made int;
    wrong text;
BEGIN
    PERFORM pubsub.check_name('queue', queue);
    wrong := CASE
        WHEN coalesce(visibility_ms, 0) <= 0
            THEN format('visibility_ms is %s, and must be above 0', coalesce(visibility_ms::text, 'null'))
        WHEN coalesce(max_attempts, 0) <= 0
            THEN format('max_attempts is %s, and must be above 0', coalesce(max_attempts::text, 'null'))
        WHEN keep_done IS NULL THEN 'keep_done is null, and must be true or false' END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'DP011';
    END IF;
    INSERT INTO pubsub.queues (name, visibility_ms, max_attempts, keep_done)
    VALUES (create_queue.queue, create_queue.visibility_ms, create_queue.max_attempts, create_queue.keep_done)
    ON CONFLICT (name) DO NOTHING RETURNING queue_id INTO made;
    IF made IS NULL THEN
        RAISE EXCEPTION 'there is a queue % already', quote_literal(queue) USING ERRCODE = 'DP010';
    END IF;
    EXECUTE replace($queue$
        CREATE SEQUENCE pubsub.queue_{q}_ids AS bigint;
        CREATE TABLE pubsub.queue_{q} (
            message_id bigint PRIMARY KEY, sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            headers jsonb, payload bytea NOT NULL);
        ALTER TABLE pubsub.queue_{q} ALTER payload SET STORAGE EXTERNAL;
        CREATE TABLE pubsub.queue_{q}_state (
            message_id bigint PRIMARY KEY, visible_at timestamptz NOT NULL, attempts int NOT NULL DEFAULT 0,
            claim bigint, reason text)
            WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
                  autovacuum_vacuum_cost_delay = 0);
        CREATE INDEX ON pubsub.queue_{q}_state (visible_at, message_id);
        CREATE TABLE pubsub.queue_{q}_dead (
            message_id bigint PRIMARY KEY, sent_at timestamptz NOT NULL, headers jsonb, payload bytea NOT NULL,
            attempts int NOT NULL, reason text NOT NULL, died_at timestamptz NOT NULL DEFAULT clock_timestamp());
        CREATE TABLE pubsub.queue_{q}_done (
            message_id bigint PRIMARY KEY, attempts int NOT NULL, done_at timestamptz NOT NULL DEFAULT clock_timestamp());
    $queue$, '{q}', made::text);
    PERFORM pubsub.make_queue_functions(made);
    RETURN made;
END $$;

CREATE OR REPLACE FUNCTION pubsub.drop_queue(queue text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    gone pubsub.queues := pubsub.queue_named(queue);
BEGIN
    DELETE FROM pubsub.queues AS q WHERE q.queue_id = gone.queue_id;
    EXECUTE replace('DROP FUNCTION IF EXISTS pubsub.queue_send_{q}, pubsub.queue_send_many_{q}, pubsub.queue_claim_{q}, pubsub.queue_bury_{q}, '
        'pubsub.queue_bury_tried_{q}, pubsub.queue_ack_{q}, pubsub.queue_move_{q}, pubsub.queue_redrive_{q}; '
        'DROP TABLE pubsub.queue_{q}, pubsub.queue_{q}_state, pubsub.queue_{q}_dead, pubsub.queue_{q}_done; '
        'DROP SEQUENCE pubsub.queue_{q}_ids', '{q}', gone.queue_id::text);
END $$;
