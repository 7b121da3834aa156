/* fleet: the processes that share the problems of one `fagen tune`, and what is known of them. */
#ifndef FA_CLI_TUNE_FLEET_H
#define FA_CLI_TUNE_FLEET_H
#include "cli/text/progress.h"
#include "devices.h"
#include "gen/text.h"
#include "tune.h"
#include <sys/types.h>

typedef struct worker {
    size_t device;               /* whose */
    int member;                  /* of its device lock, from 0 */
    fa_device_lock *device_lock; /* to tell of its death */
    pid_t pid;
    int fd;        /* both ways; -1: no process */
    fa_text heard; /* of a line that is not complete */
    bool ready, given_up;
    ptrdiff_t at; /* its problem; -1 = none */
    tune_view view;
    int deaths, restarts;
    json_int_t done;
} worker;

typedef struct fleet {
    tune_run *r;
    worker *worker;
    size_t n;
    const char *const *device;
    size_t devices;
    int device_lock[CLI_DEVICES_MOST]; /* one for each */
    struct task {
        int tries;
        bool taken;
        bool alone;       /* there was no memory for it beside another: no other process works on the device meanwhile */
        ptrdiff_t not_on; /* the worker whose process died of it; -1 = none */
    } * task;
    cli_progress bar;
    bool stopping;
    bool hopeless;    /* no process can compile */
    fa_status status; /* why that is, or a device was given up */
    char why[1024];
} fleet;

/* Starts a worker's process. */
fa_status fleet_spawn(fleet *f, worker *h);
/* No more processes for it. */
void fleet_give_up(fleet *f, worker *h, fa_status st, const char *why);
/* Its process ended or its line broke: its problem goes to another, and it gets a new process, unless that happens too often. */
void fleet_reap(fleet *f, worker *h);
/* Takes in what has come. False: the process is gone. */
bool fleet_hear(fleet *f, worker *h);

size_t fleet_workers_up(const fleet *f);
size_t fleet_devices_up(const fleet *f); /* with at least one worker */
/* Problems without a result: those under way use the devices as well. */
size_t fleet_open(const fleet *f);
/* The next problem for a worker, -1 = none now. One that a process died of goes to another, while there is one. */
ptrdiff_t fleet_next(const fleet *f, const worker *h);
/* Whether h's problem ended so because others share the device, and it was not tried alone yet; status by name, may be NULL. */
bool fleet_lacks_memory(const fleet *f, const worker *h, const char *status);
void fleet_put_back_alone(fleet *f, worker *h);
#endif
