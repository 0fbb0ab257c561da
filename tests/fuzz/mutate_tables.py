"""Change parquet tables: columns, types and values."""

import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.hostile_values import integer, number, text
from tests.fuzz.mutate_bytes import mutated_bytes


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
