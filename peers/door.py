"""The child's side of the lab's protocol: one JSON object in, one JSON object out.

A peer's script hands `serve` its version and its workloads, functions that take (params, scratch,
phase) and return the reply. What goes wrong ends on stderr with exit code 1.
"""

import json
import os
import resource
import sys
import time


def serve(version, workloads):
    """Reads the request from stdin, runs the workload it names and prints the reply."""
    request = json.load(sys.stdin)
    workload = request["workload"]
    if workload == "version":
        print(json.dumps({"version": version}))
        return
    if workload not in workloads:
        sys.exit(f"no workload `{workload}`; there are: {', '.join(workloads)}")
    reply = workloads[workload](request["params"], request["scratch"], request["phase"])
    print(json.dumps(reply))


class Watch:
    """Wall and CPU seconds of this process, and peak memory, from here on."""

    def __init__(self):
        self.cpu_at = time.process_time()
        self.wall_at = time.perf_counter()

    def stop(self):
        self.wall_s = time.perf_counter() - self.wall_at
        self.cpu_s = time.process_time() - self.cpu_at

    def bottleneck(self, threads):
        """Says whether the processor was what ran out. A peer tells no more about itself."""
        busy = self.cpu_s / self.wall_s
        kind = "processor" if busy > 0.85 * threads else "waiting, or one stage of several"
        return f"{kind} ({busy:.1f} of {threads} threads busy)"


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tree_bytes(path):
    """Bytes of all files below a path."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
    )
