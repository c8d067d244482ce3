"""Trains a small model of scikit-learn on a training set of `dyno ingest features`.

The model predicts the SNR of a spot. Its last rows by time are held out, and its error there is
reported beside that of a baseline: the mean SNR of the training rows of the same band and class of
distance. By hand: sage.py FILE [EPOCHS] prints the reply.
"""

import json
import sys
import time

import numpy
import pyarrow.parquet
import sklearn
import threadpoolctl
from sklearn.neural_network import MLPRegressor

import door

# Share of the rows, the last ones by time, that the model never sees.
HELD_OUT = 0.2
# Upper ends of the baseline's classes of distance, in km; the last class has no end.
CLASSES_KM = [250, 500, 1_000, 2_000, 4_000, 8_000, 12_000]
UNITS = (64, 32)
BATCH = 1_024
# As they are in the set. The other columns are turned into numbers without jumps below.
PLAIN = ["time_of_day_sin", "time_of_day_cos", "time_of_year_sin", "time_of_year_cos",
         "distance_km", "power_dbm"]
SOLAR = ["solar_flux_sfu", "sunspots", "kp", "ap"]


def columns_of(path):
    """The columns of the set, by name, in the order of time."""
    table = pyarrow.parquet.read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names if name != "timestamp"}
    # As integers, so that equal times are equal.
    columns["timestamp"] = table["timestamp"].cast("int64").to_numpy()
    if (numpy.diff(columns["timestamp"]) < 0).any():
        sys.exit(f"{path}: its rows are not in the order of time, so the last cannot be held out")
    return columns


def first_held_out(times):
    """The first row that is held out. Rows of one moment stay together, because spots of one
    transmission resemble each other: with some of them in training the error would look smaller."""
    at = round(len(times) * (1 - HELD_OUT))
    if not 0 < at < len(times):
        return len(times)
    return int(numpy.searchsorted(times, times[at], side="left"))


def inputs_of(columns, bands):
    """The model's inputs, one row a spot: angles as sine and cosine, positions as points of a unit
    sphere, the band as a column for each of `bands`."""
    inputs = [columns[name] for name in PLAIN]
    azimuth = numpy.radians(columns["azimuth_deg"])
    inputs += [numpy.sin(azimuth), numpy.cos(azimuth)]
    for end in ("sender", "receiver"):
        latitude = numpy.radians(columns[f"{end}_latitude_deg"])
        longitude = numpy.radians(columns[f"{end}_longitude_deg"])
        ring = numpy.cos(latitude)
        inputs += [ring * numpy.cos(longitude), ring * numpy.sin(longitude), numpy.sin(latitude)]
    inputs += [columns["band"] == band for band in bands]
    inputs += [columns[name] for name in SOLAR if name in columns]
    return numpy.column_stack([column.astype(numpy.float32) for column in inputs])


def scaled(inputs, cut):
    """Inputs with mean 0 and deviation 1 over the training rows; gaps become the mean."""
    # Column by column, because a copy of all inputs would double the memory of a large set.
    for column in inputs.T:
        known = column[:cut][numpy.isfinite(column[:cut])]
        # Of a column without values all rows become 0.
        mean, deviation = (known.mean(), known.std()) if len(known) else (0, 1)
        column -= mean
        column /= deviation or 1
        column[~numpy.isfinite(column)] = 0
    return inputs


def rmse(predicted, actual):
    return float(numpy.sqrt(numpy.mean((predicted - actual) ** 2)))


def baseline(columns, cut):
    """What the mean of band and distance class predicts for the rows that are held out."""
    group = columns["band"].astype(numpy.int64) * (len(CLASSES_KM) + 1)
    group += numpy.searchsorted(CLASSES_KM, columns["distance_km"])
    known, inverse = numpy.unique(group[:cut], return_inverse=True)
    snr = columns["snr_db"][:cut].astype(numpy.float64)
    means = numpy.bincount(inverse, weights=snr) / numpy.bincount(inverse)
    at = numpy.searchsorted(known, group[cut:]).clip(max=len(known) - 1)
    # A class that training never saw has the mean of all.
    return numpy.where(known[at] == group[cut:], means[at], snr.mean())


def learn(inputs, target, epochs, seed):
    """The model, and loss and seconds of each epoch."""
    batch = min(BATCH, len(inputs))
    model = MLPRegressor(hidden_layer_sizes=UNITS, batch_size=batch, random_state=seed)
    losses, seconds = [], []
    for _ in range(epochs):
        at = time.perf_counter()
        model.partial_fit(inputs, target)
        seconds.append(time.perf_counter() - at)
        losses.append(float(model.loss_))
        print(f"progress: epoch {len(losses)} of {epochs}: loss {losses[-1]:.4f}", file=sys.stderr)
    return model, losses, seconds


def train(params, scratch, phase):
    # What is verified is the split of the rows, which does not depend on the number of epochs.
    epochs = 1 if phase == "verify" else params["epochs"]
    at = time.perf_counter()
    columns = columns_of(params["set"])
    rows, cut = len(columns["snr_db"]), first_held_out(columns["timestamp"])
    if cut in (0, rows):
        sys.exit(f"{params['set']}: its {rows} rows cannot be split by time into training and test")
    bands = numpy.unique(columns["band"][:cut])
    inputs = scaled(inputs_of(columns, bands), cut)
    snr = columns["snr_db"].astype(numpy.float32)
    mean, deviation = snr[:cut].mean(), snr[:cut].std() or 1
    read_s = time.perf_counter() - at
    with threadpoolctl.threadpool_limits(params["threads"]):
        watch = door.Watch()
        target = (snr[:cut] - mean) / deviation
        model, losses, seconds = learn(inputs[:cut], target, epochs, params["seed"])
        watch.stop()
        error = rmse(model.predict(inputs[cut:]) * deviation + mean, snr[cut:])
    of_baseline = rmse(baseline(columns, cut), snr[cut:])
    verdict = "beats the baseline" if error < of_baseline else "is beaten by the baseline"
    return {
        "answer": {"count": rows, "checksum": f"{cut} for training, {rows - cut} held out"},
        "metrics": {
            "throughput": cut * epochs / watch.wall_s,
            "train-s": watch.wall_s,
            "read-s": read_s,
            "first-loss": losses[0],
            "last-loss": losses[-1],
            "model-rmse-db": error,
            "baseline-rmse-db": of_baseline,
        },
        "facts": {
            "model": f"MLPRegressor of scikit-learn {sklearn.__version__}, "
                     f"{' and '.join(map(str, UNITS))} units",
            "model-verdict": verdict,
            "losses": ", ".join(f"{loss:.4f}" for loss in losses),
            "bottleneck": watch.bottleneck(params["threads"]),
        },
        "windows": [cut / second for second in seconds],
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
        params = {"set": sys.argv[1], "epochs": epochs, "threads": 1, "seed": 1}
        print(json.dumps(train(params, ".", "measure"), indent=2))
    else:
        door.serve(sklearn.__version__, {"sage-train": train})
