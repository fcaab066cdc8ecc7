"""What cluster/submit.sh runs: submit one job, follow its log, stop it on Ctrl-C, take over its exit status."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import sys
import time

from ray.job_submission import JobStatus, JobSubmissionClient

from jobs.ray_session import code

PASSED_ON = ("GAREN_HOME", "GAREN_COLLECTIONS", "GAREN_TRACEBACK")
STOPPING = {"RAY_JOB_STOP_WAIT_TIME_S": "60"}  # Ray's own 3 seconds do not suffice to remove deployments


def submit(client: JobSubmissionClient, command: list[str]) -> str:
    """Upload the code and start the job there. Returns its submission id."""
    env_vars = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)} | STOPPING
    runtime_env = code() | {"env_vars": env_vars}
    return client.submit_job(entrypoint=shlex.join(["python", "-m", *command]), runtime_env=runtime_env)


async def follow(client: JobSubmissionClient, job: str) -> None:
    """Print the log until the job has ended. The first Ctrl-C stops the job, the second one only this."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        print(f"garen: stopping {job}", file=sys.stderr, flush=True)
        client.stop_job(job)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    async for lines in client.tail_job_logs(job):
        print(lines, end="", flush=True)


def exit_status(client: JobSubmissionClient, job: str) -> int:
    """The driver's own exit status; 130 for a job that was stopped."""
    while not (info := client.get_job_info(job)).status.is_terminal():
        time.sleep(0.5)
    if info.status == JobStatus.SUCCEEDED:
        return 0
    if info.status == JobStatus.STOPPED:
        return 130
    code = info.driver_exit_code
    if code is None:  # it never came to run
        print(f"garen: {info.message}", file=sys.stderr)
        return 1
    return 128 - code if code < 0 else code


def main() -> None:
    logging.disable(logging.WARNING)  # the job's own words are enough
    client = JobSubmissionClient(os.environ["RAY_API_SERVER_ADDRESS"])
    job = submit(client, sys.argv[1:])
    print(f"garen: {job} runs on {client.get_address()}", file=sys.stderr, flush=True)
    asyncio.run(follow(client, job))
    sys.exit(exit_status(client, job))


if __name__ == "__main__":
    main()
