"""Tables of Dynolab's engines in Python, as Arrow streams.

>>> import dynolab
>>> dynolab.tpch.table("region", sf=0.01).read_all().num_rows
5
"""

from . import ingest, tpch

__all__ = ["ingest", "tpch"]
