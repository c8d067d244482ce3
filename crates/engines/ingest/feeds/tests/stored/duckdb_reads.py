"""Prints of a Parquet file its rows and, for each column, how many values it has and the bytes of their texts.

duckdb_reads.py FILE    moments as milliseconds since 1970, decimals without their point
"""

import sys

import duckdb

path = sys.argv[1]
source = f"read_parquet('{path}')"
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
print(connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0])
for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall():
    value = f'"{name}"'
    if kind.startswith("TIMESTAMP"):
        value = f"epoch_ms({value})"
    elif kind.startswith("DECIMAL"):
        value = f"CAST({value} * 1000 AS BIGINT)"
    query = f"SELECT count({value}), coalesce(sum(strlen(CAST({value} AS VARCHAR))), 0) FROM {source}"
    print(name, *connection.execute(query).fetchone())
