"""Reads the module's tables with programs that we did not write; started by module.rs with the module on its path.

    module.py TABLE ROWS      a table of spots, and the rows that it has
"""

import fcntl
import gc
import os
import resource
import sys

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute as compute

import dynolab

SF = 0.01
# Rows of the specification at this scale factor; lineitem's come from its random numbers.
ROWS = {
    "region": 5,
    "nation": 25,
    "supplier": 100,
    "customer": 1_500,
    "part": 2_000,
    "partsupp": 8_000,
    "orders": 15_000,
    "lineitem": 60_175,
}


def every_table_has_the_rows_of_the_specification():
    assert set(dynolab.tpch.TABLES) == set(ROWS)
    for name, rows in ROWS.items():
        reader = dynolab.tpch.table(name, sf=SF)
        assert isinstance(reader, pyarrow.RecordBatchReader)
        assert reader.read_all().num_rows == rows, name


def duckdb_finds_each_total_in_the_lines():
    # DuckDB finds the streams by the names of these variables, and reads them without pyarrow.
    orders, lineitem = (dynolab.tpch.Stream(name, SF) for name in ("orders", "lineitem"))
    for name in ("orders", "lineitem"):
        assert duckdb.sql(f"SELECT count(*) FROM {name}").fetchall() == [(ROWS[name],)]
    # Clause 4.2.3: the total of an order is the sum over its lines; cents are cut off in each product.
    wrong = duckdb.sql(
        """
        SELECT count(*) FROM orders JOIN (
            SELECT l_orderkey, sum(floor(floor(l_extendedprice::DOUBLE * 100 * (1 - l_discount::DOUBLE) + 1e-6)
                   * (1 + l_tax::DOUBLE) + 1e-6)) / 100 AS total
            FROM lineitem GROUP BY l_orderkey) ON o_orderkey = l_orderkey
        WHERE abs(total - o_totalprice::DOUBLE) > 0.1
        """
    ).fetchall()
    assert wrong == [(0,)], wrong
    assert len(duckdb.sql("SELECT o_orderkey FROM orders").fetchall()) == ROWS["orders"]


def polars_and_pandas_read_the_stream():
    frame = polars.DataFrame(dynolab.tpch.Stream("part", SF))
    assert frame["p_partkey"].n_unique() == ROWS["part"]
    frame = pandas.DataFrame.from_arrow(dynolab.tpch.Stream("nation", SF))
    assert list(frame["n_name"])[:2] == ["ALGERIA", "ARGENTINA"]


def a_stream_can_be_read_again_and_one_that_nobody_reads_is_freed():
    stream = dynolab.tpch.Stream("supplier", SF)
    first, second = (pyarrow.RecordBatchReader.from_stream(stream).read_all() for _ in range(2))
    assert first == second
    for _ in range(1_000):
        dynolab.tpch.Stream("lineitem", 100).__arrow_c_stream__()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000):
        dynolab.tpch.Stream("lineitem", 100).__arrow_c_stream__()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB"


def what_does_not_exist_is_refused():
    for name, sf, word in (("orderz", 1, "orderz"), ("orders", -1, "-1"), ("orders", float("nan"), "NaN")):
        try:
            dynolab.tpch.table(name, sf)
        except ValueError as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"{name} at {sf} was made")


def spots_are_read_from_their_table(table, rows):
    assert dynolab.ingest.read(table).read_all().num_rows == rows
    strong = dynolab.ingest.read(table, columns=["callsign", "snr"], filter=compute.field("snr") > 0)
    found = strong.read_all()
    assert found.column_names == ["callsign", "snr"] and 0 < found.num_rows < rows
    try:
        dynolab.ingest.read(table, feed="rbn")
    except ValueError as error:
        assert "rbn" in str(error)
    else:
        raise AssertionError("a feed that the table does not have was read")


def a_reader_that_is_dropped_gives_the_lock_back(table):
    def is_free():
        gc.collect()
        with open(os.path.join(table, "readers.lock")) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    reader = dynolab.ingest.read(table)
    assert not is_free(), "a reader that is in use"
    del reader
    assert is_free(), "a reader that was never read"
    dynolab.ingest.read(table).read_next_batch()
    assert is_free(), "a reader that was read in part"
    try:
        dynolab.ingest.read(table, feed="rbn")
    except ValueError as error:
        assert is_free(), error


every_table_has_the_rows_of_the_specification()
duckdb_finds_each_total_in_the_lines()
polars_and_pandas_read_the_stream()
a_stream_can_be_read_again_and_one_that_nobody_reads_is_freed()
what_does_not_exist_is_refused()
spots_are_read_from_their_table(sys.argv[1], int(sys.argv[2]))
a_reader_that_is_dropped_gives_the_lock_back(sys.argv[1])
print("every table was read")
