#!/usr/bin/env bash
# The whole recipe on one GPU, in slices: experiments/echat/gpu.sh VERB…, in this repository, on a machine with torch, transformers and
# the files of experiments/echat/carry.sh. A verb may be given again: what is done is not done twice.
#
#   join      the files as they were before: wheels, weights, packs
#   share     let processes compute on the GPU at the same time, where NVIDIA's MPS is there
#   train     `mini`, for MINUTES at most
#   ask       what it hears and answers, on every test
#   release   the archive to give away
#   weights   the weights in half precision, in pieces of 15 MB
#   ablate    runs of the ablation, PARALLEL at once, begun while MINUTES are left
#   voice     texts spoken, to be listened to (experiments/echat/voice_errors.py)
#   bench     first sound and real-time factor; nothing should run beside it
#   people    an experiment: a short run on our set and people's recordings (CARRIED/people), asked of those it has not heard
#   draw      four replies of it to each clip of the open benchmark, to choose pairs from
#   prefer    learn from the pairs in CARRIED/pairs, and ask again
#
# CARRIED (carry) has the files, WORK (/tmp/overtone; without spaces) all that is made, and OUT (WORK/back) what is to be
# brought back. MINUTES (8.5), PARALLEL (2), SEEDS (0,1,2), ARMS (all of them), DRAWS (1 2 3 4), PRESET (mini), SHORT (short),
# FLAGS (more of `overtone train`).
set -euo pipefail
carried=${CARRIED:-carry} work=${WORK:-/tmp/overtone} python=${PYTHON:-python3}
back=${OUT:-$work/back} minutes=${MINUTES:-8.5}
mkdir -p "$work" "$back" "$work/said"
export PYTHONPATH="$PWD/src:$PWD:$work/wheels${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
[ ! -e "$work/mps/on" ] || export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
own=(--encoder "$work/moonshine.safetensors" --lm "$work/smollm2.gguf")

packs() { # FLAG NAME…: the flag and the folder of those that are there
    for name in "${@:2}"; do [ ! -d "$work/pack/$name" ] || echo "$1" "$work/pack/$name"; done
}
learnt() { packs --data train style words aloud dev && echo --data "$work/plain.jsonl"; }
made() { packs "$1" seen recipe engine echat-eval; }
tests() { made "$1" && packs "$1" ravdess nonverbal speechocean; }
overtone() { "$python" -m overtone "$@"; }
say() { echo "[$(date +%T)] $*"; }

