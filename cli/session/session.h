/* session: a context for one command, on the device that was asked for, or on the simulator where there is no GPU. */
#ifndef FA_CLI_SESSION_SESSION_H
#define FA_CLI_SESSION_SESSION_H
#include "cli/options/command.h"
#include "runtime/runtime.h"

typedef struct cli_where {
    const char *device; /* NULL = FAGEN_DEVICE, else the first GPU, else sim:sm_80 */
    int32_t sram;       /* 0 = what the chip offers */
    const char *arch;   /* the simulator of it instead of a device; NULL = none */
} cli_where;
extern const cli_option cli_where_options[];
#define CLI_WHERE(type)                                        \
    {                                                          \
        "The device", cli_where_options, offsetof(type, where) \
    }
/* The same without --arch, which a command has with another meaning. */
extern const cli_option cli_device_options[];
#define CLI_DEVICE(type)                                        \
    {                                                           \
        "The device", cli_device_options, offsetof(type, where) \
    }

typedef struct cli_session {
    fa_context *ctx;
    fa_entered in; /* the device's context is current until the session ends */
    bool simulated;
    bool stands_in;  /* the simulator, in the place of a GPU that is not there */
    char device[64]; /* "cuda:0", "sim:sm_80" */
} cli_session;

/* Tells in one note when the simulator takes the place of a GPU. */
fa_status cli_session_open(cli_session *out, const cli *c, const cli_where *w);
void cli_session_close(cli_session *s); /* zeros are fine */

/* A context like the session's over another driver table: its device, its budget. */
fa_status cli_session_again(fa_context **out, const cli_session *s, const cli_where *w, const char *cache_dir, const cu_driver *driver);

/* What --config names for the problem on the session's device; see cli_pick. */
fa_status cli_session_config(const cli_session *s, const fa_problem *p, const char *text, fa_config *out);

/* "NVIDIA H200 (sm_90a)" */
const char *cli_session_chip(const cli_session *s, char *buf, size_t n);
/* {"device", "chip", "arch", "simulated"} */
json_t *cli_session_json(const cli_session *s);
#endif
