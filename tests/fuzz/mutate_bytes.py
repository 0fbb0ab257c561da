"""Change the bytes of any file."""

import struct
from collections.abc import Callable
from random import Random

from tests.fuzz.hostile_values import INTEGERS

Mutation = Callable[[bytes, Random], bytes]


def mutated_bytes(data: bytes, random: Random) -> bytes:
    """One to four changes."""
    for _ in range(random.choice((1, 1, 2, 4))):
        data = random.choice(MUTATIONS)(data, random)
    return data


def flip_bits(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 4, 32)) if changed else 0):
        changed[_place(data, random)] ^= 1 << random.randrange(8)
    return bytes(changed)


def truncate(data: bytes, random: Random) -> bytes:
    return data[: random.choice((0, 1, 8, 100, _place(data, random), max(len(data) - 1, 0)))]


def drop_block(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    return data[:start] + data[start + random.choice((1, 4, 100, 4096)) :]


def repeat_block(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    block = data[start : start + random.choice((1, 4, 100, 4096))]
    return data[:start] + block * random.choice((2, 3, 100)) + data[start + len(block) :]


def swap_blocks(data: bytes, random: Random) -> bytes:
    first, second = sorted((_place(data, random), _place(data, random)))
    return data[second:] + data[first:second] + data[:first]


def fill_block(data: bytes, random: Random) -> bytes:
    start, length = _place(data, random), random.choice((4, 64, 1024))
    return data[:start] + random.choice((b"\0", b"\xff", b"A")) * length + data[start + length :]


def write_integer(data: bytes, random: Random) -> bytes:
    return put_integer(data, _place(data, random), random)


def put_integer(data: bytes, start: int, random: Random) -> bytes:
    """Overwrite 1 to 8 bytes from ``start`` with a number at the edge of a type."""
    width = random.choice((1, 2, 4, 4, 8))
    value = random.choice(INTEGERS) % (1 << 8 * width)
    packed = struct.pack(random.choice("<>") + "Q", value)
    block = packed[:width] if random.random() < 0.5 else packed[-width:]
    return data[:start] + block + data[start + width :]


def _place(data: bytes, random: Random) -> int:
    """An offset, half of the time near the beginning, where headers are."""
    most = min(len(data), 256) if random.random() < 0.5 else len(data)
    return random.randrange(most) if most else 0


MUTATIONS: tuple[Mutation, ...] = (
    *(flip_bits, flip_bits, truncate, drop_block, repeat_block, swap_blocks, fill_block, write_integer, write_integer),
)
