"""TPC-H tables as every system must write them, and the checksum of what it wrote (docs/formats/checksums.md).

Files are read back by pyarrow, after the clock has stopped.
"""

import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

# Columns with their kinds: i whole number, d decimal with two places, t day, s text.
COLUMNS = {
    "region": "r_regionkey:i r_name:s r_comment:s",
    "nation": "n_nationkey:i n_name:s n_regionkey:i n_comment:s",
    "part": "p_partkey:i p_name:s p_mfgr:s p_brand:s p_type:s p_size:i p_container:s "
            "p_retailprice:d p_comment:s",
    "supplier": "s_suppkey:i s_name:s s_address:s s_nationkey:i s_phone:s s_acctbal:d s_comment:s",
    "partsupp": "ps_partkey:i ps_suppkey:i ps_availqty:i ps_supplycost:d ps_comment:s",
    "customer": "c_custkey:i c_name:s c_address:s c_nationkey:i c_phone:s c_acctbal:d "
                "c_mktsegment:s c_comment:s",
    "orders": "o_orderkey:i o_custkey:i o_orderstatus:s o_totalprice:d o_orderdate:t "
              "o_orderpriority:s o_clerk:s o_shippriority:i o_comment:s",
    "lineitem": "l_orderkey:i l_partkey:i l_suppkey:i l_linenumber:i l_quantity:d "
                "l_extendedprice:d l_discount:d l_tax:d l_returnflag:s l_linestatus:s "
                "l_shipdate:t l_commitdate:t l_receiptdate:t l_shipinstruct:s l_shipmode:s "
                "l_comment:s",
}
COLUMNS = {
    table: [tuple(column.split(":")) for column in text.split()]
    for table, text in COLUMNS.items()
}
TABLES = list(COLUMNS)

# Texts of few distinct values, for writers that must be told where a dictionary pays.
FEW = {
    "p_mfgr", "p_brand", "p_type", "p_container", "c_mktsegment", "o_orderstatus",
    "o_orderpriority", "o_clerk", "l_returnflag", "l_linestatus", "l_shipinstruct", "l_shipmode",
    "n_name", "r_name",
}

ARROW = {"i": pyarrow.int64(), "d": pyarrow.decimal128(15, 2), "t": pyarrow.date32(),
         "s": pyarrow.string()}

# Rows of lineitem follow no formula; those of the others do.
LINES = {0.01: 60_175, 0.1: 600_572, 1: 6_001_215, 10: 59_986_052,
         30: 179_998_372, 100: 600_037_902}
ROWS_AT_1 = {"part": 200_000, "supplier": 10_000, "partsupp": 800_000, "customer": 150_000,
             "orders": 1_500_000}


def tables_of(params):
    """The tables that a case asks for, each after those that it refers to."""
    asked = params["tables"]
    return [t for t in TABLES if asked == "all" or t in asked]


def threads_of(params):
    """The threads that a case asks for."""
    return os.cpu_count() if params["jobs"] == "all" else params["jobs"]


def rows_of(table, scale):
    """How many rows a table has by the specification (4.2.5)."""
    if table == "lineitem":
        if scale not in LINES:
            sys.exit(f"the rows of lineitem at scale factor {scale} are not known here")
        return LINES[scale]
    return {"nation": 25, "region": 5}.get(table) or round(ROWS_AT_1[table] * scale)


def weights(table, column):
    """1 + key mod 65521 of each row. `column` hands out values by name."""
    first = COLUMNS[table][0][0]
    key = column(first)
    if table == "lineitem":
        key = key * numpy.uint64(8) + column("l_linenumber")
    if table == "partsupp":
        key = key + numpy.uint64(8191) * column("ps_suppkey")
    return numpy.uint64(1) + key % numpy.uint64(65_521)


def values(array, kind, bare=False):
    """The values of a column as unsigned 64-bit numbers."""
    if array.null_count:
        sys.exit("a column holds NULL, which no column of TPC-H may")
    start, rows = array.offset, len(array)
    if kind == "d":
        if array.type != ARROW["d"]:
            array = array.cast(ARROW["d"])
            start = array.offset
        halves = numpy.frombuffer(array.buffers()[1], dtype=numpy.uint64)
        return halves[2 * start:2 * (start + rows):2]
    if kind == "t":
        array = array.cast(pyarrow.date32())
        days = numpy.frombuffer(array.buffers()[1], dtype=numpy.int32)
        return days[array.offset:array.offset + rows].astype(numpy.int64).view(numpy.uint64)
    if kind == "i":
        array = array.cast(pyarrow.int64())
        whole = numpy.frombuffer(array.buffers()[1], dtype=numpy.int64)
        return whole[array.offset:array.offset + rows].view(numpy.uint64)
    return text_values(array, bare)


