"""In which order, and by which worker, the tests run: a plugin of pytest."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported, a third of that time, and none among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# What modules share, a process or an import of seconds, is started or imported by one worker alone.
TOGETHER = {
    "cams/clip": "clip",
    "lab/study": "study",
    "segment/test_mobile_sam.py": "clip",
    "serve": "serve",
    "training/test_processes.py": "processes",
    "training/test_resume.py": "processes",
}

# The longest modules and folders first, so that no worker is left with one at the end. The first of all builds the
# shared run and compiles for it; meanwhile the other worker runs the next three, which need neither.
LONGEST = (
    "cli/test_cli.py",
    "test_triton_interpreter.py",
    "models/test_backbones.py",
    "models/test_networks.py",
    "config/presets/",
    "serve/",
    "lab/study/test_studies.py",
    "training/test_resume.py",
    "training/test_processes.py",
    "fuzz/",
    "integrations/test_onnx_export.py",
    "training/test_train.py",
    "training/test_frozen_encoder.py",
    "cams/clip/",
    "lab/study/test_runner.py",
    "losses/affinity/test_accuracy.py",
    "utils/extensions/",
    "video/test_fence.py",
    "demo/test_run_demo.py",
    "inference/",
    "evaluation/",
    "training/",
    "lab/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the modules by how long they take."""
    root = Path(__file__).parents[1]

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(root).as_posix()
        return next((i for i, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=place)


class ByModule(LoadScopeScheduling):
    """A worker takes a module, or modules that share something, at a time."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0].removeprefix("tests/")
        return next((shared for start, shared in TOGETHER.items() if path.startswith(start)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByModule:
    return ByModule(config, log)


BROWSER = ("Chromium is not installed", "Playwright is not installed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Say in the last line that tests of the page were skipped: among hundreds of dots nobody sees it."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")  # a worker has none
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if count := sum(str(report.longrepr[2]).endswith(BROWSER) for report in skipped):
        reporter.write_line(
            f"tests of the page skipped: {count}; to run them: apt install chromium, pip install playwright"
        )
    return result
