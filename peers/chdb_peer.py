"""chDB (ClickHouse in process) as a peer: loads spot archives into a MergeTree table on disk, and
answers the top-ten query."""

import json
import os
import time

import chdb
from chdb.session import Session

import door
import spots

# How text is stored. A user of ClickHouse would choose dictionaries: few distinct values, repeated
# often. The suite that loads a server has both.
TEXT = {"dictionary": "LowCardinality(String)", "fixed": "String"}

# Fields are parsed as plain strings and get their dictionary on the way into the table: that takes
# half the processor time of parsing into LowCardinality.
FIELD_TYPES = {
    "id": "UInt64", "timestamp": "UInt32", "reporter": "String", "reporter_grid": "String",
    "snr": "Int8", "frequency": "Decimal64(7)", "callsign": "String", "grid": "String",
    "power": "Int8", "drift": "Int8", "distance": "UInt32", "azimuth": "UInt16", "band": "Int16",
    "version": "String", "code": "UInt8",
}


def table(text):
    return f"""
    CREATE TABLE spots (
        id UInt64, timestamp DateTime('UTC'), reporter {text}, reporter_grid {text}, snr Int8,
        frequency UInt64, callsign {text}, grid {text}, power Int8, drift Int8, distance UInt32,
        azimuth UInt16, band Int32, mode {text}, version {text}, code UInt8, column_count UInt8
    ) ENGINE = MergeTree PARTITION BY toYYYYMM(timestamp) ORDER BY (timestamp, band, callsign)
    """


# The text's first seven decimals as an integer, rounded half up to six: what stands behind the
# seventh cannot change that.
HZ = "toUInt64(intDiv(reinterpretAsInt64(frequency) + 5, 10))"


def rows_of(session, sql):
    """The rows of a query as lists."""
    text = session.query(sql, "JSONCompactEachRow").bytes().decode()
    return [json.loads(line) for line in text.splitlines()]


def settings(threads):
    return (
        f"SETTINGS max_threads = {threads}, max_insert_threads = {threads}, "
        "input_format_parallel_parsing = 1"
    )


def pattern(files):
    """One path for all files; the engine takes alternatives within a path's last part only."""
    folders = {os.path.dirname(name) for name in files}
    if len(folders) != 1:
        raise SystemExit(f"all files must lie in one directory, not in {sorted(folders)}")
    if len(files) == 1:
        return files[0]
    names = ",".join(os.path.basename(name) for name in files)
    return os.path.join(folders.pop(), "{" + names + "}")


def source(session, kind, files):
    """An SQL table function over the files, and whether it has the table's columns already."""
    path = pattern(files)
    if kind == "parquet":
        scan = f"file('{path}', Parquet)"
        columns = [row[0] for row in rows_of(session, f"DESCRIBE {scan}")]
        return scan, "column_count" in columns
    structure = ", ".join(f"{name} {FIELD_TYPES[name]}" for name in spots.FIELDS)
    compression = {"gz": "gzip", "csv": "none"}[kind]
    return f"file('{path}', CSV, '{structure}', '{compression}')", False


def load_into(session, kind, files, threads, text="dictionary"):
    session.query(table(TEXT[text]))
    scan, finished = source(session, kind, files)
    if finished:
        select = f"SELECT {', '.join(spots.COLUMNS)} FROM {scan}"
    else:
        select = f"""
            SELECT id, timestamp, reporter, reporter_grid, snr, {HZ} AS hz, callsign, grid, power,
                   drift, distance, azimuth, {spots.band_case('hz')}, 'WSPR', version, code, 15
            FROM {scan}
        """
    session.query(f"INSERT INTO spots {select} {settings(threads)}")


def table_checksum(session):
    # Sums of 64-bit integers wrap around in ClickHouse, which is what the checksum asks for.
    weight = "(1 + id % 65521)"
    numbers = [c for c in spots.COLUMNS if c not in spots.STRINGS]
    value = {c: f"toInt64({c})" for c in numbers}
    terms = ", ".join(f"toString(sum({value[c]} * toInt64({weight})))" for c in numbers)
    count, *sums = rows_of(session, f"SELECT toUInt32(count()), {terms} FROM spots")[0]
    weights = {}
    for column in spots.STRINGS:
        sql = f"SELECT hex({column}), toString(sum({weight})) FROM spots GROUP BY {column}"
        weights[column] = [(bytes.fromhex(t), int(w)) for t, w in rows_of(session, sql)]
    sums = {column: int(text) for column, text in zip(numbers, sums)}
    return count, spots.checksum(sums, weights)


def ingest_load(params, scratch, phase):
    inputs_bytes = sum(os.path.getsize(name) for name in params["files"])
    database = os.path.join(scratch, "db")
    session = Session(database)
    watch = door.Watch()
    load_into(
        session,
        params["source"],
        params["files"],
        params["workers"],
        params.get("text", "dictionary"),
    )
    watch.stop()
    count, sums = table_checksum(session)
    reply = spots.load_reply(
        count, sums, watch, params["workers"], inputs_bytes, door.tree_bytes(database)
    )
    session.close()
    return reply


def query_prepare(params, scratch, phase):
    session = Session(os.path.join(scratch, "db"))
    load_into(session, params["source"], params["files"], params["workers"])
    # One part for each month: the state that background merges reach in time.
    session.query("OPTIMIZE TABLE spots FINAL")
    count = rows_of(session, "SELECT toUInt32(count()) FROM spots")[0][0]
    session.close()
    return {"answer": {"count": count, "checksum": "-"}}


def query_top_ten(params, scratch, phase):
    session = Session(os.path.join(params["db"], "db"))
    sql = f"{spots.TOP_TEN} SETTINGS max_threads = {params['threads']}"
    times_s = []
    for _ in range(params["repeats"]):
        at = time.perf_counter()
        rows = rows_of(session, sql)
        times_s.append(time.perf_counter() - at)
    count = rows_of(session, "SELECT toUInt32(count()) FROM spots")[0][0]
    session.close()
    rows = [(call, average, int(n)) for call, average, n in rows]
    return spots.query_reply(count, rows, times_s)


if __name__ == "__main__":
    door.serve(
        chdb.__version__,
        {
            "ingest-load": ingest_load,
            # Today's engine as a library, beside a server of an older version.
            "clickhouse-load": ingest_load,
            "query-prepare": query_prepare,
            "query-top-ten": query_top_ten,
        },
    )
