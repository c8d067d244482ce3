"""pyarrow's ORC and Parquet writers as a peer. The tables are in memory before the clock starts."""

import concurrent.futures
import os

import pyarrow
import pyarrow.orc
import pyarrow.parquet

import door
import tpch


def load(folder, table):
    """A table as a program would hold it: plain types, one batch after the other."""
    fields = [pyarrow.field(name, tpch.ARROW[kind], nullable=False)
              for name, kind in tpch.COLUMNS[table]]
    path = os.path.join(folder, f"{table}.parquet")
    return pyarrow.parquet.read_table(path).cast(pyarrow.schema(fields))


def write(table, rows, params, path):
    name, _, level = params["compression"].partition(":")
    if params["format"] == "orc":
        codec = {"none": "uncompressed"}.get(name, name)
        # Texts of few values as dictionaries: a little faster, and smaller.
        pyarrow.orc.write_table(rows, path, compression=codec, dictionary_key_size_threshold=0.1)
        return
    few = [column for column, _ in tpch.COLUMNS[table] if column in tpch.FEW]
    pyarrow.parquet.write_table(
        rows, path, compression=name, use_dictionary=few or False,
        compression_level=int(level or 1) if name == "zstd" else None,
        store_decimal_as_integer=True,
    )


def tpch_write(params, scratch, phase):
    tables, form = tpch.tables_of(params), params["format"]
    pyarrow.set_cpu_count(tpch.threads_of(params))
    pyarrow.set_io_thread_count(max(1, tpch.threads_of(params)))
    rows = {table: load(params["from"], table) for table in tables}
    with tpch.Place(params["place"], scratch) as place:
        place_of = lambda table: os.path.join(place.folder, f"{table}.{form}")
        watch = door.Watch()
        with concurrent.futures.ThreadPoolExecutor(tpch.threads_of(params)) as pool:
            jobs = [pool.submit(write, t, rows[t], params, place_of(t)) for t in tables]
            for job in jobs:
                job.result()
        if not place.memory:
            place.sync()
        watch.stop()
        peak = door.peak_rss_bytes()
        size = door.tree_bytes(place.folder)
        answer = tpch.answer_of(place.folder, params)
        return tpch.reply(answer, watch.wall_s, watch.cpu_s, peak, size, tpch.threads_of(params),
                          {"sink": "page cache", "detail": "the tables were in memory already"})


if __name__ == "__main__":
    door.serve(pyarrow.__version__, {"tpch-write": tpch_write})
