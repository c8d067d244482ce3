"""Tables of radio spots that `dyno ingest load` has made."""

import errno
import fcntl
import json
import os
import pathlib

_MAGIC = "dyno-spots-table"
# 2: archives of other feeds than WSPR are among them.
_VERSIONS = (1, 2)


def files(table, feed="wspr"):
    """Returns the Parquet files of a feed in the newest committed snapshot.

    They are in the order of the archives' names.
    """
    manifest_path = pathlib.Path(table) / "manifest.json"
    manifest = json.loads(manifest_path.read_text())
    if manifest.get("magic") != _MAGIC:
        raise ValueError(f"{manifest_path}: this is not the manifest of a table of spots")
    version = manifest.get("version")
    if version not in _VERSIONS:
        raise ValueError(f"{manifest_path}: this module does not read version {version}")
    archives = manifest["archives"].values()
    wanted = [archive for archive in archives if archive.get("feed", "wspr") == feed]
    return [pathlib.Path(table) / file["path"] for archive in wanted for file in archive["files"]]


class _ReadersLock:
    """The readers' lock of a table, held until `close` or until nothing refers to it any more."""

    def __init__(self, table):
        self._descriptor = None
        path = pathlib.Path(table) / "readers.lock"
        try:
            # Reading is enough for a shared lock, so a user who may only read the table can take
            # it.
            self._descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
                # A table on a read-only mount has no writer that the lock would hold off.
                self._descriptor = os.open(table, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self):
        """Gives the lock back. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self):
        self.close()


def read(table, feed="wspr", columns=None, filter=None):
    """Returns a pyarrow.RecordBatchReader of a feed's rows over one committed snapshot.

    `columns` is a list of names, `filter` an expression of pyarrow.dataset. While the reader is in
    use, a writer does not remove the files of its snapshot.
    """
    import pyarrow
    import pyarrow.dataset

    # Writers remove files that no manifest names, unless a reader holds this lock, so it is taken
    # before the manifest is read and kept until the last batch.
    lock = _ReadersLock(table)
    try:
        paths = [str(path) for path in files(table, feed)]
        if not paths:
            raise ValueError(f"{table}: the table has no rows of the feed {feed!r}")
        dataset = pyarrow.dataset.dataset(paths, format="parquet")
        scanner = dataset.scanner(columns=columns, filter=filter)
    except BaseException:
        # A caller that keeps the exception keeps this frame, and the lock with it.
        lock.close()
        raise

    def batches():
        # A generator that is never started never runs its `finally`. A reader that is dropped
        # unread gives the lock back all the same, because this function's reference to it goes too.
        try:
            yield from scanner.to_batches()
        finally:
            lock.close()

    return pyarrow.RecordBatchReader.from_batches(scanner.projected_schema, batches())
