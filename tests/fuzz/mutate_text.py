"""Change XML, and text whose words are numbers."""

import re
from random import Random
from xml.etree import ElementTree as ET

from tests.fuzz.hostile_values import number, text
from tests.fuzz.mutate_bytes import mutated_bytes

SNIPPETS = (
    '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>',
    "<!-- ",
    "<![CDATA[",
    "&#0;",
    "</track>",
    "<a>" * 3000,
    '<box frame="1"/>',
)


def mutated_xml(data: bytes, random: Random) -> bytes:
    """One to three changed attributes, texts or elements; or markup at any place; or changed bytes."""
    kind = random.random()
    if kind < 0.1:
        return mutated_bytes(data, random)
    if kind < 0.25:
        at = random.randrange(len(data) + 1)
        return data[:at] + random.choice(SNIPPETS).encode() + data[at:]
    root = ET.fromstring(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        _change(random.choice(list(root.iter())), random)
    written = re.sub("[\x00\ud800\udcff]", "?", ET.tostring(root, encoding="unicode"))
    return written.encode()


def _change(element: ET.Element, random: Random) -> None:
    kind, value = random.random(), random.choice((number, text))(random)
    if kind < 0.5 and element.attrib:
        element.set(random.choice(sorted(element.attrib)), value)
    elif kind < 0.6 and element.attrib:
        del element.attrib[random.choice(sorted(element.attrib))]
    elif kind < 0.7 and len(element):
        element.remove(random.choice(list(element)))
    elif kind < 0.8 and len(element):
        element.append(random.choice(list(element)))
    elif kind < 0.85:
        element.tag = random.choice(("track", "image", "box", "object", "task", "x"))
    else:
        element.text = value


def mutated_words(data: bytes, random: Random) -> bytes:
    """One to four changed words, left out or doubled; or changed bytes."""
    if random.random() < 0.15:
        return mutated_bytes(data, random)
    parts = re.split(r"([\s,=]+)", data.decode())
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(parts))
        parts[at] = random.choice((number(random), text(random), "", parts[at] * 2))
    return "".join(parts).encode("utf-8", "surrogatepass")
