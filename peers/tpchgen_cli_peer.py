"""tpchgen-cli as a peer: the program is started as a child, and watched from its start to its exit."""

import os
import re
import subprocess
import sys
import time

import door
import tpch

PROGRAM = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
COMPRESSION = {"none": "UNCOMPRESSED", "snappy": "SNAPPY", "zstd": "ZSTD(1)"}


def version():
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[-1]


def command(params, folder):
    form = params["format"]
    if form not in ("parquet", "csv", "tbl"):
        sys.exit(f"tpchgen-cli does not write {form}")
    words = [PROGRAM, form, "--scale-factor", str(params["sf"]), "--quiet",
             "--num-threads", str(tpch.threads_of(params))]
    if params["tables"] != "all":
        words += ["--tables", ",".join(tpch.tables_of(params))]
    if form == "parquet":
        name = re.sub("^zstd:1$", "zstd", params["compression"])
        words += ["--compression", COMPRESSION[name]]
    return words + (["--stdout"] if folder is None else ["--output-dir", folder])


def watch(words):
    """Runs it; wall and processor seconds of the child alone, and its peak memory in bytes."""
    at = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - at
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"tpchgen-cli ended with code {child.returncode}")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def to_null(params, phase):
    words = command(params, None)
    tables = tpch.tables_of(params)
    count = sum(tpch.rows_of(table, params["sf"]) for table in tables)
    if phase == "verify":
        if params["format"] == "parquet":
            sys.exit("nothing counts the rows of Parquet on the way to nowhere")
        heads = len(tables) if params["format"] == "csv" else 0
        count = tpch.count_lines(words) - heads
    wall_s, cpu_s, peak = watch(words)
    facts = {"sink": "standard output to /dev/null"}
    return tpch.reply({"count": count, "checksum": "-"}, wall_s, cpu_s, peak, 0, tpch.threads_of(params),
                      facts)


def tpch_write(params, scratch, phase):
    if params["place"] == "null":
        return to_null(params, phase)
    with tpch.Place(params["place"], scratch) as place:
        wall_s, cpu_s, peak = watch(command(params, place.folder))
        if not place.memory:
            at = time.perf_counter()
            place.sync()
            wall_s += time.perf_counter() - at
        size = door.tree_bytes(place.folder)
        answer = tpch.answer_of(place.folder, params)
        return tpch.reply(answer, wall_s, cpu_s, peak, size, tpch.threads_of(params),
                          {"sink": "page cache"})


if __name__ == "__main__":
    door.serve(version(), {"tpch-write": tpch_write})
