"""The command line. Each command reads its arguments and calls one function of the library.

torch is imported inside the commands, so that ``colocam --help`` is fast.

Private: the commands are the interface.
"""

import atexit
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from colocam.cli.exchange_commands import FormatsCommand, export, export_model, import_, learn
from colocam.cli.measure_commands import bench, evaluate, report, review, score, study, tensorboard
from colocam.cli.shared_options import Command, LongCommand
from colocam.cli.train_commands import config_app, demo, index_app, train
from colocam.cli.video_commands import label, localize, serve
from colocam.errors import ColocamError, InterruptedRunError, NearChanceError
from colocam.utils.device import is_first
from colocam.utils.extensions import VARIABLE, load_extensions
from colocam.utils.extras import EXTRAS, not_installed, report_text, version_text
from colocam.utils.files import os_error_text
from colocam.utils.progress import end_like_ctrl_c, leave, say

__all__: list[str] = []

app = typer.Typer(
    help="Find objects in videos: boxes, heat-maps and tracks, learned from one tag per video.",
    epilog=f"Extensions: set {VARIABLE} to Python files that register CAMs, losses, label formats or data sets.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
COMMANDS: list[Callable[..., None]] = [
    *(demo, train, learn, evaluate, score, report, localize, label, review, serve),
    *(export, export_model, tensorboard, bench, study),
]
LONG = {demo, train, learn, evaluate, localize, label, export_model, bench, study}
for function in COMMANDS:
    kind = LongCommand if function in LONG else Command
    app.command(cls=FormatsCommand if function is export else kind)(function)
app.command("import", cls=FormatsCommand)(import_)
app.add_typer(index_app, name="index")
app.add_typer(config_app, name="config")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --version: everything a bug report needs.")] = False,
) -> None:
    """Take the options that stand before a command, and load the extensions that it may need."""
    if version:
        print(version_text(), *([report_text()] if everything else []), sep="\n")
        raise typer.Exit
    if everything:
        context.fail("--all only works with --version")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")
    lists_names = context.invoked_subcommand in {"export", "import", "index"}
    if lists_names or "--help" not in sys.argv:  # no other help waits for torch because an extension imports it
        load_extensions()


def run() -> None:
    """The program ``colocam``: :func:`main`, after which Python does not take torch apart, for a second."""
    code: list[int] = []
    atexit.register(_end, code)  # as the first, it is called as the last
    try:
        main()
        code.append(0)
    except SystemExit as stop:
        if isinstance(stop.code, int):
            code.append(stop.code)
        raise


def _end(code: list[int]) -> None:
    if code and "torch" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code[0])


def _open_closed_streams() -> None:
    """Lead standard streams that the shell closed (``2>&-``) nowhere; the next file would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def main() -> None:
    """Run the command line; an error that the user can correct is printed as one line."""
    _open_closed_streams()
    end_like_ctrl_c()
    try:
        app()
    except InterruptedRunError as stop:
        if is_first():
            say(str(stop))
        leave(130)
    except ColocamError as error:
        say(f"error: {error}")
        sys.exit(3 if isinstance(error, NearChanceError) else 1)
    except OSError as error:
        say(f"error: {os_error_text(error)}")
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        say(f"error: {not_installed(error, 'this command')}")
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:  # what typer makes of Ctrl-C
            say("stopped")
            leave(130)
        raise
