"""DuckDB as a peer: loads spot archives into a table on disk, answers queries on it, and makes a
training set of it."""

import os
import time

import duckdb

import door
import feeds
import spots
import training_set

TYPES = {
    "id": "UBIGINT", "timestamp": "BIGINT", "reporter": "VARCHAR", "reporter_grid": "VARCHAR",
    "snr": "TINYINT", "frequency": "DECIMAL(11,6)", "callsign": "VARCHAR", "grid": "VARCHAR",
    "power": "TINYINT", "drift": "TINYINT", "distance": "UINTEGER", "azimuth": "USMALLINT",
    "band": "SMALLINT", "version": "VARCHAR", "code": "UTINYINT",
}

# DECIMAL(11,6) times a DECIMAL(7,0) stays in 64 bits; casting text to it rounds half up.
HZ = "CAST(frequency * 1000000 AS UBIGINT)"

# An empty field is an empty string in the table. DuckDB takes it for NULL unless NULL is written
# otherwise; no field of an archive looks like this.
NO_NULL = "\\N"


def connect(path, threads):
    # The order of rows in the table is free, and keeping that of the files costs memory.
    config = {"threads": threads, "preserve_insertion_order": False}
    return duckdb.connect(path, config=config)


def source(connection, kind, files):
    """An SQL table expression over the files, and whether it has the table's columns already."""
    names = feeds.listed(files)
    if kind == "parquet":
        scan = f"read_parquet({names})"
        columns = [row[0] for row in connection.execute(f"DESCRIBE FROM {scan}").fetchall()]
        return scan, "column_count" in columns
    columns = ", ".join(f"'{name}': '{TYPES[name]}'" for name in spots.FIELDS)
    compression = {"gz": "gzip", "csv": "none"}[kind]
    scan = (
        f"read_csv({names}, columns={{{columns}}}, auto_detect=false, header=false, delim=',', "
        f"quote='', escape='', nullstr='{NO_NULL}', compression='{compression}')"
    )
    return scan, False


def load_into(connection, kind, files):
    scan, finished = source(connection, kind, files)
    if finished:
        chosen = ", ".join(spots.COLUMNS)
        connection.execute(f"CREATE TABLE spots AS SELECT {chosen} FROM {scan}")
    else:
        connection.execute(f"""
            CREATE TABLE spots AS
            SELECT id, make_timestamp(timestamp * 1000000) AS timestamp, reporter, reporter_grid,
                   snr, hz AS frequency, callsign, grid, power, drift, distance, azimuth,
                   CAST({spots.band_case('hz')} AS INTEGER) AS band, 'WSPR' AS mode, version, code,
                   CAST(15 AS UTINYINT) AS column_count
            FROM (SELECT * EXCLUDE (frequency, band), {HZ} AS hz FROM {scan})
        """)
    connection.execute("CHECKPOINT")


def table_checksum(connection):
    weight = "(1 + id % 65521)"
    numbers = [c for c in spots.COLUMNS if c not in spots.STRINGS]
    # A product of HUGEINT cannot overflow here; a sum of them of this many rows cannot either.
    value = {c: f"{c}::HUGEINT" for c in numbers} | {"timestamp": "epoch(timestamp)::HUGEINT"}
    terms = ", ".join(f"sum({value[c]} * {weight}::HUGEINT)" for c in numbers)
    count, *sums = connection.execute(f"SELECT count(*), {terms} FROM spots").fetchone()
    weights = {
        c: connection.execute(f"SELECT {c}, sum({weight}) FROM spots GROUP BY {c}").fetchall()
        for c in spots.STRINGS
    }
    if count == 0:
        sums = [0] * len(numbers)
    return count, spots.checksum(dict(zip(numbers, sums)), weights)


def ingest_load(params, scratch, phase):
    database = os.path.join(scratch, "spots.duckdb")
    inputs_bytes = sum(os.path.getsize(name) for name in params["files"])
    connection = connect(database, params["workers"])
    watch = door.Watch()
    load_into(connection, params["source"], params["files"])
    watch.stop()
    count, sums = table_checksum(connection)
    connection.close()
    return spots.load_reply(
        count, sums, watch, params["workers"], inputs_bytes, door.tree_bytes(database)
    )


def feeds_load(params, scratch, phase):
    database = os.path.join(scratch, "rows.duckdb")
    inputs_bytes = sum(os.path.getsize(name) for name in params["files"])
    connection = connect(database, params["workers"])
    watch = door.Watch()
    select = feeds.ROWS[params["feed"]](params["files"], scratch)
    connection.execute(f"CREATE TABLE rows AS {select}")
    connection.execute("CHECKPOINT")
    watch.stop()
    count, sums = feeds.table_checksum(connection)
    connection.close()
    return spots.load_reply(
        count, sums, watch, params["workers"], inputs_bytes, door.tree_bytes(database)
    )


def query_prepare(params, scratch, phase):
    connection = connect(os.path.join(scratch, "spots.duckdb"), params["workers"])
    load_into(connection, params["source"], params["files"])
    count = connection.execute("SELECT count(*) FROM spots").fetchone()[0]
    connection.close()
    return {"answer": {"count": count, "checksum": "-"}}


def ask(params, sql):
    """The connection, the answer's rows, and the seconds of each repetition."""
    connection = duckdb.connect(
        os.path.join(params["db"], "spots.duckdb"),
        read_only=True,
        config={"threads": params["threads"]},
    )
    times_s = []
    for _ in range(params["repeats"]):
        at = time.perf_counter()
        rows = connection.execute(sql).fetchall()
        times_s.append(time.perf_counter() - at)
    return connection, rows, times_s


def query_top_ten(params, scratch, phase):
    connection, rows, times_s = ask(params, spots.TOP_TEN)
    count = connection.execute("SELECT count(*) FROM spots").fetchone()[0]
    return spots.query_reply(count, rows, times_s)


def query_spots(params, scratch, phase):
    connection, rows, times_s = ask(params, spots.query_text(params["query"]))
    names = [column[0] for column in connection.description]
    return spots.spots_reply(params["rows"], names, rows, times_s)


def ingest_features(params, scratch, phase):
    path = os.path.join(scratch, "features.parquet")
    connection = duckdb.connect(
        os.path.join(params["db"], "spots.duckdb"),
        read_only=True,
        config={"threads": params["threads"]},
    )
    spots_there = connection.execute("SELECT count(*) FROM spots").fetchone()[0]
    at = time.perf_counter()
    training_set.make(connection, path)
    # Ours is on stable storage when its clock stops.
    with open(path, "rb") as made:
        os.fsync(made.fileno())
    seconds = time.perf_counter() - at
    count, sums = training_set.checksum(connection, path)
    return {
        "answer": {"count": count, "checksum": sums},
        "metrics": {
            "throughput": spots_there / seconds,
            "time": seconds,
            "set-bytes": os.path.getsize(path),
        },
    }


if __name__ == "__main__":
    door.serve(
        duckdb.__version__,
        {
            "ingest-load": ingest_load,
            "feeds-load": feeds_load,
            "query-prepare": query_prepare,
            "query-top-ten": query_top_ten,
            "query-spots": query_spots,
            "ingest-features": ingest_features,
        },
    )