def text_values(array, bare):
    """Length * 2^24 + first byte * 2^16 + middle byte * 2^8 + last byte; 0 for an empty text. A bare
    one is its length alone."""
    if array.type != pyarrow.string():
        array = array.cast(pyarrow.string())
    start, rows = array.offset, len(array)
    if rows == 0:
        return numpy.zeros(0, dtype=numpy.uint64)
    offsets = numpy.frombuffer(array.buffers()[1], dtype=numpy.int32)[start:start + rows + 1]
    data = numpy.frombuffer(array.buffers()[2], dtype=numpy.uint8)
    begins, ends = offsets[:-1], offsets[1:]
    lengths = ends - begins
    if bare:
        return lengths.astype(numpy.uint64) << numpy.uint64(24)
    full = lengths > 0
    if not full.all():
        begins, ends, some = begins[full], ends[full], lengths[full]
    else:
        some = lengths
    packed = (
        (some.astype(numpy.uint64) << numpy.uint64(24))
        | (data[begins].astype(numpy.uint64) << numpy.uint64(16))
        | (data[begins + some // 2].astype(numpy.uint64) << numpy.uint64(8))
        | data[ends - 1].astype(numpy.uint64)
    )
    if full.all():
        return packed
    out = numpy.zeros(rows, dtype=numpy.uint64)
    out[full] = packed
    return out


def batch_sum(table, batch, text):
    """Rows of a batch, and its share of the table's sum."""
    weight = weights(table, lambda name: values(batch.column(name), "i"))
    total = 0
    for number, (name, kind) in enumerate(COLUMNS[table]):
        bare = text == "lengths" and name.endswith(("_comment", "_address"))
        share = int((values(batch.column(name), kind, bare) * weight).sum(dtype=numpy.uint64))
        total += share * (2 * number + 1)
    return batch.num_rows, total % 2**64


def batches(table, path, form):
    """The record batches of a file."""
    names = [name for name, _ in COLUMNS[table]]
    if form == "parquet":
        return pyarrow.parquet.ParquetFile(path).iter_batches(131_072, columns=names)
    if form == "orc":
        file = pyarrow.orc.ORCFile(path)
        return (file.read_stripe(number) for number in range(file.nstripes))
    tbl = form == "tbl"
    return pyarrow.csv.open_csv(
        path,
        # A line of a TBL file ends with a bar, behind which nothing comes.
        read_options=pyarrow.csv.ReadOptions(
            block_size=16 << 20, column_names=names + [""] if tbl else None),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter="|" if tbl else ",", quote_char=False if tbl else '"'),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: ARROW[kind] for name, kind in COLUMNS[table]},
            include_columns=names, strings_can_be_null=False),
    )


def file_sum(table, path, form, text):
    rows = total = 0
    for batch in batches(table, path, form):
        some, share = batch_sum(table, batch, text)
        rows, total = rows + some, total + share
    return rows, total % 2**64


def answer_of(folder, params):
    """Reads back what lies in a folder: the count of all rows, and rows and sum of each table."""
    tables, form, text = tables_of(params), params["format"], params["text"]
    jobs = [(t, path) for t in tables for path in sorted(files_of(folder, t, form))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = list(pool.map(lambda job: file_sum(*job, form, text), jobs))
    parts, count = [], 0
    for table in tables:
        own = [s for (t, _), s in zip(jobs, sums) if t == table]
        rows, total = sum(s[0] for s in own), sum(s[1] for s in own) % 2**64
        parts.append(f"{table}:{rows}:{total:016x}")
        count += rows
    return {"count": count, "checksum": " ".join(parts)}


def files_of(folder, table, form):
    """`lineitem.parquet`, or the files of a folder `lineitem`."""
    return glob.glob(os.path.join(folder, f"{table}.{form}")) + glob.glob(
        os.path.join(folder, table, f"*.{form}"))


class Place:
    """Where a case's files go: below the scratch directory, in memory, or nowhere."""

    def __init__(self, place, scratch):
        self.memory = place == "memory"
        self.null = place == "null"
        if self.memory:
            remove_strays()
            self.folder = f"/dev/shm/dynolab-{os.getpid()}"
            os.mkdir(self.folder)
        else:
            self.folder = scratch

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.memory:
            shutil.rmtree(self.folder, ignore_errors=True)

    def sync(self):
        """Brings every file to stable storage, as `dyno` does; in memory there is nothing to do."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                file = os.open(os.path.join(folder, name), os.O_RDONLY)
                os.fsync(file)
                os.close(file)


def remove_strays():
    """Folders in memory whose process was killed before it could remove them."""
    for folder in glob.glob("/dev/shm/dynolab-*"):
        owner = folder.rsplit("-", 1)[1]
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(folder, ignore_errors=True)


def count_lines(command):
    """Lines that a command prints, counted by another program."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        counted = subprocess.run(["wc", "-l"], stdin=child.stdout, capture_output=True, check=True)
    if child.returncode:
        sys.exit(f"{command[0]} ended with code {child.returncode}")
    return int(counted.stdout)


def reply(answer, wall_s, cpu_s, peak_bytes, size, threads, facts, **metrics):
    """The reply of `tpch-write`, the same for every peer."""
    busy = cpu_s / wall_s
    kind = "processor" if busy > 0.85 * threads else "waiting, or one stage of several"
    told = {
        "throughput": answer["count"] / wall_s, "time": wall_s, "cpu": cpu_s,
        "cpu-rows-per-s": answer["count"] / cpu_s if cpu_s else 0.0,
        "peak-rss": peak_bytes, "bytes": size,
    }
    if size:
        told["io-rate"] = size / wall_s
    return {
        "answer": answer,
        "metrics": told | metrics,
        "facts": {"bottleneck": f"{kind} ({busy:.1f} of {threads} threads busy)"} | facts,
    }
