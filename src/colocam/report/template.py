"""The templates of the pages: undefined names are errors, text is escaped."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(room: str) -> Environment:
    """Templates of the folder ``room`` of colocam, which may include those of ``report``."""
    return Environment(
        loader=ChoiceLoader([PackageLoader("colocam", room), PackageLoader("colocam", "report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
