#!/usr/bin/env bash
# Everything that docs/performance.md holds, measured on the GPU of this machine. Needs a build (the portable preset by default) and
# PyTorch; peers that are not there are named and left out. Every part has a time limit, and says so when it reached it.
#   bench/measure.sh [-o FOLDER] [-b BUILD] [PART ...]
# parts:
#   verify bits sanitize   random problems against the oracle; against the simulator, bit for bit; under compute-sanitizer
#   repeat                 REPEATS (200) launches of REPEAT_KERNELS (20) random kernels give the same bits; REPEAT_FAMILY
#   race                   configs of RACE_GRIDS (main) raced in one process: the RACE_TOP (48) that the model ranks first of RACE_FAMILY,
#                          and those of the file RACE_CONFIGS, and what is chosen with all values of RACE_VARY; leaves rows for
#                          runtime/choose/defaults.inc
#   tune hopper            fagen tune over TUNE_GRIDS (main) without the cells that TUNE_SKIP (a regular expression) finds, TUNE_LIMIT (96)
#                          candidates, TUNE_BUDGET (20s) per cell, TUNE_SECONDS (540) in all, TUNE_FAMILY; hopper: the family flash_fwd_wgmma;
#                          the GPUs of the machine share the cells
#   steps                  fagen tune over STEPS_GRID (llm-mixed), STEPS_SECONDS (240) for each of STEPS_FAMILIES (flash_fwd_wgmma
#                          mixed_wgmma), of which the model would rank one whole before the other; then half that time for the winners
#                          of all to meet; leaves rows for runtime/choose/defaults.inc
#   side fp16 odd window gqa quick   the grids of side_by_side.py beside their peers, SIDE_SECONDS (240) each
#   decode                 a few query rows against long caches beside the peers: DECODE_SECTIONS (all) of decode.py, DECODE_SECONDS (400);
#                          DECODE_ONLY (a regular expression of cases), DECODE_CONFIG (one beside what is chosen)
#   prompts                prompts, chunks and mixed batches beside the peers: PROMPTS_SECTIONS (all) of prompts.py, PROMPTS_SECONDS (450);
#                          PROMPTS_ONLY, PROMPTS_CONFIG
#   backward               gradients beside the peers: BACKWARD_SECTIONS (all) of backward.py, BACKWARD_SECONDS (400); BACKWARD_ONLY,
#                          BACKWARD_CONFIG
#   profile                what limits PROFILE_PROBLEMS, by Nsight Compute, beside PROFILE_PEER (cudnn)
#   naive host             against naive attention; the host's part of a launch
#   systems                against naive attention, FlashAttention-1 and two-dimensional tiles, over N
# default: verify bits sanitize tune side naive host
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
known="verify bits sanitize repeat race tune hopper steps side fp16 odd window gqa quick decode prompts backward profile naive systems host"
parts=${*:-verify bits sanitize tune side naive host}
for part in $parts; do
    [[ " $known " == *" $part "* ]] || { echo "part is \"$part\"; accepted: $known" >&2; exit 1; }
done
build=$(cd "$build" && pwd) || exit 1
fagen=$build/bin/fagen
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
export FAGEN_CACHE_DIR=${FAGEN_CACHE_DIR:-$out/cache} FAGEN_LIBRARY=$build/lib/libfagen.so
cd "$root/bench" || exit 1

has() { [[ " $parts " == *" $1 "* ]]; }
section() { printf '\n## %s (%s)\n' "$1" "$(date -u +%H:%M:%S)"; }
limited() {
    timeout "$1" "${@:2}"
    local s=$?
    ((s != 124)) || echo "stopped: the limit of $1 s is reached: ${*:2:6}" >&2
    ((s == 0 || s == 124)) || echo "exit $s: ${*:2:6}" >&2
    return $s
}

# The cells of grids, a problem per line.
problems() { python3 side_by_side.py --list --grid "$1" | awk '{ print $NF }'; }

