"""The tables of TPC-H, generated while they are read."""

from . import _native

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


class Stream:
    """A table for any program that speaks Arrow's PyCapsule interface.

    DuckDB, Polars, pandas and pyarrow do.

    Each reading generates the rows again, batch by batch, so the table need not fit into memory.
    """

    def __init__(self, name, sf=1):
        self.name = name
        self.sf = float(sf)
        # A name or a scale factor that does not exist is refused here, not at the first reading.
        _native.tpch_stream(self.name, self.sf)

    def __arrow_c_stream__(self, requested_schema=None):
        # The interface leaves it to the producer whether it heeds a requested schema; we do not.
        return _native.tpch_stream(self.name, self.sf)

    def __repr__(self):
        return f"dynolab.tpch.Stream({self.name!r}, sf={self.sf:g})"


def table(name, sf=1):
    """Returns a pyarrow.RecordBatchReader of a table's rows. It needs pyarrow 15 or newer."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(Stream(name, sf))
