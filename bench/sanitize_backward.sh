#!/usr/bin/env bash
# Small problems of gradients under compute-sanitizer: random ones of each family of kernels, and causal ones of the usual head_dims with
# four heads of queries to one of keys. Each is held against fp64 as well.
#   bench/sanitize_backward.sh [-b BUILD] [-t TOOL]... [-n COUNT] [-s SEED] [-d DEVICE] [-l SECONDS] [FAMILY ...]
# TOOL: memcheck (default), racecheck, initcheck, synccheck; may be given again. COUNT (5) random problems of each family from SEED (1) on,
# DEVICE (cuda:0), SECONDS (240) for all. BUILD: the folder of bin/fagen (build/portable). COMPUTE_SANITIZER names another command.
# Ends with 1 where the tool tells of an error, a result is wrong, fewer problems ran than were asked for, or the time was over.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/portable tools=() count=5 seed=1 device=cuda:0 limit=240
refuse() { echo "$1 is \"$2\"; accepted: $3" >&2; exit 2; }
number() { [[ $2 =~ ^[0-9]+$ ]] && (($2 >= $3)) || refuse "$1" "$2" "a number from $3 on"; }
while getopts b:t:n:s:d:l: option; do
    case $option in
    b) build=$OPTARG ;;
    t) tools+=("$OPTARG") ;;
    n) count=$OPTARG ;;
    s) seed=$OPTARG ;;
    d) device=$OPTARG ;;
    l) limit=$OPTARG ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
number -n "$count" 1
number -s "$seed" 0
number -l "$limit" 1
((${#tools[@]})) || tools=(memcheck)
for tool in "${tools[@]}"; do
    [[ " memcheck racecheck initcheck synccheck " == *" $tool "* ]] || refuse -t "$tool" "memcheck, racecheck, initcheck, synccheck"
done
families=("$@")
((${#families[@]})) || families=(flash_bwd_wgmma flash_bwd_mma flash_bwd_ffma naive_bwd)
fagen=$build/bin/fagen
[[ -x $fagen ]] || refuse -b "$build" "a folder with bin/fagen, as build/portable"
sanitizer=${COMPUTE_SANITIZER:-$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)}
if [[ -z $sanitizer ]]; then
    echo "compute-sanitizer is neither in PATH nor in /usr/local/cuda/bin; accepted: its path in COMPUTE_SANITIZER" >&2
    exit 2
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# clean TOOL: whether the log ends with the tool's own word that there was nothing.
clean() {
    case $1 in
    racecheck) grep -Eq '^=+ RACECHECK SUMMARY: 0 hazards displayed \(0 errors, 0 warnings\)' "$log" ;;
    *) grep -Eq '^=+ ERROR SUMMARY: 0 errors' "$log" ;;
    esac
}

# check TOOL WANTED NAME WORD...: `fagen verify` of gradients with the words, which is to find WANTED problems right.
check() {
    local tool=$1 wanted=$2 name=$3 begun=$SECONDS left=$((limit - SECONDS)) code=124 why=
    ran=$((ran + 1))
    : > "$log"
    if ((left > 0)); then
        timeout -k 5 "$left" "$sanitizer" --tool "$tool" --error-exitcode 9 \
            "$fagen" verify --op backward --device "$device" "${@:4}" > "$log" 2>&1
        code=$?
    fi
    if ((code == 124 || code == 137)); then why="the limit of $limit s is reached"
    elif ((code == 9)) || ! clean "$tool"; then why="$tool tells of errors, exit $code"
    elif ! grep -q "^$wanted of $wanted cases are right on " "$log"; then why="not $wanted right results, exit $code"
    elif ((code != 0)); then why="exit $code"
    fi
    if [[ -z $why ]]; then
        echo "ok    $tool $name: $(grep -E '^[0-9]+ of [0-9]+ cases are right on ' "$log"); $((SECONDS - begun)) s in all"
    else
        bad=$((bad + 1))
        echo "WRONG $tool $name: $why; the end of what was said:"
        tail -n 25 "$log"
    fi
}

# The usual head_dims: config, type, head_dims, how many.
usual=(
    "flash_bwd_wgmma:dq=spill bf16 64,128,256 3"
    "flash_bwd_wgmma:br=64,bc=128,schedule=turns,dq=add bf16 64,128 2"
    "flash_bwd_mma bf16 64,128 2"
    "flash_bwd_ffma fp32 64 1"
)

bad=0 ran=0
for tool in "${tools[@]}"; do
    for family in "${families[@]}"; do
        check "$tool" "$count" "$family" --family "$family" --count "$count" --seed "$seed"
        for row in "${usual[@]}"; do
            read -r config type head_dims wanted <<< "$row"
            [[ ${config%%:*} == "$family" ]] || continue
            check "$tool" "$wanted" "$config d=$head_dims" --config "$config" -t "$type" -d "$head_dims" --causal -n 200 -H 4 --kv-heads 1
        done
    done
done
echo "$((ran - bad)) of $ran runs are clean, $SECONDS s"
exit $((bad > 0))
