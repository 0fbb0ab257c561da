"""The pages' templates: strict, escaped, with the pieces that all pages have in common."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(room: str) -> Environment:
    """Templates of a room of colocam, which may include those of ``report``."""
    return Environment(
        loader=ChoiceLoader([PackageLoader("colocam", room), PackageLoader("colocam", "report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
