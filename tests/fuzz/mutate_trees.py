"""Change JSON and YAML: values, keys, and the text itself."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import yaml
from tests.fuzz.hostile_values import integer, number, text
from tests.fuzz.mutate_bytes import mutated_bytes

RAW = "\ue000"
"""Marks a text that is written without quotes: numbers that Python would not write."""
SNIPPETS = (
    *("a: &a [*a]\n", "<<: {a: 1}\n", "!!python/object/apply:os.system ['true']\n", "? [1, 2]\n: 3\n", "---\na: 1\n"),
    *(
        "\t",
        "%YAML 9.9\n",
        "!!binary x\n",
        "2001-99-99\n",
        "0o777\n",
        "{" * 50,
        "[" * 5000,
        "a: |\n",
        "&x",
        "*x",
        "\x85",
    ),
)


def mutated_json(data: bytes, random: Random) -> bytes:
    """One to three changes of the tree, or changed bytes."""
    if random.random() < 0.12:
        return mutated_bytes(data, random)
    tree = change_tree(json.loads(data), random)
    written = json.dumps(tree)
    while (start := written.find('"\\ue000')) >= 0:
        end = written.index('"', start + 1)
        written = written[:start] + written[start + len('"\\ue000') : end] + written[end + 1 :]
    return written.encode("utf-8", "surrogatepass")


def mutated_yaml(data: bytes, random: Random) -> bytes:
    """The same for YAML."""
    kind = random.random()
    if kind < 0.1:
        return mutated_bytes(data, random)
    if kind < 0.25:
        lines = data.decode().splitlines(keepends=True)
        lines.insert(random.randrange(len(lines) + 1), random.choice(SNIPPETS))
        return "".join(lines).encode()
    tree = change_tree(yaml.safe_load(data), random)
    try:
        written = yaml.safe_dump(tree, allow_unicode=True)
    except RecursionError:  # deeper than PyYAML can write; JSON is YAML too
        written = json.dumps(tree, default=str)
    return written.replace(RAW, "").encode("utf-8", "surrogatepass")


def change_tree(tree: Any, random: Random) -> Any:
    """``tree`` with one to three changed nodes."""
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return hostile_node(random, tree)
        parent, key = random.choice(places)
        kind = random.random()
        if kind < 0.1 and isinstance(parent, dict):
            del parent[key]
        elif kind < 0.2 and isinstance(parent, dict):
            parent[random.choice((text(random), f"{key}x", "format"))] = parent.pop(key)
        elif kind < 0.3 and isinstance(parent, list):
            parent[:] = random.choice(([], parent[:-1], parent * 2, parent[::-1]))
        else:
            parent[key] = hostile_node(random, parent[key])
    return tree


def hostile_node(random: Random, old: Any) -> Any:
    """A value of another kind, or at the edge of the same kind."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: RAW + number(random),
        lambda: number(random),
        lambda: text(random),
        lambda: integer(random),
        lambda: random.choice((None, True, False, [], {}, [[]], [None], {"": 0}, 0.1, -1)),
        lambda: [old] * random.choice((1, 2, 1000)),
        lambda: {"a": old},
        lambda: nested(random.choice((30, 400))),
        lambda: old * 2 if isinstance(old, int | float | str | list) else old,
        lambda: -old if isinstance(old, int | float) else str(old),
    )
    return random.choice(makers)()


def nested(depth: int) -> Any:
    """A list in a list in a list …"""
    tree: Any = []
    for _ in range(depth):
        tree = [tree]
    return tree


def _places(tree: Any) -> Any:
    """(parent, key) of every node but the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)
