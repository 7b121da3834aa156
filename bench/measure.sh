#!/usr/bin/env bash
# Everything that docs/performance.md holds, measured on the GPU of this machine: verification, tuning of the grid, the table beside
# FlashAttention-2, the table against naive attention, host times. Needs a build (the portable preset by default) and PyTorch.
#   bench/measure.sh [-o FOLDER] [-b BUILD] [PART ...]     parts: verify bits sanitize tune side naive host; default: all
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT:-$root/build/measure}
build=$root/build/portable
while getopts o:b: option; do
    case $option in
    o) out=$OPTARG ;;
    b) build=$OPTARG ;;
    *) exit 1 ;;
    esac
done
shift $((OPTIND - 1))
parts=${*:-verify bits sanitize tune side naive host}
fagen=$build/bin/fagen
mkdir -p "$out"
export FAGEN_CACHE_DIR=${FAGEN_CACHE_DIR:-$out/cache} FAGEN_LIBRARY=$build/lib/libfagen.so
lengths="512 1024 2048 4096 8192 16384"
dims="64 96 128 192 256"

has() { [[ " $parts " == *" $1 "* ]]; }
section() { printf '\n## %s (%s)\n' "$1" "$(date -u +%H:%M:%S)"; }
limited() { timeout "$1" "${@:2}"; local s=$?; ((s == 0)) || echo "exit $s: ${*:2:6}"; }

nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader
"$fagen" doctor

if has verify; then
    section "verify: 400 random problems"
    limited 240 "$fagen" verify --seed 0 --count 400 --device cuda:0
fi
if has bits; then
    section "bits: the GPU against the simulator"
    limited 240 "$fagen" twin --count "${BITS_COUNT:-60}" --device cuda:0
fi
if has sanitize; then
    for tool in memcheck racecheck; do
        section "compute-sanitizer $tool: 20 problems"
        limited 240 compute-sanitizer --tool "$tool" --error-exitcode 9 "$fagen" verify --seed 0 --count 20 --device cuda:0 | tail -n 5
    done
fi
if has tune; then
    section "tune: the grid"
    for s in $lengths; do
        for d in $dims; do
            limited 120 "$fagen" tune -d "$d" -n "$s" --heads $((2048 / d)) --batch $((16384 / s)) --dtype bf16 --mask none,causal \
                --limit "${TUNE_LIMIT:-96}" --threads "$(nproc)" --budget "${TUNE_BUDGET:-20s}" --device cuda:0 --quiet
        done
    done
fi
if has side; then
    section "beside FlashAttention-2"
    (cd "$root/bench" && limited 300 python3 side_by_side.py --json "$out/side_by_side.json") | tee "$out/side_by_side.md"
fi
if has naive; then
    section "against naive attention"
    limited 120 "$fagen" bench -d 64,128 -n 512,1024,2048,4096,8192,16384 --heads 8 --mask none --device cuda:0 | tee "$out/naive.txt"
fi
if has host; then
    section "host times"
    limited 120 "$fagen" bench --host --device cuda:0 | tee "$out/host.txt"
fi
