/* What a family declares: names of values, rank, reference, tile, steps, moves and what its constraints are about. */
#include "gen/templates.h"
#include "rowwise.h"
#include "test_gen_toy.h"
#include "test_shipped.h"

static void open_pair(char dir[64], const char *lua, fa_gen **g)
{
    toy_dir(dir, "x $(c.walk) $(config_text)\n");
    toy_write(dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(g, dir), FA_OK, "%s", fa_last_error());
}

#define BASE                                                                                               \
    "supports = function() return true end, layout = function() return { bytes = 0, threads = 32 } end,\n" \
    "  steps = function() return { { entry = 'x', grid = 'hq b' } } end, "
static const char named_lua[] = "return { doc = 'x', default = false, constraints = {}, " BASE "tunables = {\n"
                                "  { 'walk', { { 1, 'forward' }, { 0, 'backward' }, 7 }, 'w' }, { 'n', { 1, 2 }, 'n' } } }\n";

Test(family, names_are_for_people_and_numbers_for_records)
{
    static const struct {
        const char *in, *named, *numbers;
    } rows[] = {
        { "toy:walk=forward,n=2", "toy:walk=forward,n=2", "toy:walk=1,n=2" },
        { "toy:walk=1,n=2", "toy:walk=forward,n=2", "toy:walk=1,n=2" },
        { "toy: n = 1 , walk = backward", "toy:n=1,walk=backward", "toy:n=1,walk=0" },
        { "toy:walk=7", "toy:walk=7", "toy:walk=7" },
        { "other:walk=1", "other:walk=1", "other:walk=1" },
        { "toy", "toy", "toy" },
    };
    char dir[64], text[128];
    fa_gen *g;
    open_pair(dir, named_lua, &g);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c, again;
        cr_assert_eq(fa_gen_config_parse(g, &c, rows[i].in), FA_OK, "%s", fa_last_error());
        cr_expect_eq(fa_gen_config_print(g, text, sizeof text, &c), (int)strlen(rows[i].named));
        cr_expect_str_eq(text, rows[i].named);
        cr_assert_eq(fa_gen_config_parse(g, &again, text), FA_OK);
        cr_expect(fa_config_equal(&c, &again));
        fa_config_print(text, sizeof text, &c);
        cr_expect_str_eq(text, rows[i].numbers);
        cr_assert_eq(fa_config_parse(&again, text), FA_OK);
        cr_expect(fa_config_equal(&c, &again), "a record of it is the same config");
    }
    fa_config c;
    cr_assert_eq(fa_gen_config_parse(g, &c, "toy:walk=forward,n=2"), FA_OK);
    for (size_t room = 0; room < 24; room++) {
        memset(text, '#', sizeof text);
        cr_expect_eq(fa_gen_config_print(g, text, room, &c), 20);
        cr_expect(text[room] == '#' && (!room || strlen(text) == (room < 21 ? room - 1 : 20)));
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(family, a_value_that_is_none_lists_what_is)
{
    static const struct {
        const char *in, *part;
    } rows[] = {
        { "toy:walk=sideways,n=1", "config: walk of toy is \"sideways\"; accepted: forward (1), backward (0), 7" },
        { "toy:walk=,n=1", "walk" },
        { "toy:n=two,walk=1", "config: n is \"two\"; a decimal integer" },
        { "toy:walk=99999999999,n=1", "config: walk is \"99999999999\"" },
        { "toy:walk=2,n=1", "config: walk of toy is 2; accepted: forward (1), backward (0), 7" },
        { "toy:n=1", "config: walk of toy is missing; accepted: forward (1), backward (0), 7" },
        { "other:walk=forward", "config: walk is \"forward\"; a decimal integer" },
    };
    char dir[64];
    fa_gen *g;
    fa_problem p = shaped_problem("bf16,d=64");
    open_pair(dir, named_lua, &g);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c;
        fa_source s = { 0 };
        fa_status st = fa_gen_config_parse(g, &c, rows[i].in);
        if (st == FA_OK)
            st = fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s);
        cr_expect_eq(st, FA_INVALID, "%s", rows[i].in);
        cr_expect(strstr(fa_last_error(), rows[i].part), "%s gave \"%s\"", rows[i].in, fa_last_error());
    }
    fa_config c;
    cr_expect_eq(fa_config_parse(&c, "toy:walk=forward,n=1"), FA_INVALID, "records hold numbers");
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Both spellings are one text, whose header has the names. */
Test(family, the_text_does_not_depend_on_the_spelling)
{
    char dir[64];
    fa_gen *g;
    fa_problem p = shaped_problem("bf16,d=64");
    static const char *const spelling[] = { "toy:walk=forward,n=2", "toy:n=2,walk=1" };
    open_pair(dir, named_lua, &g);
    for (int i = 0; i < 2; i++) {
        fa_config c;
        fa_source s;
        cr_assert_eq(fa_gen_config_parse(g, &c, spelling[i]), FA_OK);
        cr_assert_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s), FA_OK, "%s", fa_last_error());
        cr_expect_str_eq(s.text, "x 1 toy:walk=forward,n=2\n");
        fa_source_free(&s);
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* A tunable that came later: a config of before is one whose value of it is 0, by its text, its equals, its hash and its kernel. */
Test(family, configs_of_before_a_tunable_came_stay)
{
    static const char lua[] = "return { doc = 'x', default = false, constraints = {}, " BASE
                              "tunables = { { 'n', { 1, 2 }, 'n' }, { 'late', { { 0, 'off' }, { 1, 'on' } }, 'late', later = true } } }\n";
    static const struct {
        const char *in, *text, *names;
        bool before, whole;
    } rows[] = {
        { "toy:n=2", "toy:n=2", "x 0 toy:n=2\n", true, true },
        { "toy:n=2,late=0", "toy:n=2", "x 0 toy:n=2\n", true, true },
        { "toy:late=off,n=2", "toy:n=2", "x 0 toy:n=2\n", true, true },
        { "toy:n=2,late=on", "toy:n=2,late=1", "x 1 toy:n=2,late=on\n", false, true },
        { "toy:late=1", "toy:late=1", NULL, false, false },
    };
    char dir[64], text[64];
    fa_gen *g;
    fa_problem p = shaped_problem("bf16,d=64");
    fa_config old;
    toy_dir(dir, "x $(c.late) $(config_text)\n");
    toy_write(dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_gen_load_family(g, "toy"), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&old, "toy:n=2"), FA_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c;
        fa_source s;
        cr_assert_eq(fa_gen_config_parse(g, &c, rows[i].in), FA_OK, "%s", fa_last_error());
        fa_config_print(text, sizeof text, &c);
        cr_expect_str_eq(text, rows[i].text);
        cr_expect_eq(fa_config_equal(&c, &old), rows[i].before, "%s", rows[i].in);
        cr_expect_eq(fa_config_equal(&old, &c), rows[i].before, "%s", rows[i].in);
        cr_expect_eq(fa_config_hash(&old) == fa_config_hash(&c), rows[i].before, "%s", rows[i].in);
        cr_expect_eq(fa_gen_config_whole(g, &c), rows[i].whole, "%s", rows[i].in);
        fa_status st = fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s);
        cr_expect_eq(st, rows[i].names ? FA_OK : FA_INVALID, "%s: %s", rows[i].in, fa_last_error());
        if (rows[i].names)
            cr_expect_str_eq(s.text, rows[i].names);
        fa_source_free(&s);
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(family, scripts_compare_by_name)
{
    static const struct {
        const char *cu, *out; /* out NULL: an error that has part */
        const char *part;
    } rows[] = {
        { "//| if c.walk == c.named.walk.forward then\nahead\n//| end\n", "ahead\n", NULL },
        { "//| if c.walk == c.named.walk.backward then\nahead\n//| end\n", "", NULL },
        { "//| if c.walk == c.named.walk.sideways then\nahead\n//| end\n", NULL, "walk has no field 'sideways'" },
        { "//| if c.n == c.named.n.two then\nahead\n//| end\n", NULL, "the table of named values has no field 'n'" },
    };
    char dir[64];
    fa_problem p = shaped_problem("bf16,d=64");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_gen *g;
        fa_config c;
        fa_source s;
        toy_dir(dir, rows[i].cu);
        toy_write(dir, "toy.lua", named_lua);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_config_parse(&c, "toy:walk=1,n=1"), FA_OK);
        fa_status st = fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s);
        cr_expect_eq(st, rows[i].out ? FA_OK : FA_TEMPLATE, "row %zu: %s", i, fa_last_error());
        if (st == FA_OK)
            cr_expect_str_eq(s.text, rows[i].out);
        else
            cr_expect(strstr(fa_last_error(), rows[i].part), "row %zu: %s", i, fa_last_error());
        fa_source_free(&s);
        fa_gen_close(g);
        toy_remove(dir, NULL);
    }
}

