/* The lock of a device: one has it at a time, who dies gives it back, and a search holds it whenever it uses the device and at no other
 * time. The search runs on a driver that only pretends, with a backend that looks who has the device lock. */
#include "autotune/device/clock.h"
#include "autotune/search/search.h"
#include "fake_driver.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

TestSuite(tune_device_lock, .timeout = 60);

static fa_device_lock *join(int fd, int member)
{
    fa_device_lock *s;
    cr_assert_eq(fa_device_lock_join(&s, fd, member), FA_OK, "%s", fa_last_error());
    return s;
}

Test(tune_device_lock, one_has_it_at_a_time)
{
    int fd = fa_device_lock_make();
    cr_assert_geq(fd, 0);
    fa_device_lock *a = join(fd, 0), *b = join(fd, 1);
    close(fd);
    cr_assert(fa_device_lock_acquire(a, 0));
    cr_assert(fa_device_lock_acquire(a, 0), "who has it has it");
    double from = fa_clock();
    cr_assert_not(fa_device_lock_acquire(b, 0.05));
    cr_assert_geq(fa_clock() - from, 0.05);
    fa_device_lock_release(b); /* not b's to give */
    cr_assert_not(fa_device_lock_acquire(b, 0));
    fa_device_lock_release(a);
    fa_device_lock_release(a);
    cr_assert(fa_device_lock_acquire(b, 0));
    fa_device_lock_leave(b); /* gives it */
    cr_assert(fa_device_lock_acquire(a, 0));
    fa_device_lock_leave(a);
    cr_assert(fa_device_lock_acquire(NULL, 0) && fa_device_lock_beside(NULL) == 0);
    fa_device_lock_release(NULL);
    fa_device_lock_report(NULL, 1);
}

Test(tune_device_lock, the_processes_of_the_others_are_counted)
{
    int fd = fa_device_lock_make();
    fa_device_lock *a = join(fd, 0), *b = join(fd, 1), *c = join(fd, FA_DEVICE_LOCK_MEMBERS - 1);
    fa_device_lock_report(a, 2);
    fa_device_lock_report(b, 1);
    cr_assert(fa_device_lock_beside(a) == 1 && fa_device_lock_beside(b) == 2 && fa_device_lock_beside(c) == 3);
    fa_device_lock_report(a, 0);
    cr_assert(fa_device_lock_beside(b) == 0);
    fa_device_lock_leave(a);
    fa_device_lock_leave(b);
    fa_device_lock_leave(c);
    close(fd);
}

Test(tune_device_lock, what_is_no_lock_is_refused)
{
    fa_device_lock *s;
    int fd = fa_device_lock_make(), other = memfd_create("other", 0);
    cr_assert_eq(fa_device_lock_join(&s, fd, FA_DEVICE_LOCK_MEMBERS), FA_INVALID);
    cr_assert_eq(fa_device_lock_join(&s, fd, -1), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "member is -1; accepted: 0 to 7"), "%s", fa_last_error());
    cr_assert_eq(fa_device_lock_join(&s, other, 0), FA_INVALID);
    cr_assert_eq(fa_device_lock_join(&s, 999, 0), FA_INVALID);
    cr_assert_null(s);
    close(fd);
    close(other);
}

Test(tune_device_lock, a_holder_that_dies_gives_it_back)
{
    int fd = fa_device_lock_make(), ready[2];
    fa_device_lock *mine = join(fd, 0);
    for (int i = 0; i < 3; i++) {
        char byte = 0;
        cr_assert_eq(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            fa_device_lock *its = join(fd, 1);
            byte = fa_device_lock_acquire(its, 5);
            _exit(write(ready[1], &byte, 1) == 1 ? pause() : 1);
        }
        cr_assert_eq(read(ready[0], &byte, 1), 1);
        cr_assert(byte);
        cr_assert_not(fa_device_lock_acquire(mine, 0.01));
        kill(pid, SIGKILL);
        cr_assert(fa_device_lock_acquire(mine, 5), "time %d", i);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        fa_device_lock_release(mine);
        close(ready[0]);
        close(ready[1]);
    }
    fa_device_lock_leave(mine);
    close(fd);
}

/* ---- a search beside another ---- */

static const char lua[] = "return { doc = 'x', default = false,\n"
                          "  tunables = { { 'br', { 16, 32, 48, 64 }, 'r' }, { 'bc', { 8, 16, 24, 32 }, 'c' } },\n"
                          "  supports = function() return true end,\n"
                          "  constraints = {},\n"
                          "  layout = function(p, c) return { bytes = c.br * c.bc, threads = 64, regs = 32 } end,\n"
                          "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end,\n"
                          "  work = function(p, c) return { rows = c.br, cols = c.bc } end }\n";
