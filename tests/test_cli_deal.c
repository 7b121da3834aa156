/* Which problem goes to which process of `fagen tune`, on a table: no process runs here. */
#include "cli/tune/fleet.h"
#include <criterion/criterion.h>
#include <string.h>

#define PROBLEMS 5

/* Two devices, two workers on each: 0 and 2 on the first, 1 and 3 on the second. */
typedef struct scene {
    tune_run run;
    json_t *result[PROBLEMS];
    worker worker[4];
    struct task task[PROBLEMS];
    fleet f;
} scene;

static void open_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    s->run.list.n = PROBLEMS;
    s->run.result = s->result;
    for (size_t i = 0; i < 4; i++)
        s->worker[i] = (worker){ .device = i % 2, .fd = 3, .at = -1 };
    for (size_t i = 0; i < PROBLEMS; i++)
        s->task[i].not_on = -1;
    s->f = (fleet){ .r = &s->run, .worker = s->worker, .n = 4, .devices = 2, .task = s->task };
}

static void close_scene(scene *s)
{
    for (size_t i = 0; i < PROBLEMS; i++)
        json_decref(s->result[i]);
}

/* The problem that worker i is given, as the fleet does it. */
static ptrdiff_t give(scene *s, size_t i)
{
    ptrdiff_t at = fleet_next(&s->f, &s->worker[i]);
    if (at >= 0) {
        s->task[at].taken = true;
        s->worker[i].at = at;
    }
    return at;
}

/* Worker i has told its result. */
static void end(scene *s, size_t i)
{
    s->result[s->worker[i].at] = json_object();
    s->worker[i].at = -1;
}

static bool lacks_memory(scene *s, size_t i, const char *status)
{
    bool again = fleet_lacks_memory(&s->f, &s->worker[i], status);
    if (again)
        fleet_put_back_alone(&s->f, &s->worker[i]);
    return again;
}

Test(cli_deal, each_problem_once_and_in_order)
{
    scene s;
    open_scene(&s);
    for (ptrdiff_t i = 0; i < 4; i++)
        cr_assert_eq(give(&s, (size_t)i), i);
    cr_assert_eq(fleet_open(&s.f), 5, "what somebody is at counts");
    end(&s, 1);
    cr_assert_eq(fleet_open(&s.f), 4);
    cr_assert_eq(give(&s, 1), 4);
    end(&s, 0);
    cr_assert_eq(give(&s, 0), -1);
    close_scene(&s);
}

Test(cli_deal, who_is_up)
{
    scene s;
    open_scene(&s);
    cr_assert(fleet_workers_up(&s.f) == 4 && fleet_devices_up(&s.f) == 2);
    s.worker[1].fd = -1;
    cr_assert(fleet_workers_up(&s.f) == 3 && fleet_devices_up(&s.f) == 2);
    s.worker[3].fd = -1;
    cr_assert(fleet_workers_up(&s.f) == 2 && fleet_devices_up(&s.f) == 1);
    close_scene(&s);
}

Test(cli_deal, what_killed_a_process_goes_to_another)
{
    scene s;
    open_scene(&s);
    s.task[0].not_on = 0;
    cr_assert_eq(fleet_next(&s.f, &s.worker[0]), 1);
    cr_assert_eq(fleet_next(&s.f, &s.worker[1]), 0);
    s.worker[1].fd = s.worker[2].fd = s.worker[3].fd = -1;
    cr_assert_eq(fleet_next(&s.f, &s.worker[0]), 0, "there is no other");
    close_scene(&s);
}

Test(cli_deal, what_lacked_memory_is_alone_on_its_device)
{
    scene s;
    open_scene(&s);
    for (size_t i = 0; i < 4; i++)
        give(&s, i);
    cr_assert_not(lacks_memory(&s, 0, "FA_OK"));
    cr_assert_not(lacks_memory(&s, 0, "FA_COMPILE") || lacks_memory(&s, 0, NULL));
    cr_assert_eq(s.worker[0].at, 0);
    cr_assert(lacks_memory(&s, 0, "FA_NOMEM"));
    cr_assert_eq(s.worker[0].at, -1);
    cr_assert_eq(fleet_open(&s.f), 5);
    cr_assert_eq(give(&s, 0), 4, "2 is at work beside it: something else meanwhile");
    end(&s, 0);
    cr_assert_eq(give(&s, 0), -1);
    end(&s, 1);
    end(&s, 3);
    cr_assert_eq(give(&s, 1), 0, "nobody is at work on the other device");
    cr_assert_not(lacks_memory(&s, 1, "FA_NOMEM"), "it was alone, and that is the answer");
    end(&s, 1);
    close_scene(&s);

    open_scene(&s);
    s.task[0].alone = true;
    cr_assert_eq(give(&s, 0), 0);
    cr_assert_eq(give(&s, 2), -1, "nobody works beside it");
    cr_assert_eq(give(&s, 1), 1, "on another device they do");
    end(&s, 0);
    cr_assert_eq(give(&s, 2), 2);
    close_scene(&s);

    open_scene(&s);
    s.f.n = 2; /* one process on each device: there is nobody beside it */
    give(&s, 0);
    cr_assert_not(lacks_memory(&s, 0, "FA_NOMEM"));
    close_scene(&s);
}
