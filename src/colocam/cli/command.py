"""A command whose errors name options as they are typed; a long one shows early that it has begun."""

import re
import sys
from threading import Timer
from typing import Any

from typer.core import TyperCommand

from colocam.errors import ArgumentError, ColocamError
from colocam.utils.device import is_first
from colocam.utils.progress import say

SECONDS_TO_FIRST_LINE = 1.0
"""Importing torch and reading a model take longer than this; the work then reports its own progress."""


class Command(TyperCommand):
    """Spell arguments in errors of the library as options of this command.

    ``presence must be in 0–1, got 2`` becomes ``--presence must be in 0–1, got 2``. Further arguments in an error
    stand between backticks: ``name the video with `videos```.
    """

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ColocamError as error:
            long = {str(one.name): [name for name in one.opts if name.startswith("--")] for one in self.params}
            first = error.argument if isinstance(error, ArgumentError) else r"\w+(?= must )"
            error.args = (
                re.sub(rf"^{first}|`\w+`", lambda match: (long.get(match[0].strip("`")) or [match[0]])[0], str(error)),
            )
            raise


class LongCommand(Command):
    """Print a line while the libraries are imported, unless the command is over before."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        first = Timer(SECONDS_TO_FIRST_LINE, say, [f"{self.name}: loading"])
        first.daemon = True
        if "torch" not in sys.modules and is_first():
            first.start()
        try:
            return super().invoke(ctx)
        finally:
            first.cancel()
