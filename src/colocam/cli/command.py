"""A command whose errors name options as they are typed."""

import re
from typing import Any

from typer.core import TyperCommand

from colocam.errors import ArgumentError, ColocamError


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