join() {
    for wheel in "$carried"/*.whl "$carried/papers.zip"; do "$python" -m zipfile -e "$wheel" "$work/wheels"; done
    cat "$carried"/smollm2.gguf.* > "$work/smollm2.gguf"
    cp "$carried/moonshine.safetensors" "$carried/plain.jsonl" "$carried/manifest.json" "$work"
    [ -e "$work/pack/train/records.jsonl" ] || "$python" -m experiments.echat.small_pack unpack "$carried" "$work/pack"
    [ ! -d "$carried/people" ] || [ -e "$work/people/train/records.jsonl" ] ||
        "$python" -m experiments.echat.small_pack unpack "$carried/people" "$work/people"
    [ ! -e "$carried/open.00" ] || { mkdir -p "$work/pack/open" && cat "$carried"/open.* | tar -xJf - -C "$work/pack/open"; }
    for tar in "$carried"/*.tar.xz; do [ ! -e "$tar" ] || "$python" -m tarfile -e "$tar" "$work/pack"; done
}

share() {
    command -v nvidia-cuda-mps-control >/dev/null || { say "no MPS here"; return; }
    mkdir -p "$work/mps"
    export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
    nvidia-cuda-mps-control -d || { say "MPS does not start"; return; }
    if timeout 60 "$python" -c 'import torch; assert torch.ones(9, device="cuda").sum() == 9'; then
        touch "$work/mps/on" && say "MPS is on"
    else
        echo quit | timeout 10 nvidia-cuda-mps-control || true
        say "MPS does not answer"
    fi
}

train() {
    local code=0
    overtone train echat --preset "${PRESET:-mini}" $(learnt) "${own[@]}" --out "$work/mini" --resume \
        --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$work/mini.log" || code=$?
    cp "$work/mini.log" "$work/mini/report.html" "$back" 2>/dev/null || true
    return $code
}

ask() {
    [ -e "$work/said/whole-0.jsonl.gz" ] ||
        overtone evaluate echat "$work/mini" $(tests --data) --arm whole --out "$work/said/whole-0.jsonl.gz"
    cp "$work/said/whole-0.jsonl.gz" "$back"
}

release() {
    [ -e "$work/release.tar" ] ||
        "$python" -m scripts.release_echat "$work/mini" "$work/release" --trained-on "$work/manifest.json" |
            tee "$work/release.log"
    cp "$work/release.log" "$back"
    split --bytes 15MB --numeric-suffixes "$work/release.tar" "$back/release.tar."
}

weights() {
    [ -e "$work/weights.tar" ] || "$python" - "$work/mini" "$work/weights" <<'PY'
import sys
from pathlib import Path

import torch

from overtone.echat.net import checkpoint
from overtone.models.echat import checkpoint_folder

folder = checkpoint_folder(Path(sys.argv[1]))
model, config = checkpoint.load(folder)
checkpoint.save(model, Path(sys.argv[2]), config, dtype=torch.bfloat16, notes=checkpoint.index(folder).notes)
PY
    tar -cf "$work/weights.tar" -C "$work" weights
    split --bytes 15MB --numeric-suffixes "$work/weights.tar" "$back/weights.tar."
}

ablate() {
    mkdir -p "$work/ablation"
    cp -n "$carried"/*-[0-9].jsonl.gz "$work/ablation" 2>/dev/null || true  # what was done on another day
    "$python" -m experiments.echat.ablation $(learnt) $(tests --test) --out "$work/ablation" \
        --preset "${SHORT:-short}" ${ARMS:+--arms "$ARMS"} --parallel "${PARALLEL:-2}" --seeds "${SEEDS:-0,1,2}" --minutes "$minutes" \
        --bundle "$back/ablation.tar" --train "${own[*]} ${FLAGS:-}"
}

voice() {
    "$python" -m experiments.echat.voice_errors ask "$work/mini" "$work/pack/seen" --out "$back/voice.jsonl" ${VOICE:-}
}

bench() {
    "$python" -m bench.echat "$work/mini/stage-3/model" --replies 5 ${BENCH:-} | tee "$back/bench.log"
}

people() {
    overtone train echat --preset "${SHORT:-short}" $(learnt) --data "$work/people/train" --data "$work/people/dev" \
        "${own[@]}" --out "$work/with-people" --resume --samples 0 --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$work/people.log"
    # on our tests and on people whom it has not heard; and what the whole recipe, which has heard none, makes of the same
    for one in with-people mini; do
        overtone evaluate echat "$work/$one" $(made --data) --data "$work/people/test" --arm "$one" --spoken 0 \
            --out "$work/said/$one-people-0.jsonl.gz"
    done
    cp "$work/people.log" "$work/said"/*-people-0.jsonl.gz "$back"
}

draw() { # one run a draw, all at once: most of the time goes into what a GPU has no part in
    local one of=()
    for one in ${DRAWS:-1 2 3 4}; do
        overtone run open --data "$work/pack/open" --levels 3 --parts core --out "$work/drawn/$one" --seed "$one" --quiet \
            --model "echat:$work/mini?temperature=0.8&tell=tokens&batch=${BATCH:-64}" --max-connections "${BATCH:-64}" ${DRAW:-} &
        of+=($!)
    done
    for one in "${of[@]}"; do wait "$one"; done
    tar -cJf "$work/drawn.tar.xz" --exclude 'drawn/*/audio' -C "$work" drawn
    mv "$work/drawn.tar.xz" "$back"
}

prefer() {
    overtone train echat --preset "${PRESET:-mini}" --stage prefer --from "$work/mini" --data "$carried/pairs" \
        "${own[@]}" --out "$work/preferred" --resume --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$work/prefer.log"
    overtone evaluate echat "$work/preferred" $(tests --data) --arm preferred --out "$work/said/preferred-0.jsonl.gz"
    cp "$work/prefer.log" "$work/preferred/stage-prefer/margins.jsonl" "$work/said/preferred-0.jsonl.gz" "$back"
}

[ $# -gt 0 ] || set -- help
for verb in "$@"; do
    case $verb in
        join | share | train | ask | release | weights | ablate | voice | bench | people | draw | prefer) ;;
        *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
    esac
    say "$verb"
    "$verb" # not in a condition: there a command that fails would not stop it
    say "$verb: done"
done
