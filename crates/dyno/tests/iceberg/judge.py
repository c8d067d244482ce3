"""Reads a table as programs do that are not ours, and prints one line of JSON about it.

    judge.py parquet FILE...             pyarrow, by the files alone
    judge.py pyiceberg DIR [FILTER]      PyIceberg, by the metadata
    judge.py duckdb DIR [FILTER]         DuckDB and its iceberg extension, by the version hint
    judge.py snapshots DIR               rows of each snapshot, by PyIceberg
    judge.py encodings FILE              encodings of each column, by pyarrow
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def opened(directory):
    from pyiceberg.table import StaticTable

    metadata = Path(directory) / "metadata"
    version = (metadata / "version-hint.text").read_text()
    return StaticTable.from_metadata(f"{metadata}/v{version}.metadata.json")


def duckdb(directory, condition):
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_iceberg

    session = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    session.execute("SET TimeZone = 'UTC'")
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        folder = Path(package.__file__).parent / "extensions"
        session.execute(f"LOAD '{next(folder.rglob('*.duckdb_extension'))}'")
    where = f" WHERE {condition}" if condition else ""
    return session.execute(f"SELECT * FROM iceberg_scan('{directory}'){where}").to_arrow_table()


def about(column):
    """A text that is the same for the same values, whatever integers or units hold them."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    nulls = column.null_count
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        total = sum(column.drop_null().to_pylist())
        return f"{nulls} nulls, {total} in all"
    if pa.types.is_date(kind):
        return f"{nulls} nulls, {pc.min(column)} to {pc.max(column)}"
    distinct = sorted(set(column.drop_null().to_pylist()))
    return f"{nulls} nulls, {len(distinct)} texts, {distinct[:1]} to {distinct[-1:]}"


def main(how, *rest):
    if how == "snapshots":
        table = opened(rest[0])
        scans = [table.scan(snapshot_id=s.snapshot_id) for s in table.snapshots()]
        return [scan.to_arrow().num_rows for scan in scans]
    if how == "encodings":
        groups = pq.ParquetFile(rest[0]).metadata
        columns = [groups.row_group(0).column(at) for at in range(groups.num_columns)]
        return {column.path_in_schema: column.encodings for column in columns}
    if how == "parquet":
        rows = pa.concat_tables([pq.read_table(path) for path in rest])
    elif how == "pyiceberg":
        scan = opened(rest[0]).scan(**({"row_filter": rest[1]} if rest[1:] else {}))
        rows = scan.to_arrow()
        assert scan.count() == rows.num_rows, (scan.count(), rows.num_rows)
    else:
        rows = duckdb(rest[0], rest[1] if rest[1:] else None)
    return {"rows": rows.num_rows} | {name: about(rows[name]) for name in rows.column_names}


print(json.dumps(main(*sys.argv[1:])))
