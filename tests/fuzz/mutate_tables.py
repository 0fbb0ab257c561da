"""Change CSV and parquet tables: cells, columns, rows, encodings and types."""

import csv
import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.hostile_values import integer, number, text
from tests.fuzz.mutate_bytes import mutated_bytes

Rows = list[list[str]]
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7")


def mutated_csv(data: bytes, random: Random) -> bytes:
    """One to four changed cells, rows or columns; or another encoding; or changed bytes."""
    if random.random() < 0.1:
        return mutated_bytes(data, random)
    rows = list(csv.reader(io.StringIO(data.decode())))
    for _ in range(random.choice((1, 1, 2, 4))):
        _change(rows, random)
    written = io.StringIO()
    separator = random.choice(",,,,,,,,;\t|")
    ending = random.choice(("\n", "\n", "\r\n", "\r"))
    csv.writer(written, delimiter=separator, lineterminator=ending).writerows(rows)
    encoding = random.choice(ENCODINGS) if random.random() < 0.08 else "utf-8"
    return written.getvalue().encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


def _change(rows: Rows, random: Random) -> None:
    if not rows:
        return
    line, kind = random.randrange(len(rows)), random.random()
    row = rows[line]
    if kind < 0.6 and row:
        row[random.randrange(len(row))] = random.choice((number, text))(random)
    elif kind < 0.68:
        rows.insert(random.randrange(len(rows) + 1), list(row))
    elif kind < 0.74:
        del rows[line]
    elif kind < 0.8:
        row.extend([text(random)] * random.choice((1, 3)))
    elif kind < 0.86:
        del row[random.randrange(len(row) + 1) :]
    elif kind < 0.92:
        column = random.randrange(len(rows[0]) or 1)
        for one in rows:
            del one[column : column + 1]
    elif kind < 0.96:
        rows[:] = rows[:1] + rows[1:] * random.choice((0, 2, 40))
    else:
        rows[0] = [random.choice((name, name.upper(), f" {name}", rows[0][0])) for name in rows[0]]


def mutated_parquet(data: bytes, random: Random) -> bytes:
    """A column of another type or with other values, a missing or a doubled column; or changed bytes."""
    if random.random() < 0.3:
        return mutated_bytes(data, random)
    table = pq.read_table(io.BytesIO(data))
    place = random.randrange(table.num_columns)
    name, count, kind = table.column_names[place], table.num_rows, random.random()
    if kind < 0.1:
        table = table.remove_column(place)
    elif kind < 0.2:
        table = table.append_column(name, table.column(place))
    elif kind < 0.3:
        table = table.slice(0, random.choice((0, 1)))
    else:
        table = table.set_column(place, name, _hostile_column(count, random))
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def _hostile_column(count: int, random: Random) -> pa.Array:
    makers = (
        lambda: pa.array([number(random) for _ in range(count)]),
        lambda: pa.array([text(random).encode("utf-8", "replace").decode() for _ in range(count)]),
        lambda: pa.nulls(count),
        lambda: pa.array([random.choice((float("nan"), float("inf"), -1.0, 1e308, 0.5)) for _ in range(count)]),
        lambda: pa.array([integer(random) % 2**63 for _ in range(count)], pa.int64()),
        lambda: pa.array([b"\xff\0"] * count),
        lambda: pa.array([[1, 2]] * count),
        lambda: pa.array([{"a": 1}] * count),
        lambda: pa.array([bool(random.randrange(2)) for _ in range(count)]),
        lambda: pa.array([2**62] * count, pa.timestamp("ns")),
        lambda: pa.array(["a"] * count).dictionary_encode(),
        lambda: pa.array([random.choice((None, 1)) for _ in range(count)]),
    )
    return random.choice(makers)()
