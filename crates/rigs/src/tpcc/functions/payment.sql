-- Payment (clause 2.5.2) in the server. A customer comes by key, or as a range of the index by name.
CREATE OR REPLACE FUNCTION dyno_txn.tpcc_payment(
    w bigint, d bigint, cw bigint, cd bigint, by_key bytea, named_from bytea, named_until bytea,
    paid bigint, paid_ms bigint, history_key bytea,
    OUT id bigint, OUT c_first text, OUT c_last text, OUT c_credit text, OUT c_balance bigint,
    OUT w_street text, OUT d_street text)
LANGUAGE plpgsql AS $$
DECLARE
    wk bytea := int8send(w);
    dk bytea := int8send(w) || int8send(d);
    ck bytea := by_key;
    named bytea[];
    w_name text;
    d_name text;
BEGIN
    IF ck IS NULL THEN
        SELECT array_agg(t._key ORDER BY t._index_0) INTO named FROM dyno_txn."tpcc-customer" t
            WHERE t._index_0 >= named_from AND t._index_0 < named_until;
        ck := named[(cardinality(named) + 1) / 2];
    END IF;
    IF ck IS NULL THEN
        RAISE EXCEPTION 'customer: there is none; was the database loaded?' USING ERRCODE = 'DT015';
    END IF;
    -- The number is the key's third part.
    id := ('x' || encode(substring(ck FROM 17 FOR 4), 'hex'))::bit(32)::bigint;
    SELECT t.name, t.street_1 INTO STRICT w_name, w_street FROM dyno_txn."tpcc-warehouse" t WHERE t._key = wk;
    SELECT t.name, t.street_1 INTO STRICT d_name, d_street FROM dyno_txn."tpcc-district" t WHERE t._key = dk;
    UPDATE dyno_txn."tpcc-customer-sums" t SET
        balance = t.balance - paid,
        ytd_payment = t.ytd_payment + paid,
        payment_cnt = t.payment_cnt + 1
        WHERE t._key = ck RETURNING t.balance INTO c_balance;
    SELECT t.first, t.last, t.credit INTO c_first, c_last, c_credit FROM dyno_txn."tpcc-customer" t WHERE t._key = ck;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer: there is none; was the database loaded?' USING ERRCODE = 'DT015';
    END IF;
    IF c_credit = 'BC' THEN
        UPDATE dyno_txn."tpcc-customer" t SET data = left(concat_ws(' ', id, cd, cw, d, w, paid, t.data), 500) WHERE t._key = ck;
    END IF;
    INSERT INTO dyno_txn."tpcc-history" (_key, c_w_id, c_d_id, c_id, date, amount, data)
        VALUES (history_key, cw, cd, id, paid_ms, paid, w_name || '    ' || d_name);
    -- The rows that every payment of a district and of a warehouse changes come last, so that they are held shortest.
    UPDATE dyno_txn."tpcc-district-ytd" t SET ytd = t.ytd + paid WHERE t._key = dk;
    UPDATE dyno_txn."tpcc-warehouse-ytd" t SET ytd = t.ytd + paid WHERE t._key = wk;
END $$
