"""Computes a training set again from the files of a table, slowly, and compares every value.

features_again.py TABLE SET    SET is a Parquet file or an Arrow stream (.arrow)

Nothing here is a formula of the program's: grids are taken apart pair by pair, times are those of
the standard library, and paths come from vectors in space.
"""

import datetime
import json
import math
import os
import sys

import duckdb
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

table, made = sys.argv[1:]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def middle(grid):
    """Latitude and longitude of a grid's middle, or None if the text is not a grid."""
    if len(grid) not in (4, 6, 8, 10) or not grid.isascii():
        return None
    south, west, high, wide = -90.0, -180.0, 180.0, 360.0
    for pair in range(len(grid) // 2):
        digits = pair % 2 == 1
        symbols = "0123456789" if digits else "ABCDEFGHIJKLMNOPQRSTUVWX"[: 18 if pair == 0 else 24]
        east, north = (symbols.find(c) for c in grid[2 * pair : 2 * pair + 2].upper())
        if east < 0 or north < 0:
            return None
        high, wide = high / len(symbols), wide / len(symbols)
        south, west = south + north * high, west + east * wide
    return south + high / 2, west + wide / 2


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def vector(place):
    latitude, longitude = (math.radians(angle) for angle in place)
    ring = math.cos(latitude)
    return [ring * math.cos(longitude), ring * math.sin(longitude), math.sin(latitude)]


def path(here, there):
    """Kilometres along the sphere, and degrees at the first point from north over east."""
    if here == there:
        return 0.0, 0.0
    a, b = vector(here), vector(there)
    across = cross(a, b)
    km = 6371.0 * math.atan2(math.sqrt(dot(across, across)), dot(a, b))
    east = cross([0.0, 0.0, 1.0], a)
    north = cross(a, east)
    return km, math.degrees(math.atan2(dot(b, east), dot(b, north))) % 360


def row_of(spot):
    """The values of a spot by column, or None if it has no place."""
    sender, receiver = middle(spot["grid"]), middle(spot["reporter_grid"])
    if sender is None or receiver is None:
        return None
    since = spot["timestamp"] - EPOCH
    day = (since % datetime.timedelta(days=1)) / datetime.timedelta(days=1) * math.tau
    year = (since / datetime.timedelta(days=365.2425)) * math.tau
    km, degrees = path(sender, receiver)
    return {
        "timestamp": spot["timestamp"],
        "time_of_day_sin": math.sin(day), "time_of_day_cos": math.cos(day),
        "time_of_year_sin": math.sin(year), "time_of_year_cos": math.cos(year),
        "sender_latitude_deg": sender[0], "sender_longitude_deg": sender[1],
        "receiver_latitude_deg": receiver[0], "receiver_longitude_deg": receiver[1],
        "distance_km": km, "azimuth_deg": degrees,
        "band": spot["band"], "power_dbm": spot["power"], "snr_db": spot["snr"],
    }


def same(name, found, expected):
    if not isinstance(expected, float):
        return found == expected
    apart = abs(found - expected)
    if name == "azimuth_deg":
        apart = min(apart, 360 - apart)
    return apart <= 1e-6 * abs(expected) + (2e-3 if name in ("distance_km", "azimuth_deg") else 1e-6)


with open(os.path.join(table, "manifest.json"), encoding="utf-8") as manifest:
    archives = json.load(manifest)["archives"].values()
columns = ["id", "timestamp", "grid", "reporter_grid", "band", "power", "snr"]
spots = []
for archive in archives:
    for file in archive["files"]:
        read = pyarrow.parquet.read_table(os.path.join(table, file["path"]), columns=columns)
        spots.extend(read.to_pylist())
spots.sort(key=lambda spot: (spot["timestamp"], spot["id"]))

if made.endswith(".arrow"):
    rows = pyarrow.ipc.open_stream(made).read_all()
else:
    rows = pyarrow.parquet.read_table(made)
    counted = duckdb.sql(f"SELECT count(*), sum(snr_db) FROM read_parquet('{made}')").fetchall()[0]
    assert counted == (rows.num_rows, sum(rows["snr_db"].to_pylist())), counted
rows = rows.to_pylist()

at = left_out = 0
for spot in spots:
    expected = row_of(spot)
    if expected is None:
        left_out += 1
        continue
    found = rows[at]
    assert list(found) == list(expected), (list(found), list(expected))
    for name, value in expected.items():
        if not same(name, found[name], value):
            sys.exit(f"row {at}, spot {spot['id']}: {name} is {found[name]}, computed {value}")
    at += 1
assert at == len(rows), f"{len(rows)} rows, computed {at}"
print(f"{at} rows are the same, {left_out} spots have no place")
