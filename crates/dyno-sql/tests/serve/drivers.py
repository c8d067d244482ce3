"""Asks a server of `dyno ingest serve` by the drivers psycopg, asyncpg and pg8000, as programs do:
prepared statements, parameters, rows in the binary form, rows in portions.

drivers.py PORT    The table has a thousand spots, of numbers 1 to 1000.
"""

import asyncio
import datetime
import sys

import asyncpg
import pg8000.native
import psycopg

port = int(sys.argv[1])
utc = datetime.timezone.utc
begin = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=utc)

connection = pg8000.native.Connection(
    "me", host="127.0.0.1", port=port, database="dyno", password=""
)
rows = connection.run(
    "SELECT count(*) FROM spots WHERE callsign = :call AND snr >= :snr", call="K1ABC", snr=-20
)
assert rows == [[333]], rows
rows = connection.run("SELECT id, snr, distance FROM spots WHERE id = :id", id=7)
assert rows == [[7, -13, 700]], rows
try:
    connection.run("INSERT INTO spots VALUES (1)")
    raise SystemExit("pg8000: the table was written")
except pg8000.exceptions.DatabaseError as refused:
    assert refused.args[0]["C"] == "25006", refused
connection.close()

dsn = f"host=127.0.0.1 port={port} user=me dbname=dyno"
with psycopg.connect(dsn) as session, session.cursor(binary=True) as cursor:
    for _ in range(10):
        # The driver prepares a statement that it sees often.
        cursor.execute(
            "SELECT id, timestamp, snr, band FROM spots WHERE timestamp >= %s AND timestamp < %s",
            (begin + datetime.timedelta(minutes=14), begin + datetime.timedelta(minutes=16)),
        )
        rows = cursor.fetchall()
        expected = [(7, begin + datetime.timedelta(minutes=14), -13, 106)]
        assert rows == expected, rows
    with session.cursor() as plain:
        plain.execute("SELECT NULL::int, true, 1.5::float8, 'a'")
        assert plain.fetchone() == (None, True, 1.5, "a")


async def portions():
    session = await asyncpg.connect(host="127.0.0.1", port=port, user="me", database="dyno")
    row = await session.fetchrow("SELECT id, snr, callsign FROM spots WHERE id = $1", 7)
    assert tuple(row) == (7, -13, "G8JNJ"), row
    async with session.transaction():
        numbers = [row["id"] async for row in session.cursor("SELECT id FROM spots", prefetch=300)]
        assert sorted(numbers) == list(range(1, 1001)), len(numbers)
    endless = (
        "SELECT count(*) FROM generate_series(1, 1000000) a(v), "
        "generate_series(1, 1000000) b(v) WHERE a.v * b.v % 7 = 3"
    )
    try:
        await session.fetchval(endless, timeout=0.5)
        raise SystemExit("asyncpg: the statement ended by itself")
    except asyncio.TimeoutError:
        pass  # The driver has sent a request to cancel it.
    assert await session.fetchval("SELECT count(*) FROM spots") == 1000
    await session.close()


asyncio.run(portions())
print("three drivers were answered")
