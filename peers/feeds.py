"""Feeds of spots that are read line by line, as every system must load them, and the checksum of
their rows (docs/formats/checksums.md). DuckDB reads neither ZIP archives nor a message within a message by itself,
so this has what a user would write: Python's own unpacking, and one SELECT for each feed."""

import os
import zipfile

import spots

RBN_FIELDS = [
    "callsign", "de_pfx", "de_cont", "freq", "band", "dx", "dx_pfx", "dx_cont", "mode", "db",
    "date", "speed", "tx_mode",
]


def unpacked(files, scratch):
    """The texts of ZIP archives as files in `scratch`."""
    names = []
    for name in files:
        with zipfile.ZipFile(name) as archive:
            for entry in archive.namelist():
                names.append(archive.extract(entry, scratch))
    return names


def listed(files):
    """The files as a list in DuckDB's SQL."""
    return "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in files) + "]"


def rbn_rows(files, scratch):
    """SELECT for the rows of days of the Reverse Beacon Network."""
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in RBN_FIELDS)
    # The last line is the number of rows, `(n rows)`, with no fields but one.
    scan = (
        f"read_csv({listed(unpacked(files, scratch))}, columns={{{columns}}}, auto_detect=false, "
        f"header=true, delim=',', quote='\"', null_padding=true, nullstr='\\N')"
    )
    hz = "CAST(CAST(freq AS DECIMAL(12,3)) * 1000 AS UBIGINT)"
    return f"""
        SELECT epoch_ms(CAST(date AS TIMESTAMP)) AS timestamp, callsign AS de_call, de_pfx, de_cont,
               {hz} AS frequency, CAST({spots.band_case(hz)} AS INTEGER) AS band,
               band AS band_name, dx AS dx_call, dx_pfx, dx_cont,
               nullif(mode, '') AS spot_type, CAST(nullif(db, '') AS SMALLINT) AS snr,
               CAST(nullif(speed, '') AS USMALLINT) AS speed, nullif(tx_mode, '') AS tx_mode,
               CAST(13 AS UTINYINT) AS column_count
        FROM {scan} WHERE dx IS NOT NULL
    """


def psk_rows(files, _scratch):
    """SELECT for the rows of hours of PSK Reporter."""
    scan = (
        f"read_json({listed(files)}, format='newline_delimited', compression='gzip', "
        "columns={'rx': 'VARCHAR', 'topic': 'VARCHAR', 'raw': 'VARCHAR', 'event': 'VARCHAR', "
        "'detail': 'VARCHAR'})"
    )
    keys = {
        "sq": "BIGINT", "f": "UBIGINT", "md": "VARCHAR", "rp": "SMALLINT", "t": "BIGINT",
        "t_tx": "BIGINT", "sc": "VARCHAR", "sl": "VARCHAR", "rc": "VARCHAR", "rl": "VARCHAR",
        "sa": "USMALLINT", "ra": "USMALLINT", "b": "VARCHAR",
    }
    shape = ", ".join(f'"{key}":"{kind}"' for key, kind in keys.items())
    return f"""
        SELECT m.t * 1000 AS timestamp, epoch_ms(CAST(rx AS TIMESTAMP)) AS received_at, topic, event,
               detail, m.sq AS sequence, m.f AS frequency,
               CAST({spots.band_case('m.f')} AS INTEGER) AS band, m.b AS band_name, m.md AS mode,
               m.rp AS snr, m.t_tx * 1000 AS sent_at, m.sc AS sender, m.sl AS sender_grid,
               m.rc AS receiver, m.rl AS receiver_grid, m.sa AS sender_dxcc, m.ra AS receiver_dxcc,
               CAST(NULL AS VARCHAR) AS extra, CAST(NULL AS VARCHAR) AS parse_error, raw
        FROM (SELECT *, json_transform_strict(raw, '{{{shape}}}') AS m FROM {scan})
    """


ROWS = {"rbn": rbn_rows, "psk": psk_rows}


def table_checksum(connection):
    """Count and checksum of the table `rows`."""
    parts = []
    described = connection.execute("DESCRIBE rows").fetchall()
    for name, kind in (row[:2] for row in described):
        if kind == "VARCHAR":
            counts = connection.execute(
                f"SELECT {name}, count(*) FROM rows WHERE {name} IS NOT NULL GROUP BY {name}"
            ).fetchall()
            present = sum(count for _, count in counts)
            total = sum(spots.string_value(text) * count for text, count in counts)
        else:
            sql = f"SELECT count({name}), coalesce(sum({name}::HUGEINT), 0) FROM rows"
            present, total = connection.execute(sql).fetchone()
        parts.append(f"{present}:{int(total) % 2**64:016x}")
    count = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
    return count, "-".join(parts)
