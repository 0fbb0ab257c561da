"""Change files of text: CSV, JSON, YAML, XML, and lists of numbers and words."""

import re
from random import Random

from tests.fuzz.hostile_values import number, text
from tests.fuzz.mutate_bytes import mutated_bytes

ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7")
SNIPPETS = (
    *("a: &a [*a]\n", "<<: {a: 1}\n", "!!python/object/apply:os.system ['true']\n", "? [1, 2]\n: 3\n", "---\na: 1\n"),
    *("\t", "%YAML 9.9\n", "!!binary x\n", "2001-99-99\n", "{" * 50, "[" * 5000, "a: |\n", "&x", "*x", "\x85", ","),
    *('<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>', "<!-- ", "<![CDATA[", "&#0;", "</track>", "<a>" * 3000),
)
VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,;:=<>{}\[\]"]+')
"""A word, a number or what is in quotes: also names of columns, keys and attributes."""
NODES = ("null", "true", "[]", "{}", "[[]]", '{"": 0}', "[" * 400 + "]" * 400)


def mutated_text(data: bytes, random: Random) -> bytes:
    """One to four changed values or lines; or markup at any place; or another encoding; or changed bytes."""
    kind = random.random()
    if kind < 0.1:
        return mutated_bytes(data, random)
    written = data.decode()
    for _ in range(random.choice((1, 1, 2, 4))):
        written = _with_other_lines(written, random) if kind < 0.3 else _with_another_value(written, random)
    if kind < 0.15:
        at = random.randrange(len(written) + 1)
        written = written[:at] + random.choice(SNIPPETS) + written[at:]
    encoding = random.choice(ENCODINGS) if random.random() < 0.03 else "utf-8"
    return written.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


def _with_another_value(written: str, random: Random) -> str:
    """A value is replaced by a hostile one, with or without quotes, by itself twice, or by a node of a tree."""
    places = [match.span() for match in VALUE.finditer(written)]
    if not places:
        return written
    start, end = random.choice(places)
    old = written[start:end]
    plain = random.choice((number(random), text(random)))
    quoted = '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    new = random.choice((plain, quoted, quoted, f"[{old}]", random.choice(NODES), old * 2, f"{old}x", ""))
    return written[:start] + new + written[end:]


def _with_other_lines(written: str, random: Random) -> str:
    """A line is left out, doubled or moved, or all but the first are repeated."""
    lines = written.splitlines(keepends=True)
    if not lines:
        return written
    at = random.randrange(len(lines))
    changed = (
        [*lines[:at], *lines[at + 1 :]],
        [*lines[: at + 1], *lines[at:]],
        [lines[at], *lines[:at], *lines[at + 1 :]],
        lines[:1] + lines[1:] * random.choice((0, 2, 40)),
    )
    return "".join(random.choice(changed))
