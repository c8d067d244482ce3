-- Version 9: a broker has one lease, in a row of its own. A lease on each partition had to be renewed in the row that every append
-- locks. So a transaction that sent to one partition and stayed open stopped the renewal of all, and with it appends to others.

CREATE TABLE pubsub.brokers (
    broker text PRIMARY KEY,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

-- Brokers of version 8 serve until the leases end that they have now: they cannot renew them any more.
LOCK TABLE pubsub.partitions IN ACCESS EXCLUSIVE MODE;
INSERT INTO pubsub.brokers (broker, lease_until)
    SELECT broker, max(lease_until) FROM pubsub.partitions
     WHERE broker IS NOT NULL AND lease_until IS NOT NULL GROUP BY broker;
ALTER TABLE pubsub.partitions DROP COLUMN lease_until;

-- Roles that see which broker serves a partition see whether it lives.
DO $migrate$
DECLARE
    role_name text;
BEGIN
    FOR role_name IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
          FROM pg_class AS t, aclexplode(t.relacl) AS a
         WHERE t.oid = 'pubsub.partitions'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> t.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON pubsub.brokers TO %s', role_name);
    END LOOP;
END $migrate$;
