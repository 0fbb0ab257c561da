"""Index a data set: one command for each entry of ``DATASETS``."""

from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from colocam.cli.command import Command
from colocam.utils.progress import say

if TYPE_CHECKING:
    from colocam.data.datasets import Dataset

OUT = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for manifest.csv and truth.csv; has a default name.")
]


class DatasetGroup(TyperGroup):
    """Commands made from the registered data sets when they are needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - click's signature
        """Names of the data sets."""
        from colocam.data.datasets import DATASETS

        return list(DATASETS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        """The command of a data set, None where there is none of this name."""
        from colocam.data.datasets import DATASETS

        return _command(cmd_name, DATASETS[cmd_name]) if cmd_name in DATASETS else None


index_app = typer.Typer(
    cls=DatasetGroup, no_args_is_help=True, help="Index a data set: write its manifest and its true boxes."
)


def _command(name: str, dataset: "Dataset") -> Any:  # noqa: ANN401 - a command of click
    """A command whose arguments are those of ``dataset.read``."""
    parameters = [_parameter(one) for one in signature(dataset.read, eval_str=True).parameters.values()]

    def run(out: Path | None = None, **values: Any) -> None:  # noqa: ANN401
        from colocam.data.datasets import index_dataset

        root = values.pop(parameters[0].name)
        manifest, truth = index_dataset(name, root, out, **values)
        say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")

    parameters.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=OUT))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    single = typer.Typer(add_completion=False)
    single.command(name, cls=Command, help=f"Index {dataset.title}.")(run)
    return typer.main.get_command(single)


def _parameter(one: Parameter) -> Parameter:
    """Turn texts in ``Annotated`` into help, and those that begin with ``--`` into further names of the option."""
    positional = one.default is Parameter.empty and one.kind is not Parameter.KEYWORD_ONLY
    stated = (Path if positional else str) if one.annotation is Parameter.empty else one.annotation
    kind, *metadata = get_args(stated) if hasattr(stated, "__metadata__") else (stated,)
    texts = [text for text in metadata if isinstance(text, str)]
    names = [text for text in texts if text.startswith("--")]
    help_ = " ".join(text for text in texts if text not in names) or None
    if positional:
        return one.replace(annotation=Annotated[kind, typer.Argument(help=help_)])
    option = typer.Option(f"--{one.name.replace('_', '-')}", *names, help=help_)
    return one.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])
