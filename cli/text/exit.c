/* exit: from a status to an exit code, a message and, with --json, a document. */
#include "cli.h"
#include "gen/text.h"
#include "say.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const struct {
    int code;
    const char *text;
} codes[] = {
    { CLI_EXIT_OK, "done" },
    { CLI_EXIT_USAGE, "bad usage: an argument is wrong, or the problem is not one that any kernel computes" },
    { CLI_EXIT_MISSING,
      "the environment lacks something: the driver, a device, NVRTC (fagen doctor tells what), or a disassembler for show --sass" },
    { CLI_EXIT_NO_FIT, "no config fits the shared-memory or register budget; the message names the smallest that would" },
    { CLI_EXIT_WRONG, "verification failed" },
    { CLI_EXIT_COMPILE, "a template failed, or NVRTC refused what it made" },
    { CLI_EXIT_DEVICE, "the device, the simulator's checks or the host's memory failed" },
    { CLI_EXIT_FILE, "a file could not be read or written; nothing half-written is left" },
    { CLI_EXIT_NO_CANDIDATE, "tune: none of the candidates that were tried ran, or without a device none is sound: all spill registers" },
    { CLI_EXIT_INTERRUPTED,
      "stopped by SIGINT or SIGTERM, or tune's --budget was up before any problem had a winner; results so far are kept" },
};

static const struct {
    fa_status status;
    int code;
    const char *hint; /* what to do about it, or NULL */
} statuses[] = {
    { FA_OK, CLI_EXIT_OK, NULL },
    { FA_INVALID, CLI_EXIT_USAGE, NULL },
    { FA_UNSUPPORTED, CLI_EXIT_USAGE, NULL },
    { FA_NO_DRIVER, CLI_EXIT_MISSING, "--device sim:sm_80 runs on the simulator; fagen doctor tells what was looked at" },
    { FA_NO_NVRTC, CLI_EXIT_MISSING,
      "install the CUDA toolkit or the wheel nvidia-cuda-nvrtc, or set FAGEN_NVRTC; fagen doctor shows every place" },
    { FA_COMPILE, CLI_EXIT_COMPILE, NULL },
    { FA_DEVICE, CLI_EXIT_DEVICE, NULL },
    { FA_NO_FIT, CLI_EXIT_NO_FIT, NULL },
    { FA_NO_KERNEL, CLI_EXIT_MISSING, NULL },
    { FA_IO, CLI_EXIT_FILE, NULL },
    { FA_NOMEM, CLI_EXIT_DEVICE, NULL },
    { FA_INTERNAL, CLI_EXIT_DEVICE, "this is a defect of fagen: please report it" },
    { FA_CAPTURE, CLI_EXIT_DEVICE, NULL },
    { FA_TEMPLATE, CLI_EXIT_COMPILE, NULL },
    { FA_WRONG, CLI_EXIT_WRONG, NULL },
    { FA_INTERRUPTED, CLI_EXIT_INTERRUPTED, NULL },
};

static size_t row_of(fa_status st)
{
    size_t i = 0;
    while (i < sizeof statuses / sizeof *statuses - 1 && statuses[i].status != st)
        i++;
    return i;
}

int cli_exit_of(fa_status st)
{
    return statuses[row_of(st)].code;
}

bool cli_exit_at(size_t i, cli_term *out)
{
    if (i >= sizeof codes / sizeof *codes)
        return false;
    *out = (cli_term){ NULL, codes[i].code, codes[i].text };
    return true;
}

/* Messages quote what was given, which need not be UTF-8: what is not ASCII becomes '?' then. */
static json_t *text_of(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", s);
    for (char *p = copy; *p; p++)
        *p = (unsigned char)*p < 0x80 ? *p : '?';
    return json_string(copy);
}

int cli_fail(cli *c, fa_status st)
{
    return cli_fail_with(c, st, cli_exit_of(st));
}

int cli_fail_with(cli *c, fa_status st, int code)
{
    const char *hint = statuses[row_of(st)].hint;
    fprintf(stderr, "fagen%s%s: %s\n", c->command ? " " : "", c->command ? c->command : "", fa_last_error());
    if (hint)
        fprintf(stderr, "  %s\n", hint);
    if (c->json && !c->answered)
        cli_answer(
            c, json_pack("{s:{s:s,s:o,s:i}}", "error", "status", fa_status_name(st), "message", text_of(fa_last_error()), "exit", code), 0);
    return code;
}

void cli_note(const cli *c, const char *fmt, ...)
{
    va_list ap;
    if (c->quiet)
        return;
    va_start(ap, fmt);
    cli_vsay(stderr, "fagen: ", fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

json_t *cli_json_number(double x)
{
    if (!isfinite(x))
        return json_null();
    return x == floor(x) && fabs(x) < 9007199254740992.0 ? json_integer((json_int_t)x) : json_real(x);
}

int cli_answer(cli *c, json_t *doc, int code)
{
    c->answered = true;
    if (!doc) { /* json_pack refuses text that is not UTF-8 */
        puts("{\"error\": {\"status\": \"FA_INTERNAL\", \"message\": \"the answer has no form in JSON\", \"exit\": 6}}");
        return code ? code : CLI_EXIT_DEVICE;
    }
    json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(doc);
    return code;
}

static char *slot(void)
{
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned at;
    return texts[at++ % 8];
}

const char *cli_show_if(bool told, const char *fmt, double x)
{
    char *s = slot();
    snprintf(s, 32, told ? fmt : "-", x);
    return s;
}

const char *cli_show_bytes(double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    size_t u = 0;
    char *s = slot();
    while (bytes >= 1024 && u < 5) {
        bytes /= 1024;
        u++;
    }
    snprintf(s, 32, u ? "%.2f %s" : "%.0f %s", bytes, units[u]);
    return s;
}

const char *cli_show_seconds(double t)
{
    char *s = slot();
    if (t < 1e-6)
        snprintf(s, 32, "%.0f ns", t * 1e9);
    else if (t < 1e-3)
        snprintf(s, 32, "%.2f us", t * 1e6);
    else if (t < 1)
        snprintf(s, 32, "%.2f ms", t * 1e3);
    else
        snprintf(s, 32, "%.2f s", t);
    return s;
}

const char *cli_show_time(int64_t ns)
{
    return fa_text_date(slot(), 32, ns / 1000000000);
}