# tune_on GPU GPUS FAMILY: every GPUS-th cell of those on standard input, until the time for all of them is over.
tune_on() {
    local end=$((SECONDS + ${TUNE_SECONDS:-540})) left=0 n=0 family=()
    [[ -z $3 ]] || family=(--family "$3")
    while read -r p; do
        n=$((n + 1))
        ((n % $2 == $1)) || continue
        ((SECONDS < end)) || { left=$((left + 1)); continue; }
        limited 180 "$fagen" tune --problem "$p" "${family[@]}" --limit "${TUNE_LIMIT:-96}" --threads $(($(nproc) / $2)) \
            --budget "${TUNE_BUDGET:-20s}" --device "cuda:$1" --quiet --json > "$out/tune/$p.json" < /dev/null
        python3 winners.py "$out/tune/$p.json" || echo "no winner: $p"
    done
    ((left == 0)) || echo "stopped: $left of $n cells are not tuned, the limit of ${TUNE_SECONDS:-540} s is reached"
}

# tune GRIDS FAMILY: cell by cell, on every GPU of this machine.
tune() {
    local gpus grid
    gpus=$(nvidia-smi -L | wc -l)
    ((gpus > 0)) || { echo "nvidia-smi -L names no GPU: nothing is tuned" >&2; return 1; }
    mkdir -p "$out/tune"
    for grid in $1; do problems "$grid"; done | grep -Ev "${TUNE_SKIP:-^$}" > "$out/tune/cells"
    for ((i = 0; i < gpus; i++)); do tune_on "$i" "$gpus" "$2" < "$out/tune/cells" & done
    wait
    python3 winners.py --merge ../runtime/choose/defaults.inc "$out"/tune/*.json > "$out/defaults.inc"
}

# beside GRID: the grid beside its peers; the JSON, the tables and the figure stay.
beside() {
    limited $((${SIDE_SECONDS:-240} + 120)) python3 side_by_side.py --grid "$1" --seconds "${SIDE_SECONDS:-240}" \
        --json "$out/$1.json" --markdown "$out/$1.md" --svg "$out/$1.svg"
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader
"$fagen" doctor

if has verify; then
    section "verify: 400 random problems"
    limited 240 "$fagen" verify --seed 0 --count 400 --device cuda:0
fi
if has bits; then
    section "bits: the GPU against the simulator"
    limited 240 "$fagen-dev" twin --count "${BITS_COUNT:-60}" --device cuda:0
fi
if has sanitize; then
    for tool in memcheck racecheck; do
        section "compute-sanitizer $tool: 20 problems"
        limited 240 compute-sanitizer --tool "$tool" --error-exitcode 9 "$fagen" verify --seed 0 --count 20 --device cuda:0 | tail -n 5
    done
fi
if has repeat; then
    section "repeat: the same bits each time"
    limited 240 python3 repeat.py --kernels "${REPEAT_KERNELS:-20}" --repeats "${REPEATS:-200}" --seconds 200 \
        ${REPEAT_FAMILY:+--family "$REPEAT_FAMILY"}
fi
if has race; then
    for grid in ${RACE_GRIDS:-main}; do
        section "race: configs of the grid $grid"
        limited "${RACE_SECONDS:-540}" python3 variants.py --grid "$grid" --top "${RACE_TOP:-48}" --chosen --rows 4 \
            --json "$out/race-$grid.json" ${RACE_FAMILY:+--family "$RACE_FAMILY"} ${RACE_CONFIGS:+--file "$RACE_CONFIGS"} ${RACE_PEER:+--peer "$RACE_PEER"} \
            ${RACE_VARY:+--vary "$RACE_VARY"}
        [[ ! -s $out/race-$grid.json ]] || python3 winners.py "$out/race-$grid.json" > "$out/winners-$grid.inc"
    done
fi
if has tune; then
    section "tune: ${TUNE_GRIDS:-main}"
    tune "${TUNE_GRIDS:-main}" "${TUNE_FAMILY:-}"
fi
if has hopper; then
    section "tune: ${TUNE_GRIDS:-main}, ${TUNE_FAMILY:-flash_fwd_wgmma}"
    tune "${TUNE_GRIDS:-main}" "${TUNE_FAMILY:-flash_fwd_wgmma}"
fi
if has steps; then
    for family in ${STEPS_FAMILIES:-flash_fwd_wgmma mixed_wgmma} ""; do
        section "tune: ${STEPS_GRID:-llm-mixed}, ${family:-the winners of all families}"
        seconds=${STEPS_SECONDS:-240}
        [[ -n $family ]] || seconds=$((seconds / 2))
        limited $((seconds + 60)) "$fagen" tune --grid "${STEPS_GRID:-llm-mixed}" ${family:+--family "$family"} --budget "${seconds}s" \
            --device cuda:0 --quiet --json > "$out/steps-${family:-all}.json"
    done
    python3 winners.py --merge ../runtime/choose/defaults.inc "$out"/steps-*.json > "$out/defaults-steps.inc"
fi
for part in side fp16 odd window gqa quick; do
    if has $part; then
        section "beside the peers: $part"
        beside "${part/side/main}"
    fi
done
if has decode; then
    section "decoding beside the peers"
    limited $((${DECODE_SECONDS:-400} + 150)) python3 decode.py ${DECODE_SECTIONS:-} --seconds "${DECODE_SECONDS:-400}" \
        -o "$out/decode.json" --markdown "$out/decode.md" ${DECODE_ONLY:+--only "$DECODE_ONLY"} ${DECODE_CONFIG:+--config "$DECODE_CONFIG"}
fi
if has prompts; then
    section "prompts beside the peers"
    limited $((${PROMPTS_SECONDS:-450} + 150)) python3 prompts.py ${PROMPTS_SECTIONS:-} --seconds "${PROMPTS_SECONDS:-450}" \
        -o "$out/prompts.json" --markdown "$out/prompts.md" ${PROMPTS_ONLY:+--only "$PROMPTS_ONLY"} \
        ${PROMPTS_CONFIG:+--config "$PROMPTS_CONFIG"}
fi
if has backward; then
    section "gradients beside the peers"
    limited $((${BACKWARD_SECONDS:-400} + 150)) python3 backward.py ${BACKWARD_SECTIONS:-} --seconds "${BACKWARD_SECONDS:-400}" \
        -o "$out/backward.json" --markdown "$out/backward.md" ${BACKWARD_ONLY:+--only "$BACKWARD_ONLY"} \
        ${BACKWARD_CONFIG:+--config "$BACKWARD_CONFIG"}
fi
if has profile; then
    for p in ${PROFILE_PROBLEMS:-64,none,16384 128,none,16384 128,causal,16384 256,none,16384}; do
        section "what limits $p"
        limited 200 python3 limits.py --problem "$p" --save "$out/profile-$p.csv" --json "$out/profile-$p.json" \
            ${PROFILE_CONFIG:+--config "$PROFILE_CONFIG"}
        [[ ${PROFILE_PEER-cudnn} == "" ]] || limited 200 python3 limits.py --problem "$p" --peer "${PROFILE_PEER-cudnn}" \
            --save "$out/profile-${PROFILE_PEER-cudnn}-$p.csv"
    done
fi
if has naive; then
    section "against naive attention"
    limited 120 "$fagen" bench -d 64,128 -n 512,1024,2048,4096,8192,16384 --heads 8 --mask none --systems naive --device cuda:0 | tee "$out/naive.txt"
fi
if has systems; then
    section "against the systems of the literature"
    for t in fp32 bf16; do
        limited 300 "$fagen" bench -d 64,128 -t "$t" -n 512,1024,2048,4096,8192 --heads 16 --mask none --samples 5 --device cuda:0 | tee "$out/systems-$t.txt"
    done
fi
if has host; then
    section "host times"
    limited 120 "$fagen" bench --host --device cuda:0 | tee "$out/host.txt"
fi
