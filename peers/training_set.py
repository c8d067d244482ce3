"""The training set of `dyno ingest features` in the SQL of DuckDB, and its checksum.
docs/formats/checksums.md defines the checksum; the columns are in docs/formats/training-set.md."""

import math

# What a grid of 4, 6, 8 or 10 characters looks like.
GRID = "[A-R]{2}[0-9]{2}([A-X]{2}([0-9]{2}([A-X]{2})?)?)?"

# Cells from the south (at 2) or the west (at 1), by the length of the grid.
MACROS = [
    "CREATE TEMP MACRO cell4(g, i) AS (ascii(g[i]) - 65) * 10 + ascii(g[i + 2]) - 48",
    "CREATE TEMP MACRO cell6(g, i) AS cell4(g, i) * 24 + ascii(g[i + 4]) - 65",
    "CREATE TEMP MACRO cell8(g, i) AS cell6(g, i) * 10 + ascii(g[i + 6]) - 48",
    "CREATE TEMP MACRO cell10(g, i) AS cell8(g, i) * 24 + ascii(g[i + 8]) - 65",
    """CREATE TEMP MACRO middle(g, i, whole) AS CASE length(g)
           WHEN 4 THEN (cell4(g, i) + 0.5::DOUBLE) * whole / 180
           WHEN 6 THEN (cell6(g, i) + 0.5::DOUBLE) * whole / 4320
           WHEN 8 THEN (cell8(g, i) + 0.5::DOUBLE) * whole / 43200
           ELSE (cell10(g, i) + 0.5::DOUBLE) * whole / 1036800
       END - whole / 2""",
]

# Each grid is taken apart once, and the rows are joined with what came of it.
QUERY = f"""
WITH grids AS (SELECT grid FROM spots UNION SELECT reporter_grid FROM spots),
degrees AS (
    SELECT grid, middle(upper(grid), 2, 180::DOUBLE) AS latitude,
           middle(upper(grid), 1, 360::DOUBLE) AS longitude
    FROM grids WHERE regexp_full_match(upper(grid), '{GRID}')
),
positions AS MATERIALIZED (
    SELECT *, sin(radians(latitude)) AS sin_lat, cos(radians(latitude)) AS cos_lat,
           sin(radians(longitude)) AS sin_lon, cos(radians(longitude)) AS cos_lon
    FROM degrees
),
turns AS (
    SELECT id, timestamp, band, power, snr, s.latitude AS slat, s.longitude AS slon,
           r.latitude AS rlat, r.longitude AS rlon, epoch_ms(timestamp) / 86400000 AS days,
           s.sin_lat AS sin_a, s.cos_lat AS cos_a, r.sin_lat AS sin_b, r.cos_lat AS cos_b,
           s.cos_lon * r.cos_lon + s.sin_lon * r.sin_lon AS cos_turn,
           r.sin_lon * s.cos_lon - r.cos_lon * s.sin_lon AS sin_turn,
           s.latitude = r.latitude AND s.longitude = r.longitude AS same
    FROM spots JOIN positions s ON spots.grid = s.grid
               JOIN positions r ON spots.reporter_grid = r.grid
),
paths AS (
    SELECT *, greatest(0, least(1, (1 - (sin_a * sin_b + cos_a * cos_b * cos_turn)) / 2)) AS chord,
           degrees(atan2(sin_turn * cos_b, cos_a * sin_b - sin_a * cos_b * cos_turn)) AS bearing,
           (days - floor(days)) * {math.tau} AS day,
           (days / 365.2425 - floor(days / 365.2425)) * {math.tau} AS year
    FROM turns
)
SELECT CAST(timestamp AS TIMESTAMP_MS) AS timestamp,
       sin(day)::FLOAT AS time_of_day_sin, cos(day)::FLOAT AS time_of_day_cos,
       sin(year)::FLOAT AS time_of_year_sin, cos(year)::FLOAT AS time_of_year_cos,
       slat::FLOAT AS sender_latitude_deg, slon::FLOAT AS sender_longitude_deg,
       rlat::FLOAT AS receiver_latitude_deg, rlon::FLOAT AS receiver_longitude_deg,
       CASE WHEN same THEN 0 ELSE (2 * asin(sqrt(chord)) * 6371)::FLOAT END AS distance_km,
       CASE WHEN same OR (bearing + 360)::FLOAT = 360 THEN 0
            WHEN bearing < 0 THEN (bearing + 360)::FLOAT ELSE bearing::FLOAT END AS azimuth_deg,
       band, power AS power_dbm, snr AS snr_db
FROM paths ORDER BY paths.timestamp, id
"""

INTEGERS = ["timestamp", "band", "power_dbm", "snr_db"]
COLUMNS = [
    "timestamp", "time_of_day_sin", "time_of_day_cos", "time_of_year_sin", "time_of_year_cos",
    "sender_latitude_deg", "sender_longitude_deg", "receiver_latitude_deg",
    "receiver_longitude_deg", "distance_km", "azimuth_deg", "band", "power_dbm", "snr_db",
]


def make(connection, path):
    """Writes the set of the connection's table `spots` to a file."""
    for macro in MACROS:
        connection.execute(macro)
    connection.execute(
        f"COPY ({QUERY}) TO '{path}' (FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE 262144)"
    )


def checksum(connection, path):
    """Rows and checksum of a set, in the order of its rows."""
    weight = "(1 + file_row_number % 65521)::HUGEINT"
    value = {name: f"{name}::HUGEINT" for name in INTEGERS}
    value["timestamp"] = "epoch(timestamp)::HUGEINT"
    terms = [f"sum({value[name]} * {weight})" if name in value else f"avg({name}::DOUBLE)"
             for name in COLUMNS]
    scan = f"read_parquet('{path}', file_row_number = true)"
    count, *found = connection.execute(f"SELECT count(*), {', '.join(terms)} FROM {scan}").fetchone()
    parts = [f"{int(term) % 2**64:016x}" if name in value else f"{term:.3f}"
             for name, term in zip(COLUMNS, found)]
    return count, ",".join(parts)
