"""How a job starts and ends: its command line, its help, its errors."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from actors.artifacts.store import BadArtifact
from actors.corpora.records import BadInput
from conf import schema
from conf.load import BadConfig, compose, load, quoted, register_resolvers
from jobs import helptext
from jobs.console import fail, interrupt, say
from jobs.ray_session import stop_ray, submitted

INPUT_FILES = (
    *("corpus.path", "queries.path", "queries.qrels", "embeddings.model", "embeddings.path", "embeddings.queries"),
    *("graph.path", "graph.similarities", "groups.path", "summaries.path"),
    *("first_stage.path", "reranker.path", "navigator.path", "loop.neighbours", "ask"),
)
EXPECTED = (BadConfig, BadInput, BadArtifact, OSError, ValueError)


def job(run: Callable[[schema.Settings], object]) -> Callable[[], None]:
    """The main function of a job: composes the command line, checks it, runs, and turns a user's mistake into one clear message."""

    @hydra.main(version_base="1.3", config_path="pkg://conf", config_name="config")
    def composed(cfg: DictConfig) -> None:
        with reported():
            signal.signal(signal.SIGINT, interrupt)
            settings = on_this_machine(load(cfg, HydraConfig.get().overrides.task), submitted())
            try:
                run(settings)
            finally:
                stop_ray()

    def main() -> None:
        register_resolvers()
        with reported():
            sys.argv[1:] = with_verb(sys.argv[1:], getattr(sys.modules[run.__module__], "VERBS", ()))
            if {"--help", "-h"} & set(sys.argv[1:]):
                module = sys.modules[run.__module__]
                overrides = [a for a in sys.argv[1:] if not a.startswith("-")]
                return say(helptext.text(Path(str(module.__file__)).stem, str(module.__doc__), overrides))
            _explain_bad_overrides()
        return composed()

    return main


def with_verb(arguments: Sequence[str], verbs: Sequence[str]) -> list[str]:
    """The arguments of a job that has verbs: a word alone stands for do=<word>."""
    return [f"do={word}" if verbs and word.isidentifier() else word for word in arguments]


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Expected errors end the job with their message and status 2, Ctrl-C with a word on how to go on; others keep their trace."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more when it flushes
        fail("standard output was closed. What is finished is kept: start the same command again, its output to a file.")
        sys.exit(2)
    except EXPECTED as error:
        if os.environ.get("GAREN_TRACEBACK"):
            raise
        fail(str(getattr(error, "cause", None) or error))  # Ray wraps what a task raised, with its traceback
        sys.exit(2)
    except KeyboardInterrupt:
        fail("interrupted. What is finished is kept: start the same command again and it goes on from there.")
        sys.exit(130)


def variant(settings: schema.Settings, overrides: Sequence[str]) -> schema.Settings:
    """The settings that the same command line with these overrides more would give; a key that is given again counts once."""
    last = {override.partition("=")[0]: override for override in [*settings.overrides, *overrides]}
    return on_this_machine(compose(list(last.values())), submitted())


def _explain_bad_overrides() -> None:
    """Hydra's own message for a misspelt key tells its user to append it; ours says which keys there are."""
    overrides = [a for a in sys.argv[1:] if not a.startswith("-")]
    if len(overrides) < len(sys.argv) - 1:
        return  # help, multirun and the like are Hydra's own
    sys.argv[1:] = overrides = quoted(overrides)
    try:
        compose(overrides)
    except (HydraException, OmegaConfBaseException, ValueError) as error:  # graph=5 is a ValueError of Hydra's
        lines = [line for line in str(error).splitlines() if not line.startswith(("To append", "Config search", "\tprovider"))]
        raise BadConfig("command line", " ".join(overrides), "overrides that the configuration knows", " ".join(lines)) from None


def on_this_machine(settings: schema.Settings, in_copy: bool) -> schema.Settings:
    """Make paths of input files absolute. in_copy: the job runs in a temporary copy, where they must be so already.

    Raises BadConfig for a relative path in a submitted job, and for an artifacts.root that would vanish with the copy.
    """
    if in_copy and Path(settings.artifacts.root).resolve().is_relative_to(Path.cwd().resolve()):
        raise BadConfig(
            "artifacts.root",
            settings.artifacts.root,
            f"a folder outside of {Path.cwd()}, the copy in which a submitted job runs",
            "The copy is removed: set artifacts.root or GAREN_HOME to a folder that every node sees.",
        )
    for key in INPUT_FILES:
        *parents, name = key.split(".")
        node = getattr(settings, parents[0]) if parents else settings
        given = getattr(node, name, "")
        if not isinstance(given, str) or given in ("", "-", "minilm") or Path(given).is_absolute():
            continue
        if in_copy:
            raise BadConfig(key, given, "an absolute path in a submitted job", "It runs in a copy: give the full path.")
        setattr(node, name, str(Path(given).expanduser().absolute()))  # a shell leaves the ~ of key=~/notes to us
    collections, path = settings.artifacts.collections, getattr(settings.corpus, "path", "")
    if Path(path).parent == Path(collections) and not Path(path).exists():
        remedy = "Set GAREN_COLLECTIONS to the folder that holds the collections, or read any folder: corpus=beir corpus.path=..."
        raise BadConfig("artifacts.collections", collections, f"a folder in which {Path(path).name} lies", remedy)
    return settings
