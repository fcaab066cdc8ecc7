"""How a job starts and ends: its configuration, its Ray session, its artifacts' drafts, its deployments, its errors."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from actors.artifacts.store import Address, BadArtifact, add_timings, draft, finish, open_manifest, open_timings
from actors.corpora.records import BadInput
from conf import schema
from conf.load import BadConfig, compose, load, register_resolvers
from jobs.console import duration, fail, say
from jobs.stages import STAGES, Addresses

Make = Callable[[schema.Settings, Mapping[str, Path], Path], dict[str, Any]]
APP = "garen"  # Serve applications are <APP>-<job id>-<role>
INPUT_FILES = ("corpus.path", "queries.path", "queries.qrels", "embeddings.model", "reranker.path", "navigator.path", "ask")
CODE = ("conf", "jobs", "actors")
EXPECTED = (BadConfig, BadInput, BadArtifact, FileNotFoundError, ValueError)


def job(run: Callable[[schema.Settings], object]) -> Callable[[], None]:
    """The main function of a job: composes the command line, checks it, runs, and turns a user's mistake into one clear message."""

    @hydra.main(version_base="1.3", config_path="pkg://conf", config_name="config")
    def composed(cfg: DictConfig) -> None:
        with reported():
            settings = on_this_machine(load(cfg), submitted())
            try:
                run(settings)
            finally:
                stop_ray()

    def main() -> None:
        register_resolvers()
        with reported():
            _explain_bad_overrides()
        composed()

    return main


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Expected errors end the job with their message and status 2, Ctrl-C with a word on how to go on; others keep their trace."""
    try:
        yield
    except EXPECTED as error:
        if os.environ.get("GAREN_TRACEBACK"):
            raise
        fail(str(getattr(error, "cause", None) or error))  # Ray wraps what a task raised, with its traceback
        sys.exit(2)
    except KeyboardInterrupt:
        fail("interrupted. What is finished is kept: start the same command again and it goes on from there.")
        sys.exit(130)


def _explain_bad_overrides() -> None:
    """Hydra's own message for a misspelt key tells its user to append it; ours says which keys there are."""
    overrides = [a for a in sys.argv[1:] if not a.startswith("-")]
    if len(overrides) < len(sys.argv) - 1:
        return  # help, multirun and the like are Hydra's own
    try:
        compose(overrides)
    except (HydraException, OmegaConfBaseException) as error:
        lines = [line for line in str(error).splitlines() if not line.startswith(("To append", "Config search", "\tprovider"))]
        raise BadConfig("command line", " ".join(overrides), "overrides that the configuration knows", " ".join(lines)) from None


def submitted() -> bool:
    """Whether this job was submitted to a Ray cluster: then it runs in a temporary copy of the code."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def code() -> dict[str, Any]:
    """The runtime environment that gives every process of a job this code, as it is now."""
    root = Path(__file__).resolve().parents[1]
    others = [f"/{path.name}" for path in root.iterdir() if path.name not in CODE]  # Ray cannot be told "all but these"
    return {"working_dir": str(root), "excludes": [*others, "__pycache__"]}


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
        if given in ("", "-", "minilm") or Path(given).is_absolute():
            continue
        if in_copy:
            raise BadConfig(key, given, "an absolute path in a submitted job", "It runs in a copy: give the full path.")
        setattr(node, name, str(Path(given).absolute()))
    collections, path = settings.artifacts.collections, getattr(settings.corpus, "path", "")
    if Path(path).parent == Path(collections) and not Path(path).exists():
        remedy = "Set GAREN_COLLECTIONS to the folder that holds the collections, or read any folder: corpus=beir corpus.path=..."
        raise BadConfig("artifacts.collections", collections, f"a folder in which {Path(path).name} lies", remedy)
    return settings


def build(
    settings: schema.Settings, kind: str, make: Make, *, ray: bool = True, needs: Mapping[str, float] | None = None
) -> Address:
    """Build one artifact, or say that it is there. `make` gets settings, the inputs' folders and the draft's, and returns counts.

    needs: foreseen megabytes of "disk" and "memory".
    """
    addresses = Addresses(settings)
    address = addresses[kind]
    if _there(address):
        return address
    inputs = {name: addresses[name].folder for name in STAGES[kind].inputs}
    for name, folder in inputs.items():
        open_manifest(folder, name, checksums=True)
    foreseen = "".join(f", {what} about {max(mib, 1):,.0f} MiB" for what, mib in (needs or {}).items() if mib)
    say(f"{kind}: {'would build' if settings.plan else 'building'} {address.folder}{foreseen}")
    _check_room(settings, needs or {})
    if settings.plan:
        return address
    start = time.monotonic()
    with draft(address) as folder:
        if _there(address):  # another job was faster between the first look and the lock
            folder.rmdir()
            return address
        if ray:
            start_ray(settings.cluster)
        counts = make(settings, inputs, folder)
        seconds = time.monotonic() - start
        add_timings(folder, [("", kind, seconds)])
        finish(address, counts)
    plain = [f"{name} {_short(value)}" for name, value in counts.items() if not isinstance(value, Mapping)]
    say(f"{kind}: done in {duration(seconds)}  " + "  ".join(plain))
    return address


def _there(address: Address) -> bool:
    if address.built:
        open_manifest(address.folder, address.recipe.kind)
        say(f"{address.recipe.kind}: {address.name} is already built")
    return address.built


def count_of(settings: schema.Settings, kind: str, name: str) -> int:
    """A count of an artifact that is built; 0 while it is not: what is foreseen from it is foreseen when it can be."""
    address = Addresses(settings)[kind]
    return int(counts(address)[name]) if address.built else 0


def counts(address: Address) -> dict[str, Any]:
    """What a finished artifact's manifest counts."""
    return dict(open_manifest(address.folder, address.recipe.kind)["counts"])


