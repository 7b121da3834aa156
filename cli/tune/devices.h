/* devices: a list of devices that share one work. */
#ifndef FA_CLI_TUNE_DEVICES_H
#define FA_CLI_TUNE_DEVICES_H
#include <fagen.h>
#include <stdbool.h>
#include <stddef.h>

#define CLI_DEVICES_MOST 64

typedef struct cli_devices {
    char name[CLI_DEVICES_MOST][32]; /* "cuda:0", "sim:sm_80" */
    size_t n;
    char left_out[128]; /* of "all": what is of another kind; "" = nothing */
} cli_devices;

/* text: "all", or numbers and names between commas: "0,1,3", "cuda:0,cuda:1", "sim:sm_80,sim:sm_80". All are of one chip: results on
 * one stand for the others. "all" takes the GPUs that are like the first. No GPU twice; simulators may repeat. FA_INVALID, FA_NO_DRIVER. */
fa_status cli_devices_read(cli_devices *out, const char *text);
/* The GPU of that name (cuda, cuda:N), as the only one; false where there is none, or it is not of that arch (NULL: any). */
bool cli_devices_gpu(cli_devices *out, const char *name, const char *arch);
/* GPUs like the first, itself among them; 0 without a driver. */
size_t cli_devices_alike(void);
#endif
