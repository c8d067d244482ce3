# Seeks, statistics and predicates of an ORC file, against its own rows read from front to back.
import decimal
import sys

import pyorc
from pyorc.predicates import PredicateColumn

path, stride = sys.argv[1], 10_000
reader = pyorc.Reader(open(path, "rb"))
rows = reader.read()
names = list(reader.schema.fields)
kinds = [reader.schema.fields[name].kind for name in names]


def check_statistics(told, values, what):
    assert told["number_of_values"] == len(values) and not told["has_null"], (what, told)
    assert told["minimum"] == min(values), (what, told)
    assert told["maximum"] == max(values), (what, told)
    if "total_length" in told:
        assert told["total_length"] == sum(len(value.encode()) for value in values), (what, told)
    elif isinstance(values[0], decimal.Decimal):
        assert told["sum"] == sum(values), (what, told)
    elif isinstance(values[0], int):
        total = sum(values)
        assert told.get("sum", 0) in (total, None) or abs(total) >= 1 << 63, (what, told)


checks = 0
for i, name in enumerate(names):
    values = [row[i] for row in rows]
    check_statistics(reader[i + 1].statistics, values, name)
    checks += 1
for stripe in reader.iter_stripes():
    part = rows[stripe.row_offset : stripe.row_offset + len(stripe)]
    assert stripe.writer_timezone == "UTC"
    for i, name in enumerate(names):
        check_statistics(stripe[i + 1].statistics, [row[i] for row in part], name)
        checks += 1

for at in sorted({0, 1, len(rows) - 1, *range(0, len(rows), stride), *range(511, len(rows), 3333), *range(stride - 1, len(rows), stride)}):
    reader.seek(at)
    assert next(reader) == rows[at], at
    last = min(at + 700, len(rows))
    assert reader.read(last - at - 1) == rows[at + 1 : last], at
    checks += 1

skipped = 0
for i, (name, kind) in enumerate(zip(names, kinds)):
    options = {}
    if kind == pyorc.TypeKind.DECIMAL:
        field = reader.schema.fields[name]
        options = {"precision": field.precision, "scale": field.scale}
    wanted = rows[len(rows) // 2][i]
    column = PredicateColumn(kind, name=name, **options)
    found = pyorc.Reader(open(path, "rb"), column_names=[name], predicate=column == wanted).read()
    assert sum(row[0] == wanted for row in found) == sum(row[i] == wanted for row in rows), name
    checks += 1
    skipped += len(rows) - len(found)
print("checked", checks > 100, "skipped", skipped > len(rows))
