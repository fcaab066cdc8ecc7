#!/usr/bin/env bash
# One Ray head on this machine, for development.
#
#   cluster/local.sh start      start it (GAREN_CPUS=8 for another number of logical CPUs than the machine's)
#   cluster/local.sh status     say whether it runs; exit status 1 when it does not
#   cluster/local.sh stop       end it and everything that runs on it
#   eval "$(cluster/local.sh env)"    let this shell's own `python -m jobs...` join it
#
# GAREN_RAY_PORT (26379) is the head's port, the next one the dashboard's and job server's, the one after that the Ray
# client's; ports 10002-19999 are Ray's own. Several heads on different ports do not disturb each other: only what `start`
# has recorded is ended, never every Ray of the machine, as `ray stop` would do.
#
# The dashboard listens on 127.0.0.1, but Ray's control service listens on every interface whatever one asks for, and who
# reaches it may run code. So the head asks for a token, made at start and readable by its owner only.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$repo/.venv/bin
port=${GAREN_RAY_PORT:-26379}
state=${XDG_RUNTIME_DIR:-/tmp}/garen-$(id -u)
record=$state/head-$port          # process id, which is also the id of its session, and when it started
token=$state/token-$port
temp=/tmp/garen-$(id -u)/ray-$port # short: socket paths below it may have 107 bytes; on disk: objects are spilled to it

die() { echo "garen: $*" >&2; exit 2; }

own_folder() {
  mkdir -p -m 700 "$1"
  [[ -O $1 && ! -L $1 ]] || die "$1 belongs to somebody else. Remove it, or set XDG_RUNTIME_DIR to a folder of your own."
}

started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # in clock ticks since the machine's start

running() { # a process id may be given to another process: it is ours only if it started when ours did
  [[ -f $record ]] && { read -r pid; read -r since; } <"$record" && [[ -n $since && $(started_at "$pid") == "$since" ]]
}

members() { ps -eo sid=,pid= | awk -v session="$pid" '$1 == session { print $2 }'; }

answers() {
  "$bin/python" - "$1" "$token" <<'PY' 2>/dev/null
import pathlib, sys, urllib.request
token = pathlib.Path(sys.argv[2]).read_text()
asked = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/api/jobs/", headers={"Authorization": f"Bearer {token}"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=5).read()
PY
}

environment() {
  echo "export RAY_ADDRESS=127.0.0.1:$port RAY_API_SERVER_ADDRESS=http://127.0.0.1:$((port + 1))"
  echo "export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH='$token'"
}

start() {
  [[ -x $bin/ray ]] || die "$bin/ray is missing. Run make quickstart or make test first: they install it."
  own_folder "$state"
  own_folder "$(dirname "$temp")"
  if running; then
    echo "already running: process $pid, port $port"
    return
  fi
  for taken in "$port" $((port + 1)) $((port + 2)); do
    (: <"/dev/tcp/127.0.0.1/$taken") 2>/dev/null && die "port $taken is in use. Set GAREN_RAY_PORT to another, outside 10002-19999."
  done
  rm -rf "$temp"
  (umask 077 && "$bin/python" -c 'import secrets; print(secrets.token_hex(32), end="")' >"$token")
  PATH=$bin:$PATH RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token RAY_USAGE_STATS_ENABLED=0 \
    "$bin/python" -c 'import os, sys; os.setsid(); os.execv(sys.argv[1], sys.argv[1:])' \
    "$bin/ray" start --head --block --port="$port" --include-dashboard=true --dashboard-host=127.0.0.1 \
    --dashboard-port=$((port + 1)) --ray-client-server-port=$((port + 2)) --dashboard-agent-listen-port=0 \
    --min-worker-port=0 --max-worker-port=0 --temp-dir="$temp" ${GAREN_CPUS:+--num-cpus="$GAREN_CPUS"} \
    </dev/null >"$state/head-$port.log" 2>&1 &
  pid=$!
  printf '%s\n' "$pid" "$(started_at "$pid")" >"$record"
  for _ in $(seq 180); do
    running || { rm -f "$record"; tail -n 20 "$state/head-$port.log" >&2; die "Ray did not start. Its log: $state/head-$port.log"; }
    if answers $((port + 1)); then
      echo "Ray runs: process $pid, port $port, dashboard http://127.0.0.1:$((port + 1)), log $state/head-$port.log"
      echo "Submit a job: cluster/submit.sh jobs.quickstart"
      return
    fi
    sleep 0.5
  done
  stop
  die "Ray did not answer within three minutes. Its log: $state/head-$port.log"
}

stop() {
  if ! running; then
    echo "not running on port $port"
    rm -f "$record" "$token"
    return
  fi
  kill -TERM "$pid"
  for _ in $(seq 80); do
    [[ -z $(members) ]] && break
    sleep 0.5
  done
  for left in $(members); do kill -KILL "$left" 2>/dev/null || true; done
  rm -f "$record" "$token"
  echo "stopped: process $pid, port $port"
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  status)
    running || { echo "not running on port $port"; exit 1; }
    echo "running: process $pid, port $port, dashboard http://127.0.0.1:$((port + 1))"
    ;;
  env)
    running || die "no head runs on port $port. Start one: cluster/local.sh start"
    environment
    ;;
  *) die "expected start, stop, status or env, found '${1:-}'" ;;
esac
