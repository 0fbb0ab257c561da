"""The commands before and of training: index data sets, print the schema of the configuration, demo, train.

Tests: tests/cli/test_cli.py, tests/cli/test_shell.py, tests/config/test_json_schema.py.
"""

import json
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from colocam.cli import completion
from colocam.cli.shared_options import Command, ConfigFile, Device, Frames, Overrides
from colocam.config.options import Options
from colocam.utils.device import is_first
from colocam.utils.extensions import load_light_extensions, unknown
from colocam.utils.progress import say

if TYPE_CHECKING:
    from colocam.data import Dataset


OUT = Annotated[Path | None, Option("--out", "-o", help="Folder for manifest.csv and truth.csv; has a default name.")]
config_app = typer.Typer(no_args_is_help=True, help="What a training configuration can contain.")


class DatasetGroup(TyperGroup):
    """Commands made from the registered data sets when they are needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - click's signature
        """Names of the data sets."""
        from colocam.data import DATASETS

        if ctx.resilient_parsing:  # the shell asks for names: nothing has loaded the extensions
            load_light_extensions()
        return list(DATASETS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """The command of a data set."""
        from colocam.data import DATASETS

        if ctx.resilient_parsing:
            load_light_extensions()
        if cmd_name not in DATASETS:
            ctx.fail(f"no data set '{cmd_name}'{unknown(cmd_name, list(DATASETS))}")
        return _command(cmd_name, DATASETS[cmd_name])


index_app = typer.Typer(
    cls=DatasetGroup, no_args_is_help=True, help="Index a data set: write its manifest and its true boxes."
)


def _command(name: str, dataset: "Dataset") -> Any:  # noqa: ANN401 - a command of click
    """A command whose arguments are those of ``dataset.read``."""
    parameters = [_parameter(one) for one in signature(dataset.read, eval_str=True).parameters.values()]

    def run(out: Path | None = None, **values: Any) -> None:  # noqa: ANN401
        from colocam.data import index_dataset

        root = values.pop(parameters[0].name)
        manifest, truth = index_dataset(name, root, out, **values)
        say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")

    parameters.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=OUT))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    single = typer.Typer(add_completion=False)
    single.command(name, cls=Command, help=f"Index {dataset.title}.")(run)
    return typer.main.get_command(single)


def _parameter(parameter: Parameter) -> Parameter:
    """Turn texts in ``Annotated`` into help, and those that begin with ``--`` into further names of the option."""
    positional = parameter.default is Parameter.empty and parameter.kind is not Parameter.KEYWORD_ONLY
    stated = parameter.annotation
    if stated is Parameter.empty:
        stated = Path if positional else str
    kind, *metadata = get_args(stated) if hasattr(stated, "__metadata__") else (stated,)
    texts = [text for text in metadata if isinstance(text, str)]
    names = [text for text in texts if text.startswith("--")]
    help_ = " ".join(text for text in texts if text not in names) or None
    if positional:
        return parameter.replace(annotation=Annotated[kind, Argument(help=help_)])
    option = Option(f"--{parameter.name.replace('_', '-')}", *names, help=help_)
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])


@config_app.callback()
def config() -> None:
    """Take no options before a command."""


@config_app.command(cls=Command)
def schema() -> None:
    """Print the JSON schema of the configuration, which editors use to complete and check keys."""
    from colocam.config.loading import schema_text

    print(schema_text(), end="")


def demo(
    out: Annotated[Path, Option(help="Folder for the videos and the run.")] = Path("demo"),
    seed: Annotated[int, Option(help="Seed of the training; it does not change the videos.")] = 0,
    world_seed: Annotated[
        int, Option(help="Seed of the videos. The default settings were not tuned on the videos of seed 1.")
    ] = 1,
    *,
    videos_only: Annotated[bool, Option("--videos-only", help="Generate the tagged videos and stop.")] = False,
    compare: Annotated[bool, Option("--compare", help="Also train F-CAM and compare; takes 3 minutes longer.")] = False,
    short: Annotated[
        bool, Option("--short", help="Few videos, one epoch: a one-minute check that everything runs, not how well.")
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Generate tagged videos, train on their tags, evaluate, and write a report: a test of the whole method."""
    from colocam.demo.run_demo import run_demo

    how = {"videos_only": videos_only, "compare": compare, "short": short}
    run_demo(out, seed=seed, world_seed=world_seed, overrides=overrides or [], **how)


