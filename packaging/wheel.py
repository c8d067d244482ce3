#!/usr/bin/env python3
"""Packs programs and the Python module `dynolab` into a wheel.

    packaging/wheel.py --version VERSION --out DIR --library LIBRARY PROGRAM...

A wheel is a ZIP archive with a list of its files and their hashes (PyPA, "Binary distribution
format"). Programs lie in its scripts, which pip puts on the PATH of the environment.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent

METADATA = """\
Metadata-Version: 2.1
Name: dynolab
Version: {version}
Summary: Five data engines close to the limit of the machine, and the lab that proves it
License: MIT OR Apache-2.0
Requires-Python: >=3.9
Provides-Extra: arrow
Requires-Dist: pyarrow>=15; extra == "arrow"
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: dynolab
Root-Is-Purelib: false
Tag: {tag}
"""


def tag(library):
    """The platform that the library needs: the newest C library whose symbols it names (PEP 600)."""
    newest = max(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library))
    return f"py3-none-manylinux_2_{newest}_x86_64"


class Wheel:
    """Writes files into the archive, and remembers what the record must say of them."""

    def __init__(self, path, when):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.when = when
        self.record = []

    def add(self, name, content, executable=False):
        info = zipfile.ZipInfo(name, self.when)
        info.compress_type = zipfile.ZIP_DEFLATED
        # pip keeps this bit of the Unix mode, and no other.
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.archive.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, name):
        """Ends the archive with the record, which lists itself without a hash."""
        lines = [*self.record, f"{name},,"]
        self.archive.writestr(zipfile.ZipInfo(name, self.when), "\n".join(lines) + "\n")
        self.archive.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    library = args.library.read_bytes()
    platform = tag(library)
    wheel = Wheel(args.out / f"dynolab-{args.version}-{platform}.whl", time.gmtime(epoch)[:6])
    for source in sorted((HERE.parent / "crates/python/dynolab").glob("*.py")):
        wheel.add(f"dynolab/{source.name}", source.read_bytes())
    wheel.add(f"dynolab/{args.library.name}", library, executable=True)
    for program in args.programs:
        name = f"dynolab-{args.version}.data/scripts/{program.name}"
        wheel.add(name, program.read_bytes(), executable=True)
    about = f"dynolab-{args.version}.dist-info"
    wheel.add(f"{about}/METADATA", METADATA.format(version=args.version).encode())
    wheel.add(f"{about}/WHEEL", WHEEL.format(tag=platform).encode())
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        wheel.add(f"{about}/licenses/{licence}", (HERE.parent / licence).read_bytes())
    wheel.close(f"{about}/RECORD")


if __name__ == "__main__":
    main()
