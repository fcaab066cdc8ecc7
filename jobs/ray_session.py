"""The Ray session of a job: how it starts or joins one, checks that its work fits, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conf import schema
from conf.load import BadConfig
from jobs.console import interrupt, say

APP = "garen"  # Serve applications are <APP>-<job id>-<role>
CODE = ("conf", "jobs", "actors")


def submitted() -> bool:
    """Whether this job was submitted to a Ray cluster: then it runs in a temporary copy of the code."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def code() -> dict[str, Any]:
    """The runtime environment that gives every process of a job this code, as it is now."""
    root = Path(__file__).resolve().parents[1]
    others = [f"/{path.name}" for path in root.iterdir() if path.name not in CODE]  # Ray cannot be told "all but these"
    return {"working_dir": str(root), "excludes": [*others, "__pycache__"]}


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
    signal.signal(signal.SIGTERM, interrupt)  # Ray's handler aborts after 3 s, with deployments left behind
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
