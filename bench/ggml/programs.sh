#!/usr/bin/env bash
# llama.cpp's own programs with and without the library, on one GPU: what docs/ggml.md and docs/performance.md say of them.
#
#     PROGRAMS=llama.cpp/build/bin LIBRARY=lib/libfagen_ggml.so OUT=results WORK=/tmp/ggml SECONDS_LEFT=230 \
#         bench/ggml/programs.sh PART...
#
#     divergence  teacher-forced divergence from ggml-cuda, caches in f16, q8_0, q4_0, prompts and single tokens; needs VOCABULARY, a GGUF
#     archs       test-llama-archs with all claims: tiers 2 and 3 waiting for kernels, tier 2 with `nearest`; then with kernels on the disk
#     cases       test-backend-ops' attention cases with all claims; SHARE=1/2: every second part of them, AGAIN: a log whose parts that
#                 did not end come first
#     prompts     test-backend-ops perf of 512 queries, the rules that ship, after a pass that compiles; needs the changes below
#     single      and of one query, of the nodes that the rules claim, or left when they were made; PASSES in turns, 2, the least of all
#     models      llama-bench after 4k and 32k tokens, tiers 2 and 3, caches in f16, q8_0, q4_0: the middle of three samples
#     steps       a token's time over 520 tokens, which pass several buckets of keys, beside that of 40
#     cold        seconds of a whole run, and its tokens a second, where no kernel is on the disk: waiting, `nearest`; and where they are
#     nothing     what a program pays where no node is claimed: no attention, FAGEN_GGML=off, nodes that a rule leaves; in turns
#
# They need two changes of llama.cpp's tests/test-backend-ops.cpp: TBO_MS, milliseconds of a node; TBO_WINDOW, which fills masks by a
# causal window. WRAP is put before what is timed, such as "nice -n -15". Threads of OpenMP that wait do not spin, as many programs run.
set -u
: "${PROGRAMS:?}" "${LIBRARY:?}" "${OUT:?}" "${WORK:=/tmp/ggml}" "${SECONDS_LEFT:=3600}" "${SHARE:=1/1}" "${AGAIN:=}" "${WRAP:=}"
here=$(cd "$(dirname "$0")" && pwd)
LIBRARY=$(realpath "$LIBRARY")
end=$(($(date +%s) + SECONDS_LEFT))
export LD_LIBRARY_PATH=$PROGRAMS:${LD_LIBRARY_PATH:-} OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0
mkdir -p "$OUT" "$WORK"

left() { echo $((end - $(date +%s))); }
within() { timeout "$(($(left) > 1 ? $(left) : 1))" "$@"; }
now() { echo "--- $(left) s left: $*"; }
with() { # with WORDS COMMAND...: the library, and what FAGEN_GGML says; WORDS "plain": without
    local words=$1
    shift
    if [ "$words" = plain ]; then "$@"; else GGML_BACKEND_PATH=$LIBRARY FAGEN_GGML=$words "$@"; fi
}
model() { # model NAME ARGUMENTS...: made once, and alone
    (flock 9; [ -e "$WORK/$1.done" ] || { python3 "$here/model.py" "$WORK/$1.gguf" "${@:2}" && touch "$WORK/$1.done"; }) 9> "$WORK/$1.lock"
}
d128() { model d128 --layers 32 --width 4096 --heads 32 --kv-heads 8 -d 128 --inner 14336; }
d64() { model d64 --layers 16 --width 2048 --heads 32 --kv-heads 8 -d 64 --inner 8192; }

