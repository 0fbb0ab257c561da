"""Change videos and images: fields of their containers, or any bytes."""

import struct
import zlib
from random import Random

from tests.fuzz.mutate_bytes import mutated_bytes, put_integer

# Names that stand before the fields of a header: atoms of mp4, chunks of avi, elements of Matroska, blocks of others.
MARKERS: tuple[bytes, ...] = (
    *(b"tkhd", b"mdhd", b"mvhd", b"stsd", b"stts", b"ctts", b"stsc", b"stsz", b"stco", b"stss", b"elst", b"avcC"),
    *(b"hdlr", b"ftyp", b"moov", b"trak", b"mdat", b"avc1", b"mp4v", b"colr", b"pasp", b"esds", b"trun", b"tfhd"),
    *(b"avih", b"strh", b"strf", b"idx1", b"movi", b"RIFF", b"00dc", b"vids"),
    *map(bytes.fromhex, ("1a45dfa3", "2ad7b1", "23e383", "4489", "b0", "ba", "86", "1654ae6b", "e7", "a3")),
    *(b"IHDR", b"acTL", b"fcTL", b"GIF8", b"FLV", b"OggS", b"YUV4MPEG2", b"FRAME", b"G@", b"\0\0\1\xb3", b"\0\0\1"),
)
PNG_HEADER = slice(12, 29)
SIDES = (0, 1, 2, 15, 4096, 60_000, 65_535, 2**24, 2**31 - 1, 2**32 - 1)


def mutated_video(data: bytes, random: Random) -> bytes:
    """A video with changed fields or bytes, or another part of itself at its end."""
    kind = random.random()
    if kind < 0.45:
        for _ in range(random.choice((1, 1, 2, 5))):
            data = rewrite_field(data, random)
        return data
    if kind < 0.55:
        return data[: random.randrange(len(data) + 1)] + data[random.randrange(len(data) + 1) :]
    return mutated_bytes(data, random)


def rewrite_field(data: bytes, random: Random) -> bytes:
    """Overwrite a field after a marker of the container, the length before it, or the marker itself."""
    there = [marker for marker in MARKERS if marker in data]
    if not there:
        return mutated_bytes(data, random)
    marker = random.choice(there)
    places = [data.find(marker)]
    while (place := data.find(marker, places[-1] + 1)) >= 0 and len(places) < 50:
        places.append(place)
    start, kind = random.choice(places), random.random()
    if kind < 0.1:
        return (
            data[:start] + random.choice((b"zzzz", b"free", b"\0\0\0\0"))[: len(marker)] + data[start + len(marker) :]
        )
    if kind < 0.25:
        return put_integer(data, max(start - 4, 0), random)
    return put_integer(data, start + len(marker) + random.randrange(40), random)


def mutated_image(data: bytes, random: Random) -> bytes:
    """An image with changed bytes; of a PNG also width, height, depth and color type with the right checksum."""
    if data.startswith(b"\x89PNG") and random.random() < 0.5:
        header = bytearray(data[PNG_HEADER])
        header[4:12] = struct.pack(">II", random.choice(SIDES), random.choice(SIDES))
        if random.random() < 0.3:
            header[12 + random.randrange(5)] = random.randrange(256)
        return data[:12] + bytes(header) + struct.pack(">I", zlib.crc32(header)) + data[33:]
    return mutated_bytes(data, random) if random.random() < 0.7 else rewrite_field(data, random)