#define WITH(tunables, rest) "return { doc = 'x', default = false, constraints = {}, " BASE "tunables = { " tunables " }, " rest " }\n"
#define FIVE "{ 'a', { 1, 2, 3, 4, 5 }, 'a' }, { 'b', { 1, 2, 3, 4 }, 'b' }"

Test(family, faults_of_a_declaration)
{
    static const struct {
        const char *lua, *part;
    } rows[] = {
        { WITH("{ 'a', { { 1, 'X' } }, 'a' }", ""), "value 1 of tunable a has no name" },
        { WITH("{ 'a', { { 1, '1x' } }, 'a' }", ""), "value 1 of tunable a has no name" },
        { WITH("{ 'a', { { 1, '' } }, 'a' }", ""), "value 1 of tunable a has no name" },
        { WITH("{ 'a', { 0, { 1 } }, 'a' }", ""), "value 2 of tunable a has no name" },
        { WITH("{ 'a', { { 1, 'a23456789012345678901234' } }, 'a' }", ""), "value 1 of tunable a has no name" },
        { WITH("{ 'a', { { 'x', 'y' } }, 'a' }", ""), "value 1 of tunable a is not an integer" },
        { WITH("{ 'a', { { 1, 'y' }, { 2, 'y' } }, 'a' }", ""), "tunable a has two values of the name y" },
        { WITH("{ 'a', { { 1, 'y' }, 1 }, 'a' }", ""), "tunable a lists 1 twice" },
        { WITH("{ 'named', { 1 }, 'a' }", ""), "accepted: any but family, named" },
        { WITH("{ 'family', { 1 }, 'a' }", ""), "accepted: any but family, named" },
        { WITH("{ 'a', { 1 }, 'a', step = 0 }", ""), "step of tunable a is neither" },
        { WITH("{ 'a', { 1 }, 'a', step = 'near' }", ""), "step of tunable a is neither" },
        { WITH("{ 'a', { 1 }, 'a', step = 1.5 }", ""), "step of tunable a is neither" },
        { WITH("{ 'a', { 1, 2 }, 'a', later = true }", ""), "tunable a came later, and has no value 0" },
        { WITH("{ 'a', { 0, 1 }, 'a', later = true }, { 'b', { 0 }, 'b' }", ""), "tunable b stands after one that came later" },
        { WITH(FIVE, "tile = { 'a' }"), "tile is not the names of two tunables" },
        { WITH(FIVE, "tile = { 'a', 'a' }"), "tile is not the names of two tunables" },
        { WITH(FIVE, "tile = { 'a', 'z' }"), "tile is not the names of two tunables" },
        { WITH(FIVE, "tile = 'a'"), "tile is not the names of two tunables" },
        { WITH(FIVE, "moves = { 1 }"), "move 1 is a number" },
        { WITH(FIVE, "moves = { { a = 1, b = 1 }, { a = 1 } }"), "move 2 does not name 2 to 4 tunables" },
        { WITH(FIVE, "moves = { { a = 1, z = 1 } }"), "move 1 does not name 2 to 4 tunables" },
        { WITH(FIVE, "moves = { { a = 1, b = 0 } }"), "b of move 1 is not a number of places" },
        { WITH(FIVE, "moves = { { a = 1, b = 'x' } }"), "b of move 1 is not a number of places" },
        { WITH(FIVE, "moves = 3"), "moves is not an array of at most 16" },
        { WITH(FIVE, "rank = -1"), "rank of the family is not an integer" },
        { WITH(FIVE, "reference = true"), "reference is true, as in templates/families/naive.lua; accepted: of one family of forward" },
        { "return { doc = 'x', tunables = {}, constraints = { { 'k', function() return true end, about = 'luck' } }, " BASE "}\n",
          "about of constraint k is \"luck\"; accepted: rules, shared memory, registers" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char dir[64];
        fa_gen *g;
        toy_dir(dir, "x\n");
        toy_write(dir, "toy.lua", rows[i].lua);
        cr_expect_eq(fa_gen_open(&g, dir), FA_TEMPLATE, "row %zu was accepted", i);
        cr_expect(strstr(fa_last_error(), rows[i].part), "row %zu: %s", i, fa_last_error());
        fa_gen_close(g);
        toy_remove(dir, NULL);
    }
}

Test(family, what_is_declared_is_told)
{
    char dir[64];
    fa_gen *g;
    fa_tunable t;
    fa_move m;
    fa_config c;
    int axis[2];
    int32_t tile[2];
    open_pair(dir,
              WITH("{ 'a', { 1, 2, 3, 4, 5 }, 'a' }, { 'b', { 1, 2, 3, 4 }, 'b' }, { 'c', { 1, 2 }, 'c', step = 1 },\n"
                   "  { 'd', { 1, 2, 3, 4, 5 }, 'd', step = 'any' }",
                   "tile = { 'c', 'a' }, moves = { { b = -1, a = 2 } }"),
              &g);
    static const int32_t steps[] = { 2, FA_STEP_ANY, 1, FA_STEP_ANY };
    for (size_t i = 0; i < 4; i++) {
        cr_assert(fa_gen_tunable(g, "toy", i, &t));
        cr_expect_eq(t.step, steps[i], "%s", t.name);
        cr_expect_null(t.names);
    }
    cr_expect(fa_gen_axes(g, "toy", axis) && axis[0] == 2 && axis[1] == 0);
    cr_assert_eq(fa_config_parse(&c, "toy:a=3,b=1,c=2,d=5"), FA_OK);
    cr_expect(fa_gen_tile(g, &c, tile) && tile[0] == 2 && tile[1] == 3);
    cr_assert(fa_gen_move(g, "toy", 0, &m));
    cr_expect(m.n == 2 && m.part[0].tunable == 0 && m.part[0].by == 2 && m.part[1].tunable == 1 && m.part[1].by == -1);
    cr_expect_not(fa_gen_move(g, "toy", 1, &m));
    cr_expect_not(fa_gen_move(g, "none", 0, &m));
    cr_expect(!fa_gen_axes(g, fa_gen_reference(g, FA_FORWARD), axis) && axis[0] == -1 && axis[1] == -1);
    c.family[0] = 'x';
    cr_expect(!fa_gen_tile(g, &c, tile) && tile[0] == 0 && tile[1] == 0);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Lower ranks first, what must be named last whatever its rank; the rest by name. */
Test(family, order)
{
    static const char *const want[] = { "decode_ffma",
                                        "decode_mma",
                                        "decode_wgmma",
                                        "flash_bwd_mma",
                                        "flash_fwd_mma",
                                        "int8_mma",
                                        "mixed_mma",
                                        "split_mma",
                                        "toy",
                                        "wide_bwd_mma",
                                        "wide_mma",
                                        "aaa",
                                        "append",
                                        "flash_bwd_ffma",
                                        "flash_bwd_wgmma",
                                        "flash_fwd_ffma",
                                        "flash_fwd_wgmma",
                                        "fp8_wgmma",
                                        "merge",
                                        "mixed_wgmma",
                                        "split_wgmma",
                                        "wide_bwd",
                                        "wide_naive",
                                        "wide_wgmma",
                                        "first",
                                        "flash1_fwd",
                                        "naive",
                                        "naive_bwd",
                                        "tiled" };
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", "return { doc = 'x', rank = 0, tunables = {}, constraints = {}, " BASE "}\n");
    toy_write(dir, "aaa.lua", "return { doc = 'x', tunables = {}, constraints = {}, " BASE "}\n");
    toy_write(dir, "first.lua", "return { doc = 'x', rank = 0, default = false, tunables = {}, constraints = {}, " BASE "}\n");
    toy_write(dir, "aaa.cu", "x\n");
    toy_write(dir, "first.cu", "x\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_gen_families(g), sizeof want / sizeof *want);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect_str_eq(fa_gen_family(g, i), want[i]);
    fa_gen_close(g);
    static const char *const more[] = { "aaa.lua", "aaa.cu", "first.lua", "first.cu", NULL };
    toy_remove(dir, more);
}

Test(family, the_reference)
{
    fa_gen *g;
    fa_config c;
    char text[64], dir[64];
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_expect_str_eq(fa_gen_reference(g, FA_FORWARD), "naive");
    cr_assert_eq(fa_gen_reference_config(g, FA_FORWARD, &c), FA_OK);
    fa_config_print(text, sizeof text, &c);
    cr_expect_str_eq(text, "naive:tile=64");
    fa_gen_close(g);

    const fa_template_file *f = fa_template_files;
    while (strcmp(f->name, "naive.lua"))
        f++;
    char *without = strdup(f->bytes), *at = strstr(without, "reference = true");
    cr_assert_not_null(at);
    memcpy(at, "reference = nil ", 16);
    toy_dir(dir, "x\n");
    toy_write(dir, "naive.lua", without);
    free(without);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_expect_null(fa_gen_reference(g, FA_FORWARD));
    cr_expect_eq(fa_gen_reference_config(g, FA_FORWARD, &c), FA_UNSUPPORTED);
    fa_gen_close(g);
    static const char *const more[] = { "naive.lua", NULL };
    toy_remove(dir, more);
}

/* What a family calls its constraints is its own: `about` says what is counted, the layout's `ctas` how many blocks share the registers. */
Test(family, limits_are_what_it_says)
{
    char dir[64];
    fa_gen *g;
    fa_space s;
    fa_rejection r[8];
    fa_problem p = shaped_problem("fp32,d=32");
    toy_dir(dir, rowwise_cu);
    toy_write(dir, "toy.lua", rowwise_lua);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_space_list(g, &p, fa_arch_find("sm_80"), 0, "toy", &s), FA_OK, "%s", fa_last_error());
    size_t n = fa_space_rejections(&s, r, 8), seen[FA_LIMITS] = { 0 }, registers = 0;
    cr_assert_eq(n, 3);
    for (size_t i = 0; i < n; i++) {
        seen[r[i].limit] += r[i].n;
        bool slab = !strcmp(r[i].constraint, "slab"), direction = !strcmp(r[i].constraint, "direction");
        cr_expect_eq(r[i].limit, slab ? FA_LIMIT_SHARED : direction ? FA_LIMIT_RULE : FA_LIMIT_REGISTERS);
    }
    for (int i = 0; i < FA_LIMITS; i++)
        cr_expect(seen[i] > 0 && seen[i] == s.rejected[i], "%s", fa_limit_name((fa_limit)i));
    for (size_t i = 0; i < s.n; i++) {
        const fa_point *pt = &s.points[i];
        int64_t regs = 72 * (int64_t)fa_config_get(&pt->config, "span", 0) * fa_config_get(&pt->config, "guests", 0);
        if (pt->check == FA_CHECK_FAMILY)
            continue;
        cr_expect(pt->check == FA_CHECK_REGISTERS && regs > 65536, "%lld registers", (long long)regs);
        registers++;
    }
    cr_expect_eq(registers, s.rejected[FA_LIMIT_REGISTERS]);
    fa_space_free(&s);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Every shipped winner is the same config by names, and the record of it the same text as ever. */
Test(family, shipped_configs_by_name)
{
    fa_gen *g;
    char named[512], numbers[512];
    size_t names = 0;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (size_t i = 0; i < SHIPPED; i++) {
        fa_config c, again;
        cr_assert_eq(fa_config_parse(&c, shipped[i].config), FA_OK);
        fa_config_print(numbers, sizeof numbers, &c);
        cr_expect_str_eq(numbers, shipped[i].config);
        fa_gen_config_print(g, named, sizeof named, &c);
        names += strcmp(named, numbers) != 0;
        cr_assert_eq(fa_gen_config_parse(g, &again, named), FA_OK, "%s: %s", named, fa_last_error());
        cr_expect(fa_config_equal(&c, &again), "%s", named);
    }
    cr_expect_gt(names, 0);
    fa_gen_close(g);
}

/* One config of each family, as records, bundles and what `fagen emit` writes have had it since 0.1.0: names of tunables and numbers of
 * values stay, whatever the field comes to call them. */
Test(family, configs_on_record_are_read)
{
    static const char *const rows[] = {
        "decode_ffma:br=1,bk=16,row_warps=1,key_warps=4,dot_lanes=4,stages=2,ctas=2,kv_lanes=8,combine=0,sm_shares=1,min_turns=4",
        "decode_mma:br=16,bk=16,row_warps=1,key_warps=8,stages=2,ctas=1,kv_lanes=1,combine=0,sm_shares=1,min_turns=1",
        "decode_wgmma:br=64,bk=64,row_warps=4,key_warps=2,stages=2,ctas=1,kv_lanes=1,combine=1,sm_shares=1,min_turns=1",
        "flash1_fwd:br=16,bc=64",
        "flash_bwd_ffma:br=64,bc=16",
        "flash_bwd_mma:br=128,br_part=128,bc=64,warps=8,twins=1,stages=1,dq=0,q_br=128,q_bc=64",
        "flash_bwd_wgmma:br=64,bc=128,twins=0,held=2,schedule=0,box=64,stages=4,dq=1,ds_bufs=3,grid=2,q_br=128,q_stages=4",
        "flash_fwd_ffma:br=64,bc=96,warps=4,pack=0",
        "flash_fwd_mma:br=128,bc=64,warps=4,stages_k=2,stages_v=2,order=2,q_regs=1,pack=0,lag=8,ctas=1",
        "flash_fwd_wgmma:br=256,ctas=1,feeder=32,schedule=1,bc=64,box=64,stages_k=3,stages_v=3,"
        "q_bufs=2,grid=2,ahead=0,sections=4,cluster=1,rescale=3,exp=16,convert=1,o_path=2",
        "merge:warps=2,team=2,ahead=4",
        "mixed_mma:br=64,bc=64,warps=4,stages_k=2,stages_v=1,order=1,q_regs=1,pack=1,lag=0,ctas=3",
        "mixed_wgmma:br=128,ctas=1,feeder=40,schedule=1,bc=128,box=64,stages_k=2,stages_v=2,"
        "q_bufs=1,grid=2,ahead=0,sections=1,cluster=1,rescale=3,exp=0,convert=1,o_path=2",
        "naive:tile=64",
        "naive_bwd:tile=64",
        "split_mma:br=16,bc=112,warps=1,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=8,ctas=1,parts=4,combine=1",
        "split_wgmma:br=128,ctas=1,feeder=40,schedule=0,bc=96,box=64,stages_k=2,stages_v=1,"
        "q_bufs=1,grid=1,ahead=0,sections=1,cluster=1,rescale=3,exp=0,convert=1,o_path=0,parts=8,combine=0",
        "tiled:tile=16,row=8192",
    };
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c;
        fa_tunable t;
        cr_assert_eq(fa_config_parse(&c, rows[i]), FA_OK, "%s", fa_last_error());
        for (int32_t k = 0; k < c.n; k++) {
            bool name = false, value = false;
            for (size_t j = 0; fa_gen_tunable(g, c.family, j, &t) && !name; j++) {
                name = !strcmp(t.name, c.tunable[k].name);
                for (size_t v = 0; v < t.n && name; v++)
                    value |= t.values[v] == c.tunable[k].value;
            }
            cr_expect(name, "%s has no tunable %s", c.family, c.tunable[k].name);
            cr_expect(value, "%s: %s has no value %d", c.family, c.tunable[k].name, c.tunable[k].value);
        }
    }
    fa_gen_close(g);
}
