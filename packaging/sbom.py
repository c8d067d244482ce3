#!/usr/bin/env python3
"""Prints which crates the named packages are built from, as CycloneDX 1.5 in JSON.

    packaging/sbom.py PACKAGE...

It asks `cargo metadata` for the dependencies that a build for Linux on x86-64 has; those of tests and
build scripts are left out, because nothing of them is in the programs.
"""

import json
import subprocess
import sys

TARGET = "x86_64-unknown-linux-gnu"


def reached(metadata, names):
    """The packages that are linked into `names`, by identifier."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    members = set(metadata["workspace_members"])
    waiting = [id for id in members if packages[id]["name"] in names]
    missing = set(names) - {packages[id]["name"] for id in waiting}
    if missing:
        sys.exit(f"sbom: the workspace has no package {', '.join(sorted(missing))}")
    found = set()
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        found.add(id)
        for dependency in nodes[id]["deps"]:
            # Kind is None for an ordinary dependency, else "dev" or "build".
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [packages[id] for id in found]


def component(package):
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    entry = {
        "type": "library",
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        "purl": purl,
    }
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return entry


def main():
    names = sys.argv[1:]
    if not names or names[0].startswith("-"):
        sys.exit(__doc__)
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = sorted(reached(metadata, names), key=lambda p: (p["name"], p["version"]))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "dynolab"}},
        "components": [component(package) for package in packages],
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