def seconds(address: Address) -> float:
    """How long the artifact took to build, as its timings say."""
    return float(sum(line["seconds"] for line in open_timings(address.folder) if not line["query_id"]))


def _short(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _check_room(settings: schema.Settings, needs: Mapping[str, float]) -> None:
    root = Path(settings.artifacts.root)
    root.mkdir(parents=True, exist_ok=True)
    free = {"disk": shutil.disk_usage(root).free / 2**20}
    if settings.cluster.address == "local":  # elsewhere the work is not done on this machine
        free["memory"] = available_memory_mb()
    for what, needed in needs.items():
        if needed > free.get(what, math.inf):
            where = f" below {root}" if what == "disk" else ""
            raise BadConfig(
                f"free {what}",
                f"{free[what]:,.0f} MiB",
                f"{needed:,.0f} MiB{where}",
                "Free some, or use another machine or artifacts.root.",
            )


def available_memory_mb() -> float:
    """Memory that new processes may use, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20


def start_ray(cluster: schema.Cluster) -> None:
    """Join or start Ray, once per job."""
    import ray

    if ray.is_initialized():
        return
    if "://" in cluster.address:
        raise BadConfig(
            "cluster.address", cluster.address, "local, auto or host:port", "A job server's URL is for cluster/submit.sh."
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"address": cluster.address, "logging_level": "ERROR", "log_to_driver": True}
    if cluster.address == "local":
        # Ray listens on every interface and asks for a token: this one only the job's own processes know
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        options |= {"include_dashboard": False, "num_cpus": cluster.num_cpus or None}
        options |= {"object_store_memory": cluster.object_store_mb * 2**20} if cluster.object_store_mb else {}
    elif not submitted():
        options["runtime_env"] = code()  # else Serve's replicas run the code of the job that was the first to use Serve
    ray.init(**options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray's handler aborts after 3 s, with deployments left behind
    from ray.data import DataContext

    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if cluster.address != "local":
        _sweep()


def _sweep() -> None:
    """Remove deployments whose driver is dead: killed, it could not remove them itself, and they hold CPUs and GPUs."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    apps = [name for name in serve.status().applications if name.startswith(f"{APP}-")]
    if apps:
        from ray.util.state import list_jobs

        alive = {job.job_id for job in list_jobs(limit=10_000) if job.status in ("RUNNING", "PENDING")}
        for name in apps:
            if name.split("-")[1] not in alive:
                say(f"removing {name}: its job is dead")
                with contextlib.suppress(KeyError):  # another job that starts now may be faster
                    serve.delete(name)


def stop_ray() -> None:
    """End this job's session with all its actors."""
    if "ray" in sys.modules:
        import ray

        ray.shutdown()


def check_cpus(cluster: schema.Cluster, what: Mapping[str, float]) -> None:
    """Refuse a start that would wait for ever: the sum of what runs at once must fit the cluster. Called after `start_ray`."""
    import ray

    there = ray.cluster_resources().get("CPU", 0.0)
    if sum(what.values()) > there:
        parts = " + ".join(f"{name} {cpus:g}" for name, cpus in what.items())
        raise BadConfig(
            "cluster",
            f"{parts} CPUs",
            f"at most the {there:g} CPUs of the cluster",
            "Lower num_cpus or the number of actors in cluster.",
        )
