#!/usr/bin/env bash
# What experiments/echat/gpu.sh needs on a machine that has torch and transformers but where nothing can be installed, as files
# that can be sent one by one:
#
#   experiments/echat/carry.sh SET OUT [REAL [CORPORA [OPEN]]]    # e.g. experiments/echat/carry.sh out/echat carry out/real "" out/open
#
# SET was built with --pack SET/pack; REAL is what experiments/echat/real_pack.py wrote, to be tested on; CORPORA what
# experiments/people/carried.py wrote, to be learnt from in an experiment; OPEN what `overtone build open --per-cue 2` wrote, to
# answer several times. PYTHON (python3) has Overtone, its local models and safetensors, THERE (3.12) is the version of Python
# on the other machine.
#
# BASE is the folder with the encoder_model.onnx of Moonshine base, for the preset `people`; without it, tiny goes along. With SPEAK=there, only the texts of SET travel (a build may
# be stopped when it has begun to speak), its clips are spoken there, and SET/pack needs no part but `engine`, whose voice is
# not there. LARGEST (50) is the size of a file in MB. With BOX (MB), the files are put into OUT/1, OUT/2 … of that size each.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
set_=$1 out=$2 real=${3:-} corpora=${4:-} open=${5:-} python=${PYTHON:-python3} there=${THERE:-3.12}
box=${BOX:-} largest=${LARGEST:-${BOX:-50}}

mkdir -p "$out"
wheels=(msgspec espeakng-loader==0.2.4 soundfile cffi pycparser gguf rapidfuzz pyworld-prebuilt soxr jinja2 markupsafe rich markdown-it-py mdurl pygments
    aiohttp aiohappyeyeballs aiosignal attrs frozenlist idna multidict propcache yarl)
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version "$there" \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 --dest "$out" "${wheels[@]}"
if [ -n "${BASE:-}" ]; then
    cp "$BASE/encoder_model.onnx" "$out"
else
    "$python" -m scripts.moonshine_encoder "$out/moonshine.safetensors"
fi
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
split --bytes "${largest}MB" --numeric-suffixes \
    "$("$python" -c 'from overtone.echat.net.tokenizer import gguf_file; print(gguf_file(""))')" "$out/smollm2.gguf."
if [ "${SPEAK:-}" = there ]; then
    texts=(exchanges.jsonl plain.jsonl)
    for file in verdicts.jsonl replies.jsonl; do [ ! -e "$set_/$file" ] || texts+=("$file"); done
    tar -cJf "$out/begun.txz" -C "$set_" "${texts[@]}"
    [ ! -d "$set_/pack/engine" ] || "$python" -m experiments.echat.small_pack pack "$set_/pack/engine" "$out" --slice-mb "$largest"
else
    "$python" -m experiments.echat.small_pack pack "$set_"/pack/* "$out" --slice-mb "$largest"
fi
cp "$set_/plain.jsonl" "$out"
[ ! -e "$set_/manifest.json" ] || cp "$set_/manifest.json" "$out"
[ -z "$real" ] || cp "$real"/*.tar.xz "$out"
[ -z "$corpora" ] || tar -cf - -C "$corpora" . | split --bytes "${largest}MB" --numeric-suffixes - "$out/corpora."
[ -z "$open" ] || tar -cf - --exclude ./audio_response -C "$open" . | xz -3 -T0 | split --bytes "${largest}MB" --numeric-suffixes - "$out/open."
[ -z "$box" ] || "$python" - "$out" "$box" <<'PY'
# Sort the files into boxes, the largest first, each into the first box with room.
import sys
from pathlib import Path

out, room = Path(sys.argv[1]), int(float(sys.argv[2]) * 1e6)
boxes: list[int] = []
for file in sorted((f for f in out.iterdir() if f.is_file()), key=lambda f: (-f.stat().st_size, f.name)):
    size = file.stat().st_size
    at = next((i for i, used in enumerate(boxes) if used + size <= room), len(boxes))
    if at == len(boxes):
        boxes.append(0)
    boxes[at] += size
    (out / str(at + 1)).mkdir(exist_ok=True)
    file.replace(out / str(at + 1) / file.name)
print(*(f"{out / str(i)}: {used / 1e6:.0f} MB" for i, used in enumerate(boxes, 1)), sep="\n")
PY
find "$out" -type f -printf '%s\n' | awk '{ n += $1; if ($1 > most) most = $1 } END { printf "%d files, %.0f MB, the largest %.0f MB\n", NR, n / 1e6, most / 1e6 }'
