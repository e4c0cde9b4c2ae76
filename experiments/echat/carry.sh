#!/usr/bin/env bash
# What experiments/echat/gpu.sh needs on a machine that has torch and transformers but where nothing can be installed, as files of
# at most 50 MB that can be sent one by one:
#
#   experiments/echat/carry.sh SET OUT [REAL [PEOPLE [OPEN]]]    # e.g. experiments/echat/carry.sh out/echat carry out/real out/people out/open
#
# SET was built with --pack SET/pack; REAL is what experiments/echat/real_pack.py wrote, to be tested on; PEOPLE what `overtone build
# echat-real --pack-only` wrote, to be learnt from in an experiment; OPEN what `overtone build open --per-cue 2` wrote, to
# answer several times. PYTHON (python3) has Overtone, its local models and safetensors, THERE (3.12) is the version of Python
# on the other machine.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
set_=$1 out=$2 real=${3:-} people=${4:-} open=${5:-} python=${PYTHON:-python3} there=${THERE:-3.12}

mkdir -p "$out"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version "$there" \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 --dest "$out" \
    msgspec soundfile cffi pycparser gguf rapidfuzz pyworld-prebuilt soxr jinja2 markupsafe rich markdown-it-py mdurl pygments \
    aiohttp aiohappyeyeballs aiosignal attrs frozenlist idna multidict propcache yarl
"$python" -m scripts.moonshine_encoder "$out/moonshine.safetensors"
"$python" - "$out/papers.zip" <<'PY'
# Of the package whose encoder goes along, what says whose it is: a release needs its licence. A run notes our own version.
import importlib.metadata
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w") as papers:
    for name in ("moonshine-voice", "overtone"):
        for file in importlib.metadata.files(name) or ():
            if ".dist-info/" in str(file):
                papers.write(file.locate(), str(file))
PY
split --bytes 50MB --numeric-suffixes \
    "$("$python" -c 'from overtone.echat.net.tokenizer import gguf_file; print(gguf_file(""))')" "$out/smollm2.gguf."
"$python" -m experiments.echat.small_pack pack "$set_"/pack/* "$out"
cp "$set_/plain.jsonl" "$set_/manifest.json" "$out"
[ -z "$real" ] || cp "$real"/*.tar.xz "$out"
[ -z "$people" ] || "$python" -m experiments.echat.small_pack pack "$people"/pack/* "$out/people"
[ -z "$open" ] || tar -cf - --exclude ./audio_response -C "$open" . | xz -3 -T0 | split --bytes 50MB --numeric-suffixes - "$out/open."
find "$out" -type f -printf '%s\n' | awk '{ n += $1; if ($1 > most) most = $1 } END { printf "%d files, %.0f MB, the largest %.0f MB\n", NR, n / 1e6, most / 1e6 }'
