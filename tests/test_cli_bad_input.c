/* Everything a person can get wrong on the command line: the exit code, what the message says, and that nothing half-made is left. */
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files that the rows name. */
static void fixtures(void)
{
    static const char head[] = "\x93NUMPY\x01\x00";
    static const struct {
        const char *name, *dictionary;
        size_t data;
    } npy[] = {
        { "q.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 256 },
        { "half.npy", "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 128 },
        { "flat.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }", 256 },
        { "empty_dim.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0, 2, 8), }", 0 },
        { "d600.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 600), }", 2400 },
        { "d16.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2, 16), }", 512 },
        { "h3.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 3, 8), }", 384 },
        { "b2.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4, 2, 8), }", 512 },
        { "s5.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5, 2, 8), }", 320 },
        { "short.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 255 },
        { "long.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 257 },
        { "big_endian.npy", "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 256 },
        { "double.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4, 2, 8), }", 512 },
        { "fortran.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 4, 2, 8), }", 256 },
        { "unclosed.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2, 8", 256 },
        { "negative.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, -4, 2, 8), }", 256 },
        { "huge.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (400000000000000000, 400000000000000000, 2, 8), }", 256 },
    };
    for (size_t i = 0; i < sizeof npy / sizeof *npy; i++) {
        char file[4096] = { 0 };
        size_t n = strlen(npy[i].dictionary);
        cr_assert_leq(10 + n + npy[i].data, sizeof file);
        memcpy(file, head, 8);
        file[8] = (char)n;
        memcpy(file + 10, npy[i].dictionary, n);
        cli_scratch_write(npy[i].name, file, 10 + n + npy[i].data);
    }
    cli_scratch_write("nothing.npy", "", 0);
    cli_scratch_write("text.npy", "1 2 3\n", 6);
    cli_scratch_write("version9.npy", "\x93NUMPY\x09\x00\x00\x00 ", 11);
    cli_scratch_write("header_only.npy", "\x93NUMPY\x01\x00\xff\x00{", 11);
    mkdir("dir", 0755);
    mkdir("templates", 0755);
    cli_scratch_write("templates/naive.lua", "return {", 8);
    mkdir("broken", 0755);
    cli_scratch_write("broken/mask.cu", "$(no_such_name)\n", 16);
    mkdir("syntax", 0755);
    cli_scratch_write("syntax/mask.cu", "this is not CUDA\n", 17);
    cli_scratch_write("file", "x", 1);
    mkdir("open", 0777);
    chmod("open", 0777);
}

#define ATTEND "attend --device sim:sm_80 -o o.npy "
static const struct {
    const char *words;
    int code;
    const char *says; /* on standard error; '|' separates words that must all be there */
} rows[] = {
    /* commands and words */
    { "", 1, "usage: fagen COMMAND|space" },
    { "spcae", 1, "unknown command|spcae|did you mean space" },
    { "xyzzy", 1, "unknown command|fagen help" },
    { "--bogus", 1, "unknown option|--bogus" },
    { "help tnue", 1, "did you mean tune" },
    { "help tune cache", 1, "unexpected word \"cache\"" },
    { "help --man exit-codes", 1, "--man|exit-codes|accepted: a subcommand" },
    { "--version --nonsense", 1, "--nonsense" },
    { "--version 2", 1, "unexpected word \"2\"" },
    { "completion", 1, "the shell is|accepted: bash, zsh" },
    { "completion fish", 1, "\"fish\"|accepted: bash, zsh" },
    { "help ''", 1, "unknown command" },
    { "space extra", 1, "unexpected word|extra|usage" },
    { "cache", 1, "accepted: ls" },
    { "cache sl", 1, "sl|accepted: ls" },
    { "cache ls more", 1, "unexpected word|more" },
    { "cache ls --trust", 1, "ls does not take --trust" },
    { "cache stat -d 64", 1, "stat does not take a problem" },
    { "cache verify --older 3d", 1, "verify does not take --older" },
    { "cache prune", 1, "prune: what goes|--older AGE" },
    { "cache prune --older 30", 1, "--older is \"30\"|30d" },
    { "cache prune --older -1d", 1, "--older" },
    { "cache prune --to 1", 1, "--to is \"1\"|with its unit" },
    { "cache prune --to 1.5B", 1, "--to is|100MiB" },
    { "cache prune --to lots", 1, "--to is \"lots\"|100MiB" },
    { "cache prune --arch sm_12", 1, "--arch is \"sm_12\"|sm_90a" },
    { "cache export", 1, "export: which file" },
    { "cache export a b", 1, "unexpected word|b" },
    { "cache export x.archive --arch sm_80,sm_90a", 1, "accepted by export: one arch" },
    { "cache export no/such/folder/x.archive", 7, "no/such/folder/x.archive|cannot be written" },
    { "cache export x.records --only-records --records", 1, "--only-records beside --records" },
    { "cache export no/such/folder/x.records --only-records", 7, "no/such/folder/x.records|cannot be written" },
    { "cache import", 1, "import: which file" },
    { "cache import x --only-records", 1, "import does not take --only-records" },
    { "cache import absent.archive", 7, "absent.archive|cannot be read" },
    { "cache import .", 7, "not a regular file" },
    { "cache why -d 64 --arch sm_80 --device sim:sm_80", 1, "--arch and --device contradict" },
    { "cache why -d 0", 1, "--head-dim" },
    { "cache why -d 64 --config flash_fwd_mma:br=7", 1, "br" },
    /* options */
    { "space --csual", 1, "--csual|did you mean --causal" },
    { "space --zzzzzz", 1, "--zzzzzz|--help" },
    { "space -Z", 1, "unknown option|-Z" },
    { "space --dty", 1, "needs a value|fp16" },
    { "space --json=yes", 1, "--json takes no value" },
    { "space --d 64", 1, "ambiguous|--dv|--dtype" },
    { "space -d", 1, "--head-dim needs a value|1 to 576" },
    { "space -d 64 --dtype", 1, "--dtype needs a value|fp16, bf16" },
    { "space -d ''", 1, "--head-dim is \"\"|1 to 576" },
    { "space -d x", 1, "--head-dim|x|1 to 576" },
    { "space -d 64.5", 1, "--head-dim|64.5|1 to 576" },
    { "space -d 0x40", 1, "--head-dim|0x40" },
    { "space -d 0", 1, "--head-dim|0|1 to 576" },
    { "space -d -8", 1, "--head-dim|-8|1 to 576" },
    { "space -d 577", 1, "--head-dim|577|1 to 576" },
    { "space -d 99999999999999999999", 1, "--head-dim|1 to 576" },
    { "space --dv 600", 1, "--dv|600|1 to 576" },
    { "space --dtype fp64", 1, "--dtype|fp64|fp16, bf16, tf32, fp32" },
    { "space --dtype fp16,bf16", 1, "--dtype|accepted" },
    { "space --mask diagonal", 1, "--mask|diagonal|none, causal, window" },
    { "space --causal --mask window", 1, "--causal|window|contradict" },
    { "space --dtype fp16 --o-dtype bf16", 1, "o_dtype|accepted" },
    { "space --align 3", 1, "align|3|power of two" },
    { "space --align 16 -d 3", 1, "align|16" },
    { "space --heads 7 --kv-heads 2", 1, "hq|7|multiple" },
    { "space --heads 0", 1, "--heads|0|accepted" },
    { "space -n 0", 1, "--n|0|accepted" },
    { "space --arch h1000", 1, "--arch is \"h1000\"|did you mean h100?|sm_90a|fagen archs" },
    { "space --arch sm_80 --device sim:sm_80", 1, "--arch and --device|one of them" },
    { "space --causal --window 5,0", 1, "--window 5,0 and --mask causal contradict" },
    { "show -d 64 --arch l40", 1, "--arch is \"l40\"|did you mean l40s?" },
    { "run --device sim:h10", 1, "--device is \"sim:h10\"|did you mean sim:h100?|after sim:" },
    { "tune --arch h300 -d 64", 1, "did you mean h100?" },
    { "emit --arch sm_80 --device sim:sm_80", 1, "--arch and --device|one of them" },
    { "tune --grid default --window 128", 1, "--grid default and --window do not go together" },
    { "space --arch sm_70", 1, "--arch|sm_70|sm_80, sm_86" },
    { "space --arch ''", 1, "--arch|not empty" },
    { "space --family flash", 1, "flash|flash_fwd_mma" },
    { "space --color sometimes", 1, "--color|sometimes|never, auto, always" },
    { "space --limit 0", 1, "--limit|0|1 to" },
    /* budgets */
    { "space -d 64 --sram 1000", 3, "1000 bytes|the smallest needs" },
    { "space -d 256 --sram 4KiB", 3, "4096 bytes|the smallest needs" },
    { "emit -d 128 --sram 2000", 3, "the smallest needs" },
    { "space --sram 0", 1, "--sram|0|accepted" },
    { "space --sram 64KB", 1, "--sram|64KB|64KiB" },
    { "space --sram 1.5", 1, "--sram|1.5" },
    { "space --sram 300000", 1, "--sram|300000|166912" },
    { "space --sram 999999999999", 1, "--sram" },
    { "emit -d 64 --sram 8000 --config flash_fwd_mma:br=64,bc=64,warps=4", 3, "smem" },
    /* problems and configs as text */
    { "emit --problem ''", 1, "--problem|not empty" },
    { "emit --problem 'd=64'", 1, "--problem|dtype is missing|e5m2, s8" },
    { "emit --problem 'int4,d=64'", 1, "--problem|dtype is \"int4\"; accepted: fp16, bf16, tf32, fp32, e4m3, e5m2, s8" },
    { "emit --device sim:foo", 1, "fagen emit: --device is \"sim:foo\"; accepted: after sim: " },
    { "emit --problem 'bf16,d=64,d=128'", 1, "--problem|given twice|accepted: once" },
    { "emit --problem 'bf16,d=64,color=red'", 1, "--problem|color|accepted" },
    { "emit --problem 'bf16,d=64,'", 1, "--problem|accepted" },
    { "emit --problem 'bf16,d=6x4'", 1, "--problem|6x4" },
    { "show bf16,d=64 --problem bf16,d=128", 1, "--problem|one of them" },
    { "show --ptx --sass", 1, "--source, --ptx and --sass|one of them" },
    { "show 0123456789abcdef", 1, "0123456789abcdef: 0 kernels|fagen cache ls" },
    { "show nonsense", 1, "nonsense" },
    { "show a b", 1, "b" },
    { "PATH=/nonexistent CUDA_HOME=/nonexistent show -d 64 --sass", 2, "nvdisasm|cuobjdump|--ptx" },
    { "emit -d 64,128", 1, "2 problems|without --bundle" },
    { "emit --name k", 1, "--name|--bundle" },
    { "emit --grid vit", 1, "--grid|--bundle" },
    { "emit --raw", 1, "--raw|--bundle" },
    { "emit --bundle --raw -d 64", 1, "--raw writes binary|--output FILE" },
    { "emit --bundle --raw --json -d 64 -o -", 1, "--json|--output" },
    { "emit --bundle --grid nonsense -o x.c", 1, "nonsense|llm-prefill" },
    { "emit --bundle --grid vit -d 64 -o x.c", 1, "--grid|one or the other" },
    { "emit --model-best --config flash_fwd_mma:br=64,bc=64", 1, "--config and --model-best|one of them" },
    { "emit --bundle --arch sm_80,sm_99 -o x.c", 1, "--arch is \"sm_99\"|compute_" },
    { "emit --bundle --arch sm_80, -o x.c", 1, "--arch|accepted" },
    { "emit --bundle --arch sm_80,sm_86,sm_87,sm_89,sm_90a,sm_100a,sm_103a,sm_120a,sm_121a -o x.c", 1, "--arch lists 9|at most 8" },
    { "emit --bundle --problem 'bf16,d=64;bf16,d=999' -o x.c", 1, "d is 999" },
    { "emit --bundle -d 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31 -n "
      "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 --mask none,causal -o x.c",
      1, "more than 1024 problems" },
    { "emit --bundle -d 64 --sram 1000 -o x.c", 3, "bf16,d=64|sm_80|the smallest needs" },
    { "emit --bundle -d 64 --name 3d -o x.c", 1, "--name is \"3d\"|C identifier" },
    { "emit --bundle -d 64 -o 3d.c", 1, "3d.c|C identifier|--name" },
    { "emit --bundle -d 64 --format ptx -o x.c", 1, "--format|compute_80 for PTX" },
    { "emit --bundle -d 64 --json", 1, "--json|--output" },
    { "emit --bundle -d 64 --host -o x.c", 1, "--host and --bundle contradict each other|accepted" },
    { "FAGEN_NVRTC=/nonexistent emit --bundle -d 64 -o none/x.c", 7, "none/x.c|cannot be written" }, /* before anything is compiled */
    { "FAGEN_NVRTC=/nonexistent emit -d 64 --format ptx -o none/x.ptx", 7, "none/x.ptx|cannot be written" },
    { "explore --arch sm_80 --family none --csv none/x.csv", 7, "none/x.csv|cannot be written" },
    { "FAGEN_NVRTC=/nonexistent attend --device sim:sm_80 --q q.npy --k q.npy --v q.npy -o none/o.npy", 7, "none/o.npy|cannot be written" },
    { "FAGEN_NVRTC=/nonexistent emit --bundle -d 64 -o x.c", 2, "/nonexistent" },
    { "emit --config ''", 1, "--config|not empty" },
    { "emit --config flash", 1, "flash|flash_fwd_mma" },
    { "emit --config flash_fwd_mma:br=63", 1, "br|63|accepted" },
    { "emit --config flash_fwd_mma:rows=64", 1, "rows" },
    { "emit --config flash_fwd_mma:br=64,br=64", 1, "--config|given twice (64 and 64); accepted: once" },
    { "emit --config flash_fwd_mma:br", 1, "--config|name=value" },
    { "emit --config 64x64", 1, "--config|64x64" },
    { "space --why flash_fwd_mma:br=63", 1, "--why|br|63|16, 32, 64" },
    { "space --why flash_fwd_mma:rows=4", 1, "--why|no tunable|rows|br" },
    { "space --why nonsense:br=64", 1, "nonsense" },
    { "model --br 0 --bc 64", 1, "--br|0" },
    { "model --config flash_fwd_mma:br=63", 1, "br|63" },
    { "model --left -2", 1, "--left|-2" },
    /* output files */
    { "emit --format exe", 1, "--format|exe|cu, ptx, cubin" },
    { "emit --format cubin", 1, "--output FILE" },
    { "emit --json -o -", 1, "standard output" },
    { "emit -o no/such/dir/k.cu", 7, "no/such/dir/k.cu|cannot be written" },
    { "emit -o dir", 7, "dir|is a directory" },
    { "emit -o file/k.cu", 7, "file/k.cu" },
    { "emit -o /proc/k.cu", 7, "/proc/k.cu|cannot be written" },
    { "sample -d 8 -n 4 --directory nowhere/below", 7, "--directory is \"nowhere/below\"|accepted: a folder, or a new one" },
    { "sample -d 8 -n 1000000000 --heads 60000 --batch 1000000000", 1, "b=1000000000, hq=60000, sq=1000000000 are 6e+22 rows of Q|2^50" },
    /* attend */
    { "attend", 1, "--q is missing" },
    { "attend --q q.npy --k q.npy --v q.npy", 1, "--output is missing" },
    { ATTEND "--q q.npy --k q.npy --dv 4 --backward", 1, "--dv is given with --backward|accepted there: --v" },
    { ATTEND "--q none.npy --k q.npy --v q.npy", 7, "none.npy|cannot be read" },
    { ATTEND "--q dir --k q.npy --v q.npy", 7, "dir|not a regular file" },
    { ATTEND "--q nothing.npy --k q.npy --v q.npy", 1, "nothing.npy|not a .npy file" },
    { ATTEND "--q text.npy --k q.npy --v q.npy", 1, "text.npy|not a .npy file" },
    { ATTEND "--q version9.npy --k q.npy --v q.npy", 1, "version9.npy|version 9.0" },
    { ATTEND "--q header_only.npy --k q.npy --v q.npy", 1, "ends within its header" },
    { ATTEND "--q q.npy --k short.npy --v q.npy", 1, "short.npy|255 bytes" },
    { ATTEND "--q q.npy --k long.npy --v q.npy", 1, "long.npy|257 bytes" },
    { ATTEND "--q big_endian.npy --k q.npy --v q.npy", 1, "little-endian" },
    { ATTEND "--q double.npy --k q.npy --v q.npy", 1, "<f8|accepted" },
    { ATTEND "--q fortran.npy --k q.npy --v q.npy", 1, "Fortran" },
    { ATTEND "--q unclosed.npy --k q.npy --v q.npy", 1, "unclosed.npy|malformed" },
    { ATTEND "--q negative.npy --k q.npy --v q.npy", 1, "negative.npy|dimension" },
    { ATTEND "--q huge.npy --k q.npy --v q.npy", 1, "huge.npy|address space" },
    { ATTEND "--q flat.npy --k q.npy --v q.npy", 1, "flat.npy|1 dimensions|[b, s, h, d]" },
    { ATTEND "--q empty_dim.npy --k q.npy --v q.npy", 1, "empty_dim.npy|dimension 1 is 0" },
    { ATTEND "--q half.npy --k q.npy --v q.npy", 1, "differ in type" },
    { ATTEND "--q q.npy --k d16.npy --v q.npy", 1, "d16.npy|head_dim|16" },
    { ATTEND "--q q.npy --k b2.npy --v b2.npy", 1, "b2.npy|batch" },
    { ATTEND "--q q.npy --k q.npy --v s5.npy", 1, "s5.npy|key length|5" },
    { ATTEND "--q q.npy --k q.npy --v h3.npy", 1, "h3.npy|heads" },
    { ATTEND "--q h3.npy --k q.npy --v q.npy", 1, "hq is 3|multiple" },
    { ATTEND "--q d600.npy --k d600.npy --v d600.npy", 1, "d is 600|1 to 576" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --window 3,x", 1, "--window|LEFT,RIGHT" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --window -2,0", 1, "--window|-2,0" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --causal --window 3,3", 1, "contradict" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --scale 0", 1, "--scale|0|above 0" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --scale nan", 1, "--scale|nan" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --scale -1", 1, "--scale|-1|negate Q or K" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --scale 2.36e38", 1, "--scale|2.36e38|2.358e38" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --scale 1e-46", 1, "--scale|1e-46|1.41e-45" },
    { ATTEND "--q q.npy --k q.npy --v q.npy --diagonal left", 1, "--diagonal|bottom-right" },
    { "attend --q q.npy --k q.npy --v q.npy -o no/dir/o.npy --device sim:sm_80", 7, "no/dir/o.npy" },
    /* explore */
    { "explore --arch sm_80 --device sim:sm_80", 1, "--arch|--device|one of them" },
    { "explore --arch sm_1", 1, "--arch|sm_1|sm_80" },
    { "explore --arch sm_80 -d 600", 1, "--head-dim|600|1 to 576" },
    { "explore --arch sm_80 --family flash", 1, "flash|flash_fwd_mma" },
    { "explore --arch sm_80 --simulate -1", 1, "--simulate|-1|0 to" },
    { "explore --arch sm_80 --simulate 0 --json --csv -", 1, "--json|standard output" },
    { "explore --arch sm_80 --simulate 0 -o x --csv x", 1, "--output and --csv|two files" },
    { "explore --arch sm_80 --simulate 0 -o -  --csv -", 1, "--output and --csv|two files" },
    { "explore --arch sm_80 --simulate 0 -o no/such/dir/p.html", 7, "no/such/dir/p.html|cannot be written" },
    { "explore --arch sm_80 --simulate 0 --csv dir", 7, "dir|is a directory" },
    { "explore --arch sm_80 --simulate 0 --sram 300000", 1, "--sram|300000|166912" },
    { "explore --arch sm_80 --simulate 0 -d 64 --sram 1000", 3, "1000 bytes|the smallest needs" },
    { "explore --device tpu", 1, "--device|tpu|accepted" },
    /* devices and the rest */
    { "run --device tpu", 1, "--device|tpu|accepted" },
    { "run --device sim:sm_1", 1, "sim:sm_1|sm_80" },
    { "run --device sim:", 1, "sim:" },
    { "run --device cuda:x", 1, "cuda:x" },
    { "FAGEN_DEVICE=abacus run", 1, "abacus" },
    { "run --sram 17 --device sim:sm_80", 3, "the smallest needs" },
    { "run --sram 600000 --device sim:sm_80", 1, "sram|600000" },
    { "run --seed -1", 1, "--seed|-1" },
    { "run --config flash_fwd_mma:br=63", 1, "br|63" },
    { "verify --count 0", 1, "--count|0" },
    { "verify --family flash_fwd_wgma", 1, "family|accepted: |flash_fwd_mma" },
    { "verify --family flash_fwd_wgmma --device sim:sm_80", 1, "none of|flash_fwd_wgmma|sm_80" },
    { "verify --family flash_fwd_mma -d 64", 1, "--family|--config FAMILY" },
    { "verify --sim-async sometimes", 1, "--sim-async|eager, lazy" },
    { "verify --schedule backwards", 1, "--schedule|in-order, reversed, random" },
    { "verify --checks races=off", 1, "--checks|there is no check \"races\"; accepted: unwritten, " },
    { "run -d 64 --checks race=maybe", 1, "--checks|\"maybe\" is no severity; accepted: race=off, warning, error" },
    { "run -d 64 --checks bounds=off", 1, "--checks|bounds can be an error only" },
    { "bench -d 64 --checks race", 1, "--checks|is no severity" },
    { "run -d 64 --reports 0", 1, "--reports|1 to 64" },
    { "run -d 64 --max-steps 1000", 6, "hang: the launch has run 1001 warp instructions; the limit is 1000" },
    { "run -d 64 --max-seconds 0s", 1, "--max-seconds|above 0" },
    { "verify -d 64,,128", 1, "--head-dim|list" },
    { "verify -d 64,", 1, "--head-dim|list" },
    { "verify --heads 3 --kv-heads 2 -d 64", 1, "hq|multiple" },
    { "bench --counts -d 64 --sram 1000", 3, "the smallest needs" },
    { "FAGEN_DEVICE= CUDA_VISIBLE_DEVICES= bench -n 64,1048576", 1,
      "-n, --sq, --sk|1048576|stands in for a GPU|days|accepted without a GPU|--device sim:sm_80" },
    { "FAGEN_DEVICE= CUDA_VISIBLE_DEVICES= run --sq 1048576 --sk 4194304", 1, "--sk|4194304|accepted without a GPU" },
    { "bench --samples 1", 1, "--samples|1|3 to" },
    { "bench --systems naive,flash9 -d 64 --device sim:sm_80", 1, "--systems|flash9|accepted: all, none|flash1_fwd" },
    { "tune --arch sm_999", 1, "--arch|sm_999|sm_80" },
    { "tune --budget 0s", 1, "--budget|0s|60s" },
    { "tune --budget soon", 1, "--budget|soon" },
    { "tune --budget -5", 1, "--budget|-5" },
    { "tune --causal --mask none", 1, "--causal|--mask" },
    { "tune -d 64 --dv 999", 1, "--dv|999" },
    { "tune --arch sm_80 --sram 900KiB", 1, "--sram|accepted on sm_80" },
    { "tune --arch sm_90a --device sim:sm_80", 1, "--arch|--device|contradict" },
    { "tune --problem 'bf16'", 1, "d is 0" },
    { "tune --devices 0,0", 1, "--devices|cuda:0 twice" },
    { "tune --devices 0,", 1, "--devices|accepted: all" },
    { "tune --devices bogus", 1, "--devices|bogus|cuda:N" },
    { "tune --devices sim:sm_80,sim:sm_90a", 1, "sim:sm_80|sim:sm_90a|one chip" },
    { "tune --devices sim:sm_80,cuda:0", 1, "sim:sm_80|cuda:0|one chip" },
    { "tune --devices sim:sm_7", 1, "--devices|sm_7|sm_80" },
    { "tune --devices sim:sm_80 --device sim:sm_80", 1, "--devices|--device|one of them" },
    { "tune --devices sim:sm_80,sim:sm_80 --arch sm_90a", 1, "no device is left|sm_90a|contradict" },
    { "tune --grid nope", 1, "--grid|nope|llm-prefill" },
    { "tune --grid vit --heads 3", 1, "--grid vit|--heads|narrowed" },
    { "tune --grid vit -d 136", 1, "--grid vit|no such problem" },
    { "tune --list-grids --grid nope", 1, "--grid|nope|vit" },
    { "tune --gird vit", 1, "did you mean --grid" },
    { "show --device sim:sm_80 --problem 'x'", 1, "--problem" },
    /* what is around it */
    { "FAGEN_TEMPLATE_DIR=/nonexistent emit", 7, "/nonexistent" },
    { "FAGEN_TEMPLATE_DIR=templates emit -d 64", 5, "templates/naive.lua" },
    { "FAGEN_TEMPLATE_DIR=broken emit -d 64", 5, "broken/mask.cu|no_such_name" },
    { "FAGEN_TEMPLATE_DIR=syntax emit -d 64 --format ptx -o k.ptx", 5, "mask.cu" },
    { "FAGEN_TEMPLATE_DIR=syntax run -d 64 -n 16", 5, "mask.cu" },
    { "FAGEN_NVRTC=/nonexistent emit -d 64 --format ptx", 2, "/nonexistent|libnvrtc|doctor" },
    { "FAGEN_NVRTC=/nonexistent emit -d 64 --format cubin -o k.cubin", 2, "/nonexistent" },
    { "FAGEN_NVRTC=file run -d 64 -n 16", 2, "libnvrtc" },
    { "FAGEN_NVRTC=/nonexistent tune -d 64 --arch sm_80 --limit 1", 2, "libnvrtc" },
    { "FAGEN_NVRTC=/nonexistent tune -d 64 -n 256,512,1024,2048 --limit 1 --devices sim:sm_80,sim:sm_80", 2, "libnvrtc|doctor" },
    { "FAGEN_LOG=loudly run -d 64 -n 16", 1, "FAGEN_LOG|loudly|debug" },
};

/* Nothing said "ERROR: AddressSanitizer" or "runtime error", and no signal ended it. */
static void sound(const char *words, const cli_result *r)
{
    cr_expect_lt(r->code, 1000, "fagen %s: signal %d: %s", words, r->code - 1000, r->err);
    cr_expect(!strstr(r->err, "Sanitizer") && !strstr(r->err, "runtime error:"), "fagen %s: %s", words, r->err);
}

TestSuite(cli_bad_input, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 800);

Test(cli_bad_input, table)
{
    setenv("FAGEN_CACHE_DIR", "", 1); /* so that files are counted */
    fixtures();
    size_t before = cli_scratch_files();
    cr_assert_geq(sizeof rows / sizeof *rows, 80);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *words = rows[i].words;
        char says[256];
        cli_result r = cli_run(words);
        sound(words, &r);
        cr_expect_eq(r.code, rows[i].code, "fagen %s: exit %d, not %d: %s", words, r.code, rows[i].code, r.err);
        snprintf(says, sizeof says, "%s", rows[i].says);
        for (char *save, *w = strtok_r(says, "|", &save); w; w = strtok_r(NULL, "|", &save))
            cr_expect(strstr(r.err, w), "fagen %s: does not say \"%s\": %s", words, w, r.err);
        cr_expect(r.out_size == 0 || strstr(words, "--json"), "fagen %s: wrote to standard output: %.80s", words, r.out);
        cr_expect_eq(cli_scratch_files(), before, "fagen %s: left a file", words);
        cli_result_free(&r);
    }
}

/* A cache that is damaged, unsafe or not writable is never an error. */
Test(cli_bad_input, cache)
{
    fixtures();
    static const char *const roots[] = { "file", "/proc/nowhere", "open", "/dev/null", "a:b:c", "::" };
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char words[256];
        snprintf(words, sizeof words, "FAGEN_CACHE_DIR=%s emit -d 64 --format ptx -o k.ptx", roots[i]);
        cli_result r = cli_run(words);
        sound(words, &r);
        cr_expect_eq(r.code, 0, "%s: %s", words, r.err);
        cli_result_free(&r);
        snprintf(words, sizeof words, "FAGEN_CACHE_DIR=%s cache ls", roots[i]);
        r = cli_run(words);
        sound(words, &r);
        cr_expect_eq(r.code, 0, "%s: %s", words, r.err);
        cli_result_free(&r);
    }
}

Test(cli_bad_input, damaged_kernels)
{
    setenv("FAGEN_CACHE_DIR", "kept", 1);
    cli_result r = cli_run("run -d 64 -n 32 --heads 1");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cli_result_free(&r);
    cr_assert_eq(
        system("for f in $(find kept -name '*.fak'); do chmod u+w $f; printf xyz | dd of=$f bs=1 seek=100 conv=notrunc 2>/dev/null; done"),
        0);
    cr_assert_eq(system("for f in $(find kept -name '*.jsonl'); do printf '{\"broken' >> $f; done"), 0);
    static const char *const after[] = { "cache ls", "cache ls --json", "show -d 64", "run -d 64 -n 32 --heads 1",
                                         "run -d 64 -n 32 --heads 1" };
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        r = cli_run(after[i]);
        sound(after[i], &r);
        cr_expect_eq(r.code, 0, "%s: %s", after[i], r.err);
        cli_result_free(&r);
    }
}
