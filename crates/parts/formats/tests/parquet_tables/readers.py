"""Reads Parquet files and prints, for each file and column, a checksum of its values in order.

readers.py pyarrow|duckdb FILE...    values as text: integers, days since 1970, hundredths, strings
readers.py duckdb-count FILE SQL     how many rows a condition leaves
readers.py pyarrow-stats FILE        what the footer says of the columns of the first row group
"""

import datetime
import decimal
import sys
import zlib

EPOCH = datetime.date(1970, 1, 1)


def plain(value):
    if isinstance(value, datetime.date):
        return str((value - EPOCH).days)
    if isinstance(value, decimal.Decimal):
        return str(int(value.scaleb(2)))
    return str(value)


def columns(reader, path):
    if reader == "pyarrow":
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()
        table.validate(full=True)
        return {name: table[name].to_pylist() for name in table.column_names}
    import duckdb

    result = duckdb.sql(f"select * from read_parquet('{path}')")
    return dict(zip(result.columns, zip(*result.fetchall())))


def main(reader, path, *rest):
    if reader == "duckdb-count":
        import duckdb

        for condition in rest:
            counted = duckdb.sql(f"select count(*) from read_parquet('{path}') where {condition}")
            print(counted.fetchall()[0][0])
    elif reader == "pyarrow-stats":
        import pyarrow.parquet

        group = pyarrow.parquet.ParquetFile(path).metadata.row_group(0)
        print("sorted by", *(column.column_index for column in group.sorting_columns))
        for i in range(group.num_columns):
            column = group.column(i)
            statistics = column.statistics
            ends = plain(statistics.min), plain(statistics.max)
            print(column.path_in_schema, *ends, statistics.null_count, sep="|")
    else:
        for file in (path, *rest):
            for name, values in columns(reader, file).items():
                checksum = 0
                for value in values:
                    checksum = zlib.crc32((plain(value) + "\n").encode(), checksum)
                print(name, len(values), checksum)


main(*sys.argv[1:])
