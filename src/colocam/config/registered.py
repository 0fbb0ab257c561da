"""Check the names in a configuration against the registries that define them.

A configuration names CAMs, choosers and losses, but this package does not depend on theirs, some of which need torch: a
registry is imported when a name of it is checked.
"""

from collections.abc import Collection, Mapping
from importlib import import_module

from colocam.errors import suggest

HOMES = {
    "CAMS": "colocam.cams",
    "CHOOSERS": "colocam.boxes",
    "LOSSES": "colocam.losses",
    "METHODS": "colocam.config.methods",
}
"""Registry → the module that defines it."""


def require_registered(key: str, name: str, registry: str, without: Collection[str] = ()) -> str:
    """``name`` if the registry has it and it is not in ``without``; otherwise a ValueError with the nearest name."""
    entries: Mapping[str, object] = getattr(import_module(HOMES[registry]), registry)
    known = [other for other in entries if other not in without]
    if name not in known:
        home = HOMES[registry].removesuffix(".methods")
        remedy = suggest(name, known) if known else ": register it first"
        raise ValueError(f"'{key}' names '{name}', which is not in {home}.{registry}{remedy}")
    return name
