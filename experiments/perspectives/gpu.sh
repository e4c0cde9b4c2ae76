#!/usr/bin/env bash
# The study on a GPU machine that has torch and numpy, where nothing can be installed:
#
#   experiments/perspectives/gpu.sh VERB…
#
#   pack     here: cut DATA (what prepare.py wrote) into CARRIED/1, 2 … (PIECES of them), which travel one by one
#   keep     there: put what has travelled into WORK
#   bench    there: measure the fastest way to train, with random weights
#   run      there: run jobs for MINUTES and bring all results back to OUT
#   control  there: run the positive control of Overtone-Open, before `run` in the same call
#   bundle   there: only bring the results back
#   unpack   here: pack the results of FROM into RESULTS, which travel with the repository, and analyse them
#
# PIECES (3, of 33 MB), CARRIED (carry), DATA (out/study), RESULTS (experiments/perspectives/results), WORK (/tmp/perspectives), OUT (WORK/back),
# MINUTES (9), PARTS (processes: 4 under CUDA's MPS where it exists, else as measured), COMPILED (as measured), FLAGS
# (more of run.py), PYTHON (python3; `unpack` needs Overtone's own).
set -euo pipefail
carried=${CARRIED:-carry} data=${DATA:-out/study} work=${WORK:-/tmp/perspectives}
pieces=${PIECES:-3} results=${RESULTS:-experiments/perspectives/results}
python=${PYTHON:-python3} back=${OUT:-$work/back} minutes=${MINUTES:-9}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}" PYTHONPATH="$PWD:$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}"
begun=$SECONDS
say() { echo "[$(date +%T)] $*"; }

pack() {
    local i
    rm -rf "$carried"/[1-9] && mkdir -p "$carried"
    split --number "$pieces" --numeric-suffixes=1 --suffix-length 1 "$data/weights.npz" "$carried/weights."
    for i in $(seq "$pieces"); do mkdir "$carried/$i" && mv "$carried/weights.$i" "$carried/$i/"; done
    cp "$data/data.json.gz" "$carried/$pieces/"
    sha256sum "$data/weights.npz" | cut -d ' ' -f 1 > "$carried/$pieces/weights.sha256"
    du -sb "$carried"/*
}

keep() {
    mkdir -p "$work/data" "$work/jobs"
    local folder
    for folder in "$carried"/[1-9]; do [ ! -d "$folder" ] || cp "$folder"/* "$work/data/"; done
    ls -l "$work/data"
    [ -e "$work/data/weights.sha256" ] || return 0  # it travels with the last piece
    [ -e "$work/data/weights.npz" ] || cat "$work/data"/weights.[1-9] > "$work/data/weights.npz"
    echo "$(cat "$work/data/weights.sha256")  $work/data/weights.npz" | sha256sum --check --quiet
}

bench() {
    mkdir -p "$work"
    "$python" -m experiments.perspectives.bench --out "$work/speed.json" ${FLAGS:-} 2>&1 | tee "$back/bench.log"
}

mps() {  # lets kernels of several processes run at the same time
    command -v nvidia-cuda-mps-control > /dev/null || { say "no MPS here"; return 1; }
    echo get_server_list | nvidia-cuda-mps-control > /dev/null 2>&1 || nvidia-cuda-mps-control -d ||
        { say "MPS did not start"; return 1; }
    say "MPS is running"
}

run() {
    local parts=${PARTS:-} compiled=${COMPILED:-} i pids=()
    ! mps || parts=${parts:-4}
    [ ! -e "$work/speed.json" ] || {
        parts=${parts:-$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["parts"])' "$work/speed.json")}
        compiled=${compiled:-$("$python" -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["compiled"]))' "$work/speed.json")}
    }
    parts=${parts:-1}
    local flags=(--data "$work/data" --out "$work/jobs" --state "$work/state" ${FLAGS:-})
    [ "${compiled:-0}" != 1 ] || flags+=(--compiled)
    minutes=$("$python" -c "print($minutes - $((SECONDS - begun)) / 60)")  # what came before in this call counts
    for i in $(seq "$parts"); do
        "$python" -m experiments.perspectives.run "${flags[@]}" --part "$i/$parts" --minutes "$minutes" \
            >> "$work/run.$i.log" 2>&1 &
        pids+=($!)
    done
    local code=0
    for i in "${pids[@]}"; do wait "$i" || code=$?; done
    tail -n 30 "$work"/run.*.log
    bundle
    return $code
}

control() {
    local i pids=()
    mps || true
    for i in 1 2 3 4; do
        "$python" -m experiments.perspectives.control --data "$work/data" --out "$work/jobs" --part "$i/4" \
            >> "$work/run.control.$i.log" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
}

bundle() {
    mkdir -p "$back"
    cat "$work"/run.*.log > "$back/run.log" 2>/dev/null || true
    tar -cf "$work/results.tar" -C "$work" --exclude '*.part' jobs
    split --bytes 15MB --numeric-suffixes "$work/results.tar" "$back/results.tar."
    say "$(find "$work/jobs" -name '*.npz' | wc -l) jobs, $(stat -c %s "$work/results.tar") bytes"
}

unpack() {
    rm -rf "$work/unpacked" && mkdir -p "$work/unpacked"
    cat "${FROM:?FROM is the folder with results.tar.00 …}"/results.tar.* | tar -xf - -C "$work/unpacked"
    "$python" -m experiments.perspectives.store --data "$data" --add "$work/unpacked/jobs" --results "$results"
    "$python" -m overtone study report "$results" --key "$data/key.npz" -o "$work/page.html"
}

[ $# -gt 0 ] || set -- help
mkdir -p "$work" "$back"
for verb in "$@"; do
    case $verb in
        pack | keep | bench | control | run | bundle | unpack) ;;
        *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
    esac
    say "$verb"
    "$verb"
done
