-- New Order (clause 2.4.2) in the server. Keys are those of dyno_tpcc::schema::key: 8, 8, 4 and 2 bytes, big-endian, as int8send is.
CREATE OR REPLACE FUNCTION dyno_txn.tpcc_new_order(
    w bigint, d bigint, c bigint, entered bigint, items bigint[], supplies bigint[], quantities bigint[],
    OUT number bigint, OUT charged bigint, OUT c_last text, OUT c_credit text, OUT c_discount bigint, OUT tax bigint,
    OUT lefts bigint[], OUT amounts bigint[], OUT brands text[])
LANGUAGE plpgsql AS $$
DECLARE
    wk bytea := int8send(w);
    dk bytea := int8send(w) || int8send(d);
    ok bytea;
    sk bytea;
    lines integer := cardinality(items);
    w_tax bigint;
    i_price bigint;
    i_data text;
    s_left bigint;
    s_info text;
    s_data text;
    total bigint := 0;
    local bigint := 1;
BEGIN
    SELECT t.tax INTO STRICT w_tax FROM dyno_txn."tpcc-warehouse" t WHERE t._key = wk;
    SELECT t.last, t.credit, t.discount INTO STRICT c_last, c_credit, c_discount
        FROM dyno_txn."tpcc-customer" t WHERE t._key = dk || int4send(c::integer);
    UPDATE dyno_txn."tpcc-district-order" t SET next_o_id = t.next_o_id + 1
        WHERE t._key = dk RETURNING t.tax, t.next_o_id - 1 INTO STRICT tax, number;
    tax := tax + w_tax;
    ok := dk || int4send(number::integer);
    lefts := ARRAY[]::bigint[];
    amounts := ARRAY[]::bigint[];
    brands := ARRAY[]::text[];
    FOR at IN 1..lines LOOP
        SELECT t.price, t.data INTO i_price, i_data FROM dyno_txn."tpcc-item" t WHERE t._key = int8send(items[at]);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'DT020';
        END IF;
        sk := int8send(supplies[at]) || int8send(items[at]);
        UPDATE dyno_txn."tpcc-stock" t SET
            quantity = t.quantity + CASE WHEN t.quantity >= quantities[at] + 10 THEN -quantities[at] ELSE 91 - quantities[at] END,
            ytd = t.ytd + quantities[at],
            order_cnt = t.order_cnt + 1,
            remote_cnt = t.remote_cnt + CASE WHEN supplies[at] = w THEN 0 ELSE 1 END
            WHERE t._key = sk RETURNING t.quantity INTO STRICT s_left;
        SELECT t.data, CASE d
                WHEN 1 THEN t.dist_01 WHEN 2 THEN t.dist_02 WHEN 3 THEN t.dist_03 WHEN 4 THEN t.dist_04
                WHEN 5 THEN t.dist_05 WHEN 6 THEN t.dist_06 WHEN 7 THEN t.dist_07 WHEN 8 THEN t.dist_08
                WHEN 9 THEN t.dist_09 ELSE t.dist_10 END
            INTO STRICT s_data, s_info FROM dyno_txn."tpcc-stock-info" t WHERE t._key = sk;
        IF supplies[at] <> w THEN
            local := 0;
        END IF;
        total := total + i_price * quantities[at];
        INSERT INTO dyno_txn."tpcc-order-line" (_key, i_id, supply_w_id, quantity, amount, delivery_d, dist_info)
            VALUES (ok || int2send(at::smallint), items[at], supplies[at], quantities[at], i_price * quantities[at], NULL, s_info);
        lefts := lefts || s_left;
        amounts := amounts || i_price * quantities[at];
        brands := brands || CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 'B'::text ELSE 'G'::text END;
    END LOOP;
    INSERT INTO dyno_txn."tpcc-order" (_key, w_id, d_id, c_id, ol_cnt, all_local, entry_d, carrier_id, _index_0)
        VALUES (ok, w, d, c, lines, local, entered, NULL, dk || int8send(c) || ok);
    INSERT INTO dyno_txn."tpcc-new-order" (_key, _value) VALUES (ok, ''::bytea);
    charged := trunc(total::numeric * (10000 - c_discount) * (10000 + tax) / 100000000);
END $$
