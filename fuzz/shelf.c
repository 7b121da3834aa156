/* shelf: a bundle of compiled kernels, written as lines of text: what fa_create() looks at. Whatever is accepted keeps to its ranges, and
 * every problem finds a row that runs it or none. */
#include "fuzz.h"
#include "gen/problem.h"
#include "runtime/shelf.h"

enum { MOST = 3 };

/* The next line; the last one again when there is none left. */
static char *line(char **at)
{
    char *s = *at, *end = strchr(s, '\n');
    if (end) {
        *end = 0;
        *at = end + 1;
    }
    return s;
}

static int32_t number(char **at)
{
    char *end;
    long long v = strtoll(*at, &end, 10);
    *at = end + (*end == ' ');
    return (int32_t)v;
}

static void read_step(fa_bundle_step *s, char **at)
{
    char *n;
    s->entry = line(at);
    n = line(at);
    int32_t *const to[] = {&s->threads, &s->smem, &s->br, &s->bc, &s->pack, &s->per_sm, &s->cluster, &s->counter, &s->early, &s->registers, &s->spills, &s->maps};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        *to[i] = number(&n);
    for (int m = 0; m < 4; m++)
        s->map[m] = (fa_bundle_map){number(&n), number(&n), number(&n), number(&n)};
}

static void read_image(fa_bundle_image *i, char **at, char check[33])
{
    char *n;
    i->arch = line(at);
    i->config = line(at);
    i->source = line(at);
    i->bytes = (const unsigned char *)line(at);
    i->size = strlen((const char *)i->bytes) + 1;
    n = line(at);
    i->ptx = number(&n);
    i->score_bytes = number(&n);
    i->steps = number(&n);
    for (int s = 0; s < 4; s++)
        read_step(&i->step[s], at);
    i->check = line(at);
    if (i->check[0] == '=' && i->steps >= 1 && i->steps <= 4 && i->step[0].maps >= 0 && i->step[0].maps <= 4 && i->step[1].maps == 0 &&
        i->step[2].maps == 0 && i->step[3].maps == 0) { /* the right one */
        fa_key_print(check, fa_shelf_check(i));
        i->check = check;
    }
}

static void judge(const fa_shelf *s)
{
    static cu_driver driver[2] = {{.takes_ptx = false}, {.takes_ptx = true}};
    for (size_t r = 0; r < s->n; r++)
        for (size_t a = 0; a < fa_arch_count(); a++)
            for (int k = 0; k < 4; k++) {
                fa_device d = {.driver = &driver[k & 1], .arch = *fa_arch_at(a)};
                fa_problem p = s->row[r].problem;
                fa_source source;
                p.sq = p.sk = 777;
                const fa_shelf_row *found = fa_shelf_find(s, &p, &d, 100000, k & 2 ? FA_SHELF_ANY : FA_SHELF_OWN);
                if (!found)
                    continue;
                FUZZ_CHECK(found->problem.d == p.d && found->problem.align <= p.align && (found->image->ptx || !d.driver->takes_ptx));
                fa_shelf_source(&source, found->image);
                FUZZ_CHECK(source.steps >= 1 && source.steps <= FA_SOURCE_STEPS && !source.text);
                for (int i = 0; i < source.steps; i++)
                    FUZZ_CHECK(source.step[i].threads >= 1 && source.step[i].threads <= 1024 && source.step[i].smem <= 100000 &&
                               source.step[i].cluster >= 1 && source.step[i].n_maps <= FA_STEP_MAPS && source.step[i].entry[0]);
            }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size, 1), *at = text, *head = line(&at), check[MOST][33];
    static fa_bundle_image image[MOST];
    static fa_bundle_row row[MOST];
    fa_bundle b = {sizeof b, 0, "fuzzed", "0", 0, row, image, 0, 0};
    const fa_bundle *const list[] = {&b, NULL};
    fa_shelf shelf;
    b.format = (uint32_t)number(&head);
    b.params = number(&head) == 1 ? fa_shelf_params() : 0;
    b.images = (uint32_t)number(&head) % (MOST + 1);
    b.rows = (uint32_t)number(&head) % (MOST + 1);
    for (uint32_t i = 0; i < b.images; i++)
        read_image(&image[i], &at, check[i]);
    for (uint32_t i = 0; i < b.rows; i++) {
        char *n = line(&at);
        row[i].image = (uint32_t)number(&n);
        row[i].problem = line(&at);
        row[i].why = row[i].problem[0] ? "why" : NULL;
    }
    if (fa_shelf_open(&shelf, list) == FA_OK) {
        FUZZ_CHECK(b.format == FA_BUNDLE_FORMAT && shelf.n == b.rows);
        judge(&shelf);
    }
    fa_shelf_close(&shelf);
    free(text);
    return 0;
}
