"""Makes a training set whose SNR follows from a stated law.

sage_sets.py LAW FILE    LAW is by-the-hour or by-the-class
"""

import sys

import numpy
import pyarrow
import pyarrow.parquet

law, path = sys.argv[1:]
ROWS = 30_003
random = numpy.random.default_rng(1)
seconds = 1_700_000_000 + numpy.arange(ROWS) // 10 * 120
day = seconds / 86_400 * 2 * numpy.pi
year = seconds / 86_400 / 365.2425 * 2 * numpy.pi
band = random.choice([105, 106, 107], ROWS)
km = random.uniform(0, 16_000, ROWS)
if law == "by-the-hour":
    snr = -15 + 8 * numpy.sin(day) + random.normal(0, 2, ROWS)
else:
    edges = [250, 500, 1_000, 2_000, 4_000, 8_000, 12_000]
    snr = band - 120 - 2 * numpy.searchsorted(edges, km)


def floats(values):
    return pyarrow.array(values.astype("float32"))


columns = {
    "timestamp": pyarrow.array(seconds * 1_000, pyarrow.timestamp("ms", "UTC")),
    "time_of_day_sin": floats(numpy.sin(day)), "time_of_day_cos": floats(numpy.cos(day)),
    "time_of_year_sin": floats(numpy.sin(year)), "time_of_year_cos": floats(numpy.cos(year)),
    "distance_km": floats(km), "azimuth_deg": floats(random.uniform(0, 360, ROWS)),
    "band": pyarrow.array(band.astype("int32")),
    "power_dbm": pyarrow.array(random.choice([20, 23, 37], ROWS).astype("int8")),
    # An index with a gap on some days, and one without any value.
    "kp": pyarrow.array([None if row % 7 == 0 else row % 5 for row in range(ROWS)],
                        pyarrow.float32()),
    "ap": pyarrow.nulls(ROWS, pyarrow.float32()),
    "snr_db": pyarrow.array(numpy.round(snr).astype("int8")),
}
for end in ("sender", "receiver"):
    columns[f"{end}_latitude_deg"] = floats(random.uniform(-60, 70, ROWS))
    columns[f"{end}_longitude_deg"] = floats(random.uniform(-180, 180, ROWS))
pyarrow.parquet.write_table(pyarrow.table(columns), path)
