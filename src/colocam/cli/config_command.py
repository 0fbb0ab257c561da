"""``colocam config``: what a configuration may hold."""

import typer

from colocam.cli.command import Command

config_app = typer.Typer(no_args_is_help=True, help="What the configuration of a training may hold.")


@config_app.callback()
def config() -> None:
    """Take no options before a command."""


@config_app.command(cls=Command)
def schema() -> None:
    """Print the JSON schema of the configuration, with which editors complete and check keys."""
    from colocam.config.loading import schema_text

    print(schema_text(), end="")