divergence() {
    model words --layers 8 --width 4096 --heads 32 --kv-heads 8 -d 128 --inner 8192 --tokenizer "$VOCABULARY"
    cat "$here"/../*.py "$here"/*.py | head -c 90000 > "$WORK/text.txt"
    local k words run name base arguments program
    for k in f16 q8_0 q4_0; do
        for run in "prompts -c 1024 -b 1024 -ub 512 --chunks 4" "tokens -c 512 -b 1 -ub 1 --chunks 2"; do
            read -ra arguments <<< "$run"
            name=${arguments[0]}
            base=$WORK/base.$k.$name
            program=(within "$PROGRAMS/llama-perplexity" -m "$WORK/words.gguf" -dev CUDA0 -ngl 99 -t 8 -f "$WORK/text.txt" -fa on)
            program+=(-ctk "$k" -ctv "$k" "${arguments[@]:1}")
            "${program[@]}" --save-all-logits "$base" > "$OUT/divergence.$k.$name.base.txt" 2>&1
            for words in off log all,log; do
                [ "$name.$words" = tokens.log ] && continue
                with $words "${program[@]}" --kl-divergence-base "$base" --kl-divergence > "$OUT/divergence.$k.$name.$words.txt" 2>&1
                echo "$k, $name, $words: $(grep -E "Mean +KLD|99.9% +KLD|Maximum KLD|Same top p:|: [1-9][0-9]* nodes computed" \
                    "$OUT/divergence.$k.$name.$words.txt" | tr '\n' ' ')"
            done
            rm -f "$base"
        done
    done
}

archs_once() { # NAME WORDS CACHE: backends are linked, so that nothing loads others: a preloaded line does
    local begin
    begin=$(date +%s)
    FAGEN_CACHE_DIR=$WORK/cache.$3 GGML_BACKEND_PATH=$LIBRARY FAGEN_GGML=$2 LD_PRELOAD=$WORK/load.so \
        within "$PROGRAMS/test-llama-archs" -s 42 > "$OUT/archs.$1.txt" 2> "$OUT/archs.$1.err"
    echo "$1 ($2): rc $?, $(($(date +%s) - begin)) s, $(tail -1 "$OUT/archs.$1.txt"), largest error" \
        "$(grep -aoE "\([0-9.]+e[-+][0-9]+\)" "$OUT/archs.$1.txt" | tr -d '()' | sort -g | tail -1)"
    grep -a FAIL "$OUT/archs.$1.txt" | head -5
    grep -ah "alone\|left to" "$OUT/archs.$1.err" | sort | uniq -c | sort -rn | head -5
}
archs() {
    gcc -shared -fPIC -x c -o "$WORK/load.so" - -ldl <<'LOADS'
#define _GNU_SOURCE
#include <dlfcn.h>
__attribute__((constructor)) static void load(void)
{
    void (*all)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "ggml_backend_load_all");
    if (all)
        all();
}
LOADS
    archs_once wait2 all,log wait2 &
    archs_once wait3 all,tier=3,log wait3 &
    archs_once nearest2 all,nearest,log nearest2 &
    wait
    now archs, kernels on the disk
    archs_once wait2.again all,log wait2 &
    archs_once wait3.again all,tier=3,log wait3 &
    archs_once nearest2.again all,nearest,log wait2 &
    wait
}

cases() {
    OMP_THREAD_LIMIT=1 nice -n 19 python3 -u "$here/cases.py" "$PROGRAMS/test-backend-ops" "$LIBRARY" -o "$OUT" \
        --seconds "$(left)" --jobs "${JOBS:-40}" --share "$SHARE" ${AGAIN:+--again "$AGAIN"}
}

ops() { # NAME SET MS WORDS: added to what is there
    # shellcheck disable=SC2086
    with "$4" env TBO_WINDOW=100000000 TBO_MS="$3" timeout "$(left)" $WRAP "$PROGRAMS/test-backend-ops" perf -b CUDA0 \
        --test-file "$WORK/$2.txt" >> "$OUT/$1.txt" 2>> "$OUT/$1.err"
    echo "$1: rc $?, $(grep -c us/run "$OUT/$1.txt") nodes, $(grep -a 'backend ends' "$OUT/$1.err" | tail -1)"
}
compared() { python3 "$here/nodes.py" compare "$OUT/$1.plain.txt" "$OUT/$1.fagen.txt" "${@:2}"; }
prompts() {
    local set
    for set in prompt more; do
        python3 "$here/nodes.py" write $set -o "$WORK/$set.txt"
        ops warm.$set $set 1 log
        ops $set.plain $set 25 plain
        ops $set.fagen $set 25 log
        compared $set
    done
    compared prompt --only 'd(64|128),\d+/8,512x\d+,f16$' | grep mean
}
single() {
    local claimed='d128,(32|64)/8,1x(16384|32768),f16$|/(8|4),1x(8192|16384|32768),q|d128,16/16,1x(16384|32768),q' turn
    python3 "$here/nodes.py" write one -o "$WORK/one.txt" --only "$claimed|d128,(16/16|32/8),1x(4096|8192|32768),"
    ops warm.one one 1 log
    for ((turn = 1; turn <= ${PASSES:-2}; turn++)); do
        now turn $turn
        ops one.plain one 20 plain
        ops one.fagen one 20 log
    done
    compared one
    compared one --only "$claimed" | sed 's/^/claimed: /' | grep mean
    grep -ah "left to" "$OUT/one.fagen.err" | sort | uniq -c
}

declare -A says=([plain]="plain" [off]="off" [fagen]="log" [tier3]="tier=3,log")
bench() { # NAME WHO ARGUMENTS...
    local name=$1 who=$2
    shift 2
    [ "$(left)" -lt 3 ] && return
    # shellcheck disable=SC2086
    with "${says[$who]}" within $WRAP "$PROGRAMS/llama-bench" -ngl 99 -o jsonl "$@" 2>> "$OUT/$name.$who.err" |
        sed "s/^{/{\"who\":\"$who\",/" >> "$OUT/$name.jsonl"
}
models() {
    local k who p
    d128
    for k in q4_0 q8_0 f16; do
        now models, $k
        p=(-m "$WORK/d128.gguf" -fa 1 -ctk "$k" -ctv "$k" -p 512 -n 40 -d "${DEPTHS:-4096,32768}")
        for who in plain fagen tier3; do bench models.$k $who "${p[@]}" -r 3; done
        python3 "$here/turns.py" "$OUT/models.$k.jsonl"
        tail -n 1 "$OUT/models.$k.fagen.err"
    done
}
steps() {
    local n who
    d128
    for n in 40 520; do
        for who in plain fagen tier3; do
            bench steps $who -m "$WORK/d128.gguf" -fa 1 -ctk q8_0 -ctv q8_0 -p 0 -n $n -d 8192 -r 2
        done
    done
    python3 "$here/turns.py" "$OUT/steps.jsonl"
}
cold() {
    local who words cache begin seconds
    d128
    for who in plain plain wait nearest again; do
        words=$(case $who in plain) echo plain ;; nearest) echo nearest ;; *) echo log ;; esac)
        cache=$WORK/cold.${who/again/wait}
        [ $who = again ] || rm -rf "$cache"
        begin=$(date +%s.%N)
        FAGEN_CACHE_DIR=$cache with "$words" within "$PROGRAMS/llama-bench" -m "$WORK/d128.gguf" -ngl 99 -fa 1 -p 16384 -n 64 -r 1 \
            --no-warmup > "$OUT/cold.$who.txt" 2>&1
        seconds=$(python3 -c "import time; print(round(time.time() - $begin, 2))")
        echo "cold, $who: $seconds s, $(grep -oE '(pp|tg)[0-9]+ \| +[0-9.]+' "$OUT/cold.$who.txt" | tr '\n' ' ')" \
            "$(find "$cache" -type f 2> /dev/null | wc -l) files"
    done
}
nothing() {
    local turn who
    d64
    for ((turn = 0; turn < ${TURNS:-16}; turn++)); do
        for who in plain off fagen; do
            bench nothing $who -m "$WORK/d64.gguf" -fa 0 -p 512 -n 64 -r 10
            bench nothing.left $who -m "$WORK/d64.gguf" -fa 1 -p 0 -n 64 -r 20
        done
        [ "$(left)" -lt 12 ] && break
    done
    python3 "$here/turns.py" "$OUT/nothing.jsonl" "$OUT/nothing.left.jsonl"
    tail -n 2 "$OUT/nothing.left.fagen.err"
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv,noheader
for part in "$@"; do
    now "$part"
    "$part"
done
now end
