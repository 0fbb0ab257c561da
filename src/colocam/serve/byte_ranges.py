"""One range of bytes per request, RFC 9110 section 14; browsers ask for the proxy in parts."""

import re
from typing import NamedTuple

_ONE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class ByteRange(NamedTuple):
    """Bytes ``first`` to ``last``, both included."""

    first: int
    last: int


class RangeError(ValueError):
    """A range that cannot be answered."""


def one_range(header: str | None, size: int) -> ByteRange | None:
    """The range that a request asks for; None: the whole file.

    Raises:
        RangeError: several ranges, another unit, or a range beyond the end.
    """
    if header is None:
        return None
    match = _ONE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        raise RangeError(header)
    if not match[1]:  # the last so many bytes
        length = min(int(match[2]), size)
        first, last = size - length, size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
    if first > last:
        raise RangeError(header)
    return ByteRange(first, last)
