"""The command line: each command is a thin reading of its arguments; what it does lives in the module it names.

torch and all that needs it is imported inside the commands, so that ``colocam --help`` need not wait for it.
"""

import sys

import typer

from colocam.cli.export_command import export
from colocam.cli.index_command import index_app
from colocam.cli.localize_command import localize
from colocam.cli.look_commands import evaluate, report, review, score
from colocam.cli.measure_commands import bench, study
from colocam.cli.train_commands import demo, train
from colocam.errors import ColocamError, InterruptedRunError
from colocam.utils.progress import say

app = typer.Typer(
    help="Boxes, heat-maps and tracks in videos, learnt from one tag per video.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(index_app, name="index")
for command in (demo, train, evaluate, score, report, localize, review, export, bench, study):
    app.command()(command)


def main() -> None:
    """Run the command line; what a user can mend becomes one line and a non-zero exit."""
    try:
        app()
    except InterruptedRunError as stop:
        say(str(stop))
        sys.exit(130)
    except ColocamError as error:
        say(f"error: {error}")
        sys.exit(1)
    except OSError as error:
        say(f"error: {error}")
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:  # what typer makes of Ctrl-C
            say("stopped")
        raise