def train(
    videos: Annotated[
        Path, Argument(help="Folder VIDEOS/<tag>/… with one folder per tag, or a CSV or parquet manifest.")
    ],
    out: Annotated[Path, Option(help="Run folder. The same command continues an interrupted run.")],
    preset: Annotated[
        str | None,
        Option(
            help="Configuration to start from: resnet50, laptop, lite0, paper or demo; default: resnet50 with a GPU, "
            "laptop without one.",
            autocompletion=completion.presets,
        ),
    ] = None,
    start: Annotated[
        str | None,
        Option(
            "--from",
            metavar="RUN|NAME",
            help="Trained model to start from: a run folder or a ready model. Default without a GPU: the ready model.",
            autocompletion=completion.ready_models,
        ),
    ] = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    boxes: Annotated[
        Path | None,
        Option(help="Table of true boxes; those of validation videos are used to choose epochs and threshold."),
    ] = None,
    teacher: Annotated[
        Path | None, Option(help="Run folder of a teacher model for a smaller network, e.g. the preset lite0.")
    ] = None,
    prior: Annotated[
        Path | None,
        Option(help="ONNX file of a network that sees where objects stand out; the model learns this from it."),
    ] = None,
    frames: Frames = None,
    device: Device = None,
    test_boxes: Annotated[
        Path | None, Option(help="Table of true boxes: after training, evaluate on the test videos and write a report.")
    ] = None,
    *,
    anyway: Annotated[
        bool,
        Option(
            "--anyway",
            help="Continue even if accuracy on held-out videos is near chance; otherwise stop with exit code 3.",
        ),
    ] = False,
) -> None:
    """Train a model on videos with one tag each. Ctrl-C stops it; the same command continues."""
    from colocam.config import load_config
    from colocam.config.card import read_card
    from colocam.errors import ColocamError, NearChanceError
    from colocam.evaluation.glance import Glances
    from colocam.evaluation.result import say_learned_from
    from colocam.training import train as run_training
    from colocam.training.start import default_preset, start_folder

    changes = list(overrides or [])
    if teacher is not None:
        changes.append(f"localizer.teacher={json.dumps(str(teacher))}")  # any path, as YAML
    if prior is not None:
        changes.append(f"localizer.prior={json.dumps(str(prior))}")
    if start is not None:
        changes.append(f"start.model={json.dumps(start)}")
    chosen = load_config(preset or ("laptop" if start else default_preset(device)), config, changes)
    if is_first() and (preset is None or chosen.start is not None):
        say(_what_is_trained(preset, chosen.start.model if chosen.start else None))
        if chosen.start is not None:
            say_learned_from(read_card(start_folder(chosen.start.model)))
    if test_boxes is not None and not test_boxes.is_file():  # before training, not hours later
        raise ColocamError(f"--test-boxes {test_boxes}: there is no such file")
    picture = Glances(out / "picture.jpg", out, None, {"start": 1, **dict.fromkeys(chosen.methods, 1)})
    try:
        run = run_training(
            videos,
            out,
            chosen,
            boxes=boxes,
            frames=frames,
            device=device,
            after_epoch=None if chosen.start is None else picture,
            stop_near_chance=not anyway,
        )
    except NearChanceError as error:
        raise NearChanceError(f"{error}; add --anyway to go on") from error
    if not is_first():
        return
    if test_boxes is not None:
        from colocam.evaluation.run_evaluation import evaluate
        from colocam.report import write_report
        from colocam.report.evaluation_tables import print_evaluations

        print_evaluations([evaluate(run, test_boxes, options=Options(device))])
        say(f"report: {write_report(run)}")
    if (run / "model.json").is_file():
        say(f"trained: {run / 'model.json'}; now: colocam localize {run} VIDEO -o OUT")
    else:  # methods: []
        say(f"trained: {run / 'classifier'} only, since 'methods' is empty; now: colocam evaluate {run} --boxes BOXES")


def _what_is_trained(preset: str | None, start: str | None) -> str:
    """The first line of a training: which preset, from which model, and why."""
    if start is not None:
        why = "no GPU" if preset is None else f"preset {preset}"
        others = "choose another with --from, or use --preset resnet50 on a GPU"
        return f"{why}: training starts from the model {start}; {others}"
    return "GPU: using preset resnet50; change it with --preset or --from"
