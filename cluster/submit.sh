#!/usr/bin/env bash
# Runs a job on a Ray cluster, shows its log, and ends with its exit status.
#
#   cluster/submit.sh jobs.run_queries corpus=scifact loop=garen
#
# Where: RAY_API_SERVER_ADDRESS (http://<head>:8265; with RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH), else
# the head of cluster/local.sh. GAREN_HOME and GAREN_COLLECTIONS go with the job: paths that every node sees.
# The job runs in a copy of conf/, jobs/ and actors/: give input files by absolute paths.
# Ctrl-C ends the job; it goes on from there when submitted again. A closed terminal does not end it.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ ${1:-} == jobs.* ]] || { echo "garen: expected a job such as jobs.run_queries, found '${1:-}'" >&2; exit 2; }

if [[ -z ${RAY_API_SERVER_ADDRESS:-} ]]; then
  settings=$("$repo/cluster/local.sh" env)
  eval "$settings"
fi
exec "$repo/.venv/bin/python" "$repo/cluster/submit.py" "$@"