static const char cu[] = "extern \"C\" __global__ void toy(int *o) { o[threadIdx.x] = $(c.br) + $(c.bc); }\n";

#define LIMIT 8 /* candidates of the first batch */

typedef struct scene {
    char dir[64];
    fa_context *ctx;
    fa_site site;
    fa_problem p;
    fa_measure_backend backend;
    fa_device_lock *rival;
    atomic_bool busy, over;  /* the rival measures; the search is done */
    atomic_int measured;     /* times that it did */
    int used;                /* how often the search used the device */
    int judged, first, last; /* candidates; what the rival had measured by the first and by the last of the first batch */
    bool alone;              /* each time it had the device lock */
    int others;              /* processes that NVML sees beside the search's own */
    atomic_int waits;        /* words of waiting so far */
    int stop_after;          /* after how many it is stopped, 0 = never */
} scene;

/* Somebody has the lock, and it is not the rival. */
static void look(scene *s)
{
    s->used++;
    s->alone &= !atomic_load(&s->busy) && !fa_device_lock_acquire(s->rival, 0);
}

static fa_status judge(fa_measure_backend *backend, fa_candidate *c)
{
    scene *s = backend->user;
    (void)c;
    look(s);
    s->judged++;
    if (s->judged == 1)
        s->first = atomic_load(&s->measured);
    if (s->judged == LIMIT)
        s->last = atomic_load(&s->measured);
    return FA_OK;
}

static fa_status sample(fa_measure_backend *backend, fa_candidate *c, bool warm)
{
    int br = fa_config_get(&c->config, "br", 0), bc = fa_config_get(&c->config, "bc", 0);
    look(backend->user);
    fa_samples_add(warm ? &c->warm_samples : &c->samples, 1e-4 * (1 + 0.1 * abs(br - 32) / 16 + 0.05 * abs(bc - 16) / 8));
    return FA_OK;
}

static fa_telemetry telemetry(fa_measure_backend *backend)
{
    return (fa_telemetry){ .foreign = ((scene *)backend->user)->others };
}

static int progress(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    scene *s = user;
    (void)t, (void)latest, (void)done;
    if (!strcmp(stage, "wait"))
        atomic_fetch_add(&s->waits, 1);
    return s->stop_after && atomic_load(&s->waits) >= s->stop_after;
}

static void open_scene(scene *s, int fd)
{
    fa_options o = FA_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    scratch_make();
    toy_dir(s->dir, cu);
    toy_write(s->dir, "toy.lua", lua);
    o.cache_dir = scratch;
    o.template_dir = s->dir;
    const cu_driver *driver = fake_driver();
    fake_ptx(false);
    cr_assert_eq(fa_create_on(&s->ctx, &o, driver, 0), FA_OK, "%s", fa_last_error());
    s->site = fa_site_of(s->ctx);
    cr_assert_eq(fa_problem_parse(&s->p, "bf16,d=64,b=1,hq=2,hkv=2,sq=256,sk=256"), FA_OK);
    s->backend = (fa_measure_backend){ .judge = judge, .sample = sample, .telemetry = telemetry, .user = s };
    s->site.device_lock = join(fd, 0);
    s->rival = join(fd, 1);
    fa_device_lock_report(s->rival, 2);
    s->alone = true;
}

static void close_scene(scene *s)
{
    fa_device_lock_leave(s->rival);
    fa_device_lock_leave(s->site.device_lock);
    fa_destroy(s->ctx);
    fake_ptx(true);
    toy_remove(s->dir, NULL);
    scratch_remove();
}

/* A thread that has the device lock as its own member. */
typedef struct other {
    scene *s;
    int fd;
} other;

/* Another search: it measures whenever it can, 3 ms long. */
static void *measure(void *user)
{
    other *o = user;
    fa_device_lock *lock = join(o->fd, 2);
    while (!atomic_load(&o->s->over)) {
        if (!fa_device_lock_acquire(lock, 0.01))
            continue;
        atomic_store(&o->s->busy, true);
        usleep(3000);
        atomic_fetch_add(&o->s->measured, 1);
        atomic_store(&o->s->busy, false);
        fa_device_lock_release(lock);
        sched_yield();
    }
    fa_device_lock_leave(lock);
    return NULL;
}

static fa_search_options options(scene *s)
{
    return (fa_search_options){ .limit = LIMIT, .family = "toy", .threads = 1, .backend = &s->backend, .progress = progress, .user = s };
}

