"""DuckDB's tpch extension as a peer: dbgen into a database in memory, then COPY to files."""

import glob
import os
import resource
import sys
import time

import duckdb
import duckdb_extension_tpch

import door
import tpch


def connect(threads):
    # The order of rows is free, and keeping it costs.
    config = {"threads": threads, "preserve_insertion_order": False}
    connection = duckdb.connect(config=config)
    folder = os.path.dirname(duckdb_extension_tpch.__file__)
    found = glob.glob(os.path.join(folder, "extensions", "*", "tpch.duckdb_extension"))
    if len(found) != 1:
        sys.exit(f"{folder} has {len(found)} tpch extensions, not one")
    connection.execute(f"LOAD '{found[0]}'")
    return connection


def options(params):
    if params["format"] == "csv":
        return "FORMAT csv, HEADER"
    if params["format"] == "tbl":
        sys.exit("DuckDB writes no bar at the end of a line, so it does not write TBL")
    name, _, level = params["compression"].partition(":")
    codec = {"none": "uncompressed"}.get(name, name)
    extra = f", COMPRESSION_LEVEL {level or 1}" if name == "zstd" else ""
    return f"FORMAT parquet, COMPRESSION {codec}{extra}"


def tpch_write(params, scratch, phase):
    tables, form = tpch.tables_of(params), params["format"]
    if params["place"] == "null":
        sys.exit("DuckDB copies into files")
    connection = connect(tpch.threads_of(params))
    with tpch.Place(params["place"], scratch) as place:
        watch = door.Watch()
        connection.execute(f"CALL dbgen(sf = {params['sf']})")
        made_s = time.perf_counter() - watch.wall_at
        made_cpu_s = time.process_time() - watch.cpu_at
        for table in tables:
            path = os.path.join(place.folder, f"{table}.{form}")
            connection.execute(f"COPY {table} TO '{path}' ({options(params)})")
        if not place.memory:
            place.sync()
        watch.stop()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        connection.close()
        size = door.tree_bytes(place.folder)
        answer = tpch.answer_of(place.folder, params)
        return tpch.reply(
            answer, watch.wall_s, watch.cpu_s, peak, size, tpch.threads_of(params),
            {"sink": "page cache", "detail": f"dbgen {made_s:.2f} s, copy {watch.wall_s - made_s:.2f} s"},
            **{"dbgen-s": made_s, "dbgen-cpu-s": made_cpu_s, "copy-s": watch.wall_s - made_s,
               "copy-cpu-s": watch.cpu_s - made_cpu_s},
        )


if __name__ == "__main__":
    door.serve(duckdb.__version__, {"tpch-write": tpch_write})
