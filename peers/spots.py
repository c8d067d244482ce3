"""The spots table as every system must make it, and its checksum. Both are defined in
docs/formats: spots-table.md and checksums.md."""

import hashlib
import os

# Fields of a row of a WSPR archive, in order.
FIELDS = [
    "id", "timestamp", "reporter", "reporter_grid", "snr", "frequency", "callsign", "grid",
    "power", "drift", "distance", "azimuth", "band", "version", "code",
]

# Columns of the table, in order.
COLUMNS = [
    "id", "timestamp", "reporter", "reporter_grid", "snr", "frequency", "callsign", "grid",
    "power", "drift", "distance", "azimuth", "band", "mode", "version", "code", "column_count",
]

STRINGS = ["reporter", "reporter_grid", "callsign", "grid", "mode", "version"]

# Lowest and highest Hz, code. No two overlap, so the order is free: the busiest bands stand
# first, which is cheapest for an engine that tries one after the other.
BANDS = [
    (14_000_000, 14_350_000, 107), (7_000_000, 7_300_000, 105), (10_100_000, 10_150_000, 106),
    (3_500_000, 4_000_000, 103), (28_000_000, 29_700_000, 111), (21_000_000, 21_450_000, 109),
    (18_068_000, 18_168_000, 108), (24_890_000, 24_990_000, 110), (5_060_000, 5_450_000, 104),
    (1_800_000, 2_000_000, 102), (472_000, 479_000, 101), (135_700, 137_800, 100),
    (50_000_000, 54_000_000, 200), (70_000_000, 71_000_000, 201),
    (144_000_000, 148_000_000, 202), (219_000_000, 225_000_000, 203),
    (420_000_000, 450_000_000, 300), (902_000_000, 928_000_000, 301),
    (1_240_000_000, 1_300_000_000, 302), (2_300_000_000, 2_450_000_000, 303),
    (3_300_000_000, 3_500_000_000, 400), (5_650_000_000, 5_925_000_000, 401),
    (10_000_000_000, 10_500_000_000, 402),
]

TOP_TEN = """
SELECT callsign, avg(snr) AS avg_snr, count(*) AS count
FROM spots GROUP BY callsign ORDER BY count DESC, callsign LIMIT 10
"""


def band_case(hz):
    """The band code of an SQL expression in Hz."""
    tries = " ".join(f"WHEN {hz} BETWEEN {low} AND {high} THEN {code}" for low, high, code in BANDS)
    return f"CASE {tries} ELSE 0 END"


def checksum(sums, weights):
    """Joins the 17 sums. `sums` maps each number column to its sum of value * weight; `weights`
    maps each string column to (string, sum of weights) pairs, one for each distinct string, which
    gives the same sum as going through the rows."""
    parts = []
    for column in COLUMNS:
        if column in weights:
            total = sum(string_value(text) * weight for text, weight in weights[column])
        else:
            total = sums[column]
        parts.append(f"{int(total) % 2**64:016x}")
    return "-".join(parts)


def string_value(text):
    data = text if isinstance(text, bytes) else text.encode()
    return int(hashlib.md5(data).hexdigest()[:8], 16)


def rows_checksum(rows):
    """MD5 of the ten rows (callsign, average, count) of the query."""
    text = ";".join(f"{call}|{count}|{average:.6f}" for call, average, count in rows)
    return hashlib.md5(text.encode()).hexdigest()


def query_text(name):
    """The query of spots_queries.sql with this name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spots_queries.sql")
    with open(path, encoding="utf-8") as texts:
        parts = texts.read().split("-- name: ")[1:]
    return {part.split("\n", 1)[0].strip(): part.split("\n", 1)[1].strip() for part in parts}[name]


def field(value):
    """A value of an answer as text: floats by four decimals, moments without a zone."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.4f}"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def spots_reply(table_rows, names, rows, times_s):
    """The reply of `query-spots`; `names` are the columns of the answer's rows."""
    order = sorted(range(len(names)), key=lambda column: names[column])
    lines = sorted("|".join(field(row[column]) for column in order) for row in rows)
    median_s = sorted(times_s)[len(times_s) // 2]
    checksum_of_lines = hashlib.md5(";".join(lines).encode()).hexdigest()
    return {
        "answer": {"count": len(rows), "checksum": checksum_of_lines},
        "metrics": {"throughput": table_rows / median_s, "time": median_s},
        "windows": [table_rows / seconds for seconds in times_s],
    }


def load_reply(count, sums, watch, threads, inputs_bytes, table_bytes):
    """The reply of `ingest-load`, the same for every peer."""
    return {
        "answer": {"count": count, "checksum": sums},
        "metrics": {
            "throughput": count / watch.wall_s,
            "time": watch.wall_s,
            "cpu": watch.cpu_s,
            "io-rate": inputs_bytes / watch.wall_s,
            "table-bytes": table_bytes,
            "effective-write": table_bytes / watch.wall_s,
        },
        "facts": {"bottleneck": watch.bottleneck(threads)},
    }


def query_reply(count, rows, times_s):
    """The reply of `query-top-ten`: each repetition is a window, their median the figure."""
    median_s = sorted(times_s)[len(times_s) // 2]
    return {
        "answer": {"count": count, "checksum": rows_checksum(rows)},
        "metrics": {"throughput": count / median_s, "time": median_s},
        "windows": [count / seconds for seconds in times_s],
    }