Test(tune_device_lock, two_searches_measure_by_turns)
{
    scene s;
    fa_tuning t;
    pthread_t thread;
    int fd = fa_device_lock_make();
    open_scene(&s, fd);
    other o = { &s, fd };
    fa_search_options so = options(&s);
    cr_assert_eq(pthread_create(&thread, NULL, measure, &o), 0);
    while (!atomic_load(&s.measured))
        usleep(1000);
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_OK, "%s", fa_last_error());
    atomic_store(&s.over, true);
    pthread_join(thread, NULL);
    cr_assert(s.alone, "the device was used without the device lock");
    cr_assert_gt(s.used, 40);
    cr_assert_gt(s.last, s.first + 3, "the other one measured %d times while the first batch was compiled", s.last - s.first);
    cr_assert(fa_device_lock_acquire(s.rival, 0), "a search that is over leaves the device lock");
    fa_tuning_free(&t);
    close_scene(&s);
    close(fd);
}

Test(tune_device_lock, others_of_the_lock_are_no_strangers)
{
    scene s;
    fa_tuning t;
    int fd = fa_device_lock_make();
    open_scene(&s, fd);
    fa_search_options so = options(&s);
    so.again = true;
    for (s.others = 2; s.others <= 3; s.others++) { /* two are the rival's */
        cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_OK, "%s", fa_last_error());
        cr_assert_eq(t.winner->quality, s.others == 2 ? FA_QUALITY_STEADY : FA_QUALITY_CONTENDED, "%s with %d",
                     fa_quality_name(t.winner->quality), s.others);
        fa_tuning_free(&t);
    }
    close_scene(&s);
    close(fd);
}

/* Until the search has said four times, a tenth of a second apart, that it waits; for ten seconds at most. */
static void *hold(void *user)
{
    other *o = user;
    fa_device_lock *lock = join(o->fd, 2);
    cr_assert(fa_device_lock_acquire(lock, 0));
    atomic_store(&o->s->busy, true);
    for (int i = 0; i < 1000 && atomic_load(&o->s->waits) < 4; i++)
        usleep(10000);
    atomic_store(&o->s->busy, false);
    fa_device_lock_leave(lock);
    return NULL;
}

Test(tune_device_lock, waiting_does_not_count_and_can_be_stopped)
{
    scene s;
    fa_tuning t;
    pthread_t thread;
    int fd = fa_device_lock_make();
    open_scene(&s, fd);
    fa_search_options so = options(&s);
    cr_assert(fa_device_lock_acquire(s.rival, 0));
    s.stop_after = 3;
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_INTERRUPTED);
    cr_assert_eq(s.used, 0, "it was stopped, and used the device all the same");
    cr_assert_eq(t.counts.verified, 0);
    fa_tuning_free(&t);
    fa_device_lock_release(s.rival);

    s.stop_after = 0;
    atomic_store(&s.waits, 0);
    other o = { &s, fd };
    cr_assert_eq(pthread_create(&thread, NULL, hold, &o), 0);
    while (!atomic_load(&s.busy))
        usleep(1000);
    double from = fa_clock();
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_OK, "%s", fa_last_error());
    double wall = fa_clock() - from;
    pthread_join(thread, NULL);
    cr_assert(s.alone);
    cr_assert_geq(atomic_load(&s.waits), 4);
    cr_assert_leq(t.elapsed, wall - 0.39, "%.2f of %.2f s, of which it waited 0.4", t.elapsed, wall);
    fa_tuning_free(&t);
    close_scene(&s);
    close(fd);
}

/* A holder that is stopped keeps it: the search ends, and says why. */
Test(tune_device_lock, a_wait_has_an_end)
{
    scene s;
    fa_tuning t;
    int status, fd = fa_device_lock_make();
    open_scene(&s, fd);
    pid_t pid = fork();
    if (pid == 0) {
        bool has = fa_device_lock_acquire(join(fd, 2), 0);
        raise(SIGSTOP);
        _exit(!has);
    }
    cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
    cr_assert(WIFSTOPPED(status));
    fa_search_options so = options(&s);
    so.device_wait = -1;
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_INVALID);
    so.device_wait = 0.02;
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_INTERRUPTED);
    cr_assert(strstr(fa_last_error(), "holds the device for more than 0.02 s"), "%s", fa_last_error());
    cr_assert_eq(s.used, 0, "the device was used without the device lock");
    fa_tuning_free(&t);
    kill(pid, SIGCONT);
    cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_eq(fa_search(&s.site, &s.p, &so, &t), FA_OK, "%s", fa_last_error());
    fa_tuning_free(&t);
    close_scene(&s);
    close(fd);
}
