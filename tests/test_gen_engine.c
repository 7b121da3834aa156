/* The template engine: what is printed, where errors point, what a script cannot do. */
#include "gen/directives.h"
#include "gen/family.h"
#include "gen/files.h"
#include "gen/sandbox.h"
#include "gen/sandbox_names.h"
#include "gen/templates.h"
#include "gen/text.h"
#include "test_gen_toy.h"
#include <lauxlib.h>
#include <sys/stat.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void renders(const char *cu, const char *text)
{
    char dir[64];
    fa_source s;
    toy_dir(dir, cu);
    fa_status st = toy_render(dir, &s);
    toy_remove(dir, NULL);
    cr_expect_eq(st, FA_OK, "\"%s\": %s", cu, fa_last_error());
    if (st == FA_OK)
        cr_expect_str_eq(s.text, text, "\"%s\" gave \"%s\"", cu, s.text);
    fa_source_free(&s);
}

/* The message must contain `part` with %s standing for the folder. */
static void fails(const char *cu, const char *part)
{
    char dir[64], want[512];
    fa_source s;
    toy_dir(dir, cu);
    fa_status st = toy_render(dir, &s);
    toy_remove(dir, NULL);
    const char *hole = strstr(part, "@");
    snprintf(want, sizeof want, "%.*s%s%s", hole ? (int)(hole - part) : 0, part, hole ? dir : "", hole ? hole + 1 : part);
    cr_expect_eq(st, FA_TEMPLATE, "\"%s\" gave %s", cu, fa_status_name(st));
    cr_expect(strstr(fa_last_error(), want), "\"%s\" gave \"%s\", not \"%s\"", cu, fa_last_error(), want);
    cr_expect(!s.text && !s.lined);
    fa_source_free(&s);
}

Test(engine, values)
{
    renders("plain { %0, %1 } # $ $$ $x\n", "plain { %0, %1 } # $ $$ $x\n");
    renders("int x = $(c.br), y = $(p.d / 2);\n", "int x = 16, y = 32;\n");
    renders("$(1 == 1) $(1 == 2) $(\"a)b\") $('(') $((\"x\"):rep(3))\n", "true false a)b ( xxx\n");
    renders("$$(x) $$$(c.bc) $ $(c.bc)\n", "$(x) $$(c.bc) $ 8\n"); /* $$( anywhere is a literal $( */
    renders("no newline at the end $(c.bc)", "no newline at the end 8\n");
    renders("$(f32(0.1)) $(f32(1)) $(f32(1e-30)) $(f32(16777217))\n", "0.1f 1.0f 1e-30f 16777216.0f\n");
    renders("$(0x7fffffffffffffff) $(-1) $(2.0^40) $(-0.0)\n", "9223372036854775807 -1 1099511627776 0\n");
    renders("quotes \" ' \\ \t \x01 \xc3\xa9 \\n\r\n", "quotes \" ' \\ \t \x01 \xc3\xa9 \\n\n");
    renders("", "");
}

/* Of a problem: the model's, bottom-right, a window of 1024 where it has no size. */
Test(engine, pairs_that_are_seen)
{
    renders("$(seen_share({ mask = 'none', sq = 3, sk = 5, window = 0 })) $(seen_share({ mask = 'causal', sq = 0, sk = 5, window = 0 }))\n",
            "1 1\n");
    renders("$(32 * seen_share({ mask = 'causal', sq = 4, sk = 8, window = 0 }))\n", "26\n");
    renders("$(32 * seen_share({ mask = 'window', sq = 4, sk = 8, window = 2 }))\n", "12\n");
    renders("$(seen_keys({ mask = 'window', sq = 4, sk = 8, window = 2 }, 3)) $(seen_keys({ mask = 'causal', sq = 4, sk = 8, window = 2 }, "
            "1))\n",
            "5 8\n");
    renders("$(seen_keys({ mask = 'window', sq = 8192, sk = 8192, window = 0 }, 64))\n", "1088\n");
    fails("$(seen_share({ mask = 'round', sq = 4, sk = 8, window = 2 }))\n",
          "mask of the problem is no mask; accepted: none, causal, window");
    fails("$(seen_share({ mask = 'none', sq = -1, sk = 8, window = 2 }))\n", "sq of the problem is not a number from 0 to 1073741824");
    fails("$(seen_share({ mask = 'none', sq = 1, sk = 1.5, window = 2 }))\n", "sk of the problem is not a number");
    fails("$(seen_keys({ mask = 'none', sq = 1, sk = 1, window = 0 }, -1))\n", "rows is -1; accepted: 0 to 2^46");
    fails("$(seen_share(3))\n", "table expected");
}

Test(engine, control_lines)
{
    renders("a\n  //| if c.br == 16 then\nb\n  //| else\nc\n//|end\nd\n", "a\nb\nd\n");
    renders("//| for i = 1, 3 do\nx$(i)\n//| end\n", "x1\nx2\nx3\n");
    renders("//| local function twice(x)\n[$(x)]\n[$(x)]\n//| end\n//| twice(1)\n//| twice(\"b\")\n", "[1]\n[1]\n[b]\n[b]\n");
    renders("//| local t = {\n//|   1, 2,\n//| }\n$(#t)\n", "2\n");
    renders("a\n\n//| if false then\nx\n//| end\n\nb\n\n\nc\n", "a\n\nb\n\n\nc\n");
    renders("//| local x = 1\n\na\n", "a\n");
    renders("int a; //| is a comment here\n", "int a; //| is a comment here\n");
}

Test(engine, globals)
{
    renders("$(p.d) $(prob.d) $(c.br) $(cfg.br) $(a.cc) $(arch.name) $(l.bytes) $(layout.threads)\n", "64 64 16 16 80 sm_80 3072 32\n");
    renders("$(command)\n", "fagen emit --arch sm_80 --problem 'bf16,d=64,dv=64,mask=none,o=bf16,align=16' --config 'toy:br=16,bc=8'\n");
    renders("$(config_text) | $(problem_text)\n", "toy:br=16,bc=8 | bf16,d=64,dv=64,mask=none,o=bf16,align=16\n");
    renders("//| for i, x in ipairs(params) do\n//| if i == 1 or i == #params then\n$(x.type) $(x.name);\n//| end\n//| end\n",
            "const void * q;\nint section;\n");
    renders("//| local t = { b = 1, a = 2, [3] = 0, [1] = 0 }\n//| for _, k in ipairs(sorted(t)) do\n$(k)\n//| end\n", "1\n3\na\nb\n");
    renders("$(p.b) $(p.sq) $(max(1, 2)) $(min(1, 2))\n", "0 0 2 1\n");
}

Test(engine, errors_point_at_the_line)
{
    fails("a\nb $(nothing)\n", "@/toy.cu:2: undefined name 'nothing'\n  2 | b $(nothing)");
    fails("a\n\n$(c.nope)\n", "@/toy.cu:3: $(c.nope) is nil\n  3 | $(c.nope)");
    fails("$(p.nope)\n", "@/toy.cu:1: the problem has no field 'nope'");
    fails("a\nx = $(c.br / 3) y\n", "@/toy.cu:2: $(c.br / 3) is 5.333");
    fails("$({})\n", "@/toy.cu:1: $({}) is a table");
    fails("$(0/0)\n", "@/toy.cu:1: $(0/0)");
    fails("$(1e300)\n", "@/toy.cu:1: $(1e300)");
    fails("$()\n", "@/toy.cu:1: ");
    fails("a\n//| if c.br then\nb\n", "@/toy.cu:3: 'end' expected");
    fails("a\nb\n//| x = = 2\nc\n", "@/toy.cu:3: unexpected symbol near '='\n  3 | //| x = = 2");
    fails("a\n$(c.br\n", "@/toy.cu:2: '$(' is not closed on its line\n  2 | $(c.br");
    fails("a\n$(c.br -- rows)\n", "@/toy.cu:2: '$(' is not closed");
    fails("a\n$(\"x)\n", "@/toy.cu:2: '$(' is not closed");
    fails("//| local x = nil\n//| local y = x.z\n", "@/toy.cu:2: attempt to index a nil value (local 'x')");
    fails("a\n//| fail(\"rows must divide\")\n", "@/toy.cu:2: rows must divide\n  2 | //| fail");
    fails("a\n//| error(\"hm\")\n", "@/toy.cu:2: hm");
    fails("//| include \"none.cu\"\n", "@/toy.cu:1: there is no template \"none.cu\"");
    fails("\n//| include \"../toy.cu\"\n", "@/toy.cu:2: \"../toy.cu\" is not the name of a template");
    fails("//| include \"toy.cu\"\n", "more than 16 deep");
    fails("//| local function f()\nx\n$(zz)\n//| end\na\n//| f()\n", "@/toy.cu:3: undefined name 'zz'");
    fails("//| local x =\ntext\n", "@/toy.cu:2: unexpected symbol");
}

Test(engine, includes)
{
    static const char *const more[] = { "piece.cu", "shared.lua", "bad.cu", NULL };
    char dir[64], want[256];
    fa_source s;
    toy_dir(dir, "a\n//| n = 5\n//| include \"piece.cu\"\nb $(g(2))\n//| local m = include \"shared.lua\"\n$(m.seven)\n");
    toy_write(dir, "piece.cu", "//| function g(x) return x + n end\npiece $(n)\n");
    toy_write(dir, "shared.lua", "return { seven = 7 }\n");
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    cr_expect_str_eq(s.text, "a\npiece 5\nb 7\n7\n");
    cr_expect_str_eq(s.lined, "#line 1 \"templates/toy.cu\"\na\n#line 2 \"templates/piece.cu\"\npiece 5\n"
                              "#line 4 \"templates/toy.cu\"\nb 7\n#line 6 \"templates/toy.cu\"\n7\n");
    fa_source_free(&s);
    toy_write(dir, "shared.lua", "n = n + 1\nreturn { n }\n");
    toy_write(dir, "piece.cu", "$(include(\"shared.lua\")[1]) $(n)\n");
    toy_write(dir, "toy.cu",
              "//| n = 5\n//| include \"piece.cu\"\n//| include \"piece.cu\"\n$(include \"shared.lua\" == include \"shared.lua\")\n");
    for (int again = 0; again < 2; again++) { /* each text has its own */
        cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
        cr_expect_str_eq(s.text, "6 6\n6 6\ntrue\n");
        fa_source_free(&s);
    }
    toy_write(dir, "bad.cu", "fine\n$(oops)\n");
    toy_write(dir, "toy.cu", "a\n//| include \"bad.cu\"\n");
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    snprintf(want, sizeof want, "%s/bad.cu:2: undefined name 'oops'\n  2 | $(oops)", dir);
    cr_expect_str_eq(fa_last_error(), want);
    toy_write(dir, "bad.cu", "fine\n$(oops\n");
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    snprintf(want, sizeof want, "%s/bad.cu:2: '$(' is not closed on its line\n  2 | $(oops", dir);
    cr_expect_str_eq(fa_last_error(), want);
    toy_remove(dir, more);
}

/* What a function prints stands further to the right, in what it calls too; directives begin their line, and blank lines are blank. */
Test(engine, indented_text)
{
#define BODY "//| local function f(x)\na($(x));\n\n#pragma unroll\n  b();\n//| end\n"
    renders(BODY "//| indented(4, f, 1)\nc\n", "    a(1);\n\n#pragma unroll\n      b();\nc\n");
    renders("//| local function f(n)\n[\n//| if n > 0 then indented(2, f, n - 1) end\n]\n//| end\n//| f(2)\n//| indented(0, f, 0)\n",
            "[\n  [\n    [\n    ]\n  ]\n]\n[\n]\n");
    fails(BODY "//| indented(65, f, 1)\n", "@/toy.cu:7: indented by 65 columns within 0; accepted: 0 to 64 in all");
    fails(BODY "//| indented(60, indented, 5, f, 1)\n", "@/toy.cu:7: indented by 5 columns within 60; accepted: 0 to 64 in all");
    fails(BODY "//| indented(-1, f, 1)\n", "@/toy.cu:7: indented by -1 columns within 0; accepted");
    fails(BODY "//| indented(2, \"f\")\n", "bad argument #2 to 'indented' (function expected, got string)");
    fails(BODY "//| indented(2, f, nil)\n", "@/toy.cu:2: $(x) is nil");
    fails("//| local function f() indented(0, f) end\n//| f()\n", "@/toy.cu:1: C stack overflow");
#undef BODY
}

static void lines(const char *cu, const char *lined)
{
    char dir[64];
    fa_source s;
    toy_dir(dir, cu);
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    cr_expect_str_eq(s.lined, lined);
    toy_remove(dir, NULL);
    fa_source_free(&s);
}

Test(engine, line_directives)
{
#define L(n) "#line " #n " \"templates/toy.cu\"\n"
    lines("a\nb\nc\n", L(1) "a\nb\nc\n");
    lines("a\n//| local x = 1\nb\nc\n", L(1) "a\n" L(3) "b\nc\n");
    lines("#define M(x) \\\n//| local x = 1\n  f(x) \\\n  g(x)\nb\n", L(1) "#define M(x) \\\n  f(x) \\\n  g(x)\n" L(5) "b\n");
    lines("/* a\n//| local x = 1\n b\n*/ c\nd\n", L(1) "/* a\n b\n*/ c\n" L(5) "d\n");
    lines("s = \"/*\"; '\"' // /*\n//| local x = 1\nb\n", L(1) "s = \"/*\"; '\"' // /*\n" L(3) "b\n");
    lines("$(\"two\\nlines\")\nb\n", L(1) "two\nlines\n" L(2) "b\n");
    lines("//| for i = 1, 2 do\nx$(i)\n//| end\n", L(2) "x1\n" L(2) "x2\n");
#undef L
}

Test(engine, text_is_lined_without_its_directives)
{
    char dir[64];
    fa_source s;
    fa_text back = { 0 };
    toy_dir(dir, "//| for i = 1, 3 do\na$(i)\n\n//| if i == 2 then\n/* x\n//| local y = 1\n*/ y\n//| end\n//| end\nz\n");
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    for (const char *at = s.lined; *at;) {
        const char *nl = strchr(at, '\n') + 1;
        if (strncmp(at, "#line", 5))
            fa_text_add(&back, at, (size_t)(nl - at));
        at = nl;
    }
    cr_expect_str_eq(fa_text_cstr(&back), s.text);
    cr_expect(s.text_size == strlen(s.text));
    fa_text_free(&back);
    fa_source_free(&s);
    toy_remove(dir, NULL);
}

Test(engine, same_bytes_every_time)
{
    char dir[64];
    fa_source a, b;
    toy_dir(dir, "//| t = { x = 1, y = 2, z = 3, w = 4 }\n//| for _, k in ipairs(sorted(t)) do\n$(k)\n//| end\n");
    cr_assert_eq(toy_render(dir, &a), FA_OK);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(toy_render(dir, &b), FA_OK);
        cr_expect(!strcmp(a.text, b.text) && !strcmp(a.lined, b.lined) && a.hash[0] == b.hash[0] && a.hash[1] == b.hash[1]);
        fa_source_free(&b);
    }
    fa_source_free(&a);
    toy_remove(dir, NULL);
}

Test(engine, one_render_leaves_nothing_for_the_next)
{
    char dir[64];
    fa_gen *g;
    fa_source s;
    fa_problem p;
    fa_config c;
    toy_dir(dir, "//| if c.br == 16 then left = 1 string.format = nil p.d = 99 end\n$(left)\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    fa_problem_parse(&p, "bf16,d=64");
    fa_config_parse(&c, "toy:br=16,bc=8");
    cr_expect_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s), FA_OK, "%s", fa_last_error());
    fa_source_free(&s);
    fa_config_parse(&c, "toy:br=64,bc=8");
    cr_expect_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "undefined name 'left'"), "%s", fa_last_error());
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(engine, a_failed_render_does_not_harm_the_next)
{
    char dir[64];
    fa_gen *g;
    fa_source s;
    fa_problem p;
    fa_config c, d;
    toy_dir(dir, "//| if c.br == 16 then local t = {} for i = 1, 1 << 40 do t[i] = { i } end end\nfine\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK);
    fa_problem_parse(&p, "bf16,d=64");
    fa_config_parse(&c, "toy:br=16,bc=8");
    fa_config_parse(&d, "toy:br=64,bc=8");
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s), FA_TEMPLATE);
        cr_expect(strstr(fa_last_error(), "limit"), "%s", fa_last_error());
        cr_assert_eq(fa_render(g, &p, &d, fa_arch_find("sm_80"), 0, &s), FA_OK, "%s", fa_last_error());
        cr_expect_str_eq(s.text, "fine\n");
        fa_source_free(&s);
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(engine, the_folder_of_templates)
{
    char dir[64], path[128];
    fa_gen *g;
    fa_source s;
    cr_expect_eq(fa_gen_open(&g, "/nowhere/at/all"), FA_IO);
    cr_expect(!g && strstr(fa_last_error(), "/nowhere/at/all"), "%s", fa_last_error());
    cr_expect_eq(fa_gen_open(&g, "/dev/null"), FA_IO);
    cr_expect_eq(fa_gen_open(&g, ""), FA_OK, "%s", fa_last_error());
    fa_gen_close(g);
    fa_gen_close(NULL);

    toy_dir(dir, "x\n");
    snprintf(path, sizeof path, "%s/toy.cu", dir);
    unlink(path);
    mkdir(path, 0700);
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "toy.cu is not a regular file"), "%s", fa_last_error());
    rmdir(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "toy.cu is not a regular file"), "%s", fa_last_error());
    unlink(path);
    FILE *f = fopen(path, "wb");
    cr_assert_eq(ftruncate(fileno(f), (1 << 17) + 1), 0);
    fclose(f);
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "131073 bytes; accepted: at most 131072"), "%s", fa_last_error());
    toy_remove(dir, NULL);
}

Test(engine, a_wrong_family_is_named)
{
    static const struct {
        const char *lua, *part;
    } rows[] = {
        { "return 1", "returns a number; accepted: the table of a family" },
        { "return {}", "doc is a nil" },
        { "return { doc = 'x' }", "tunables is not an array" },
        { "return { doc = 'x', tunables = { { 'br' } } }", "tunable 1 is not" },
        { "return { doc = 'x', tunables = { { 'br', { 1.5 }, 'r' } } }", "value 1 of tunable br" },
        { "return { doc = 'x', tunables = { { 'br', { 1, 1 }, 'r' } } }", "tunable br lists 1 twice" },
        { "return { doc = 'x', tunables = { { 'a', { 1 }, 'r' }, { 'a', { 1 }, 'r' } } }", "tunable a is declared twice" },
        { "return { doc = 'x', tunables = {}, constraints = { { 'c' } } }", "constraint 1 is not" },
        { "return { doc = 'x', tunables = {}, constraints = {} }", "supports is a nil" },
        { "return {", "toy.lua:1: unexpected symbol" },
        { "\n\nlocal x = nope", "toy.lua:3: undefined name 'nope'\n  3 | local x = nope" },
    };
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        toy_write(dir, "toy.lua", rows[i].lua);
        cr_expect_eq(fa_gen_open(&g, dir), FA_TEMPLATE, "%s", rows[i].lua);
        cr_expect(strstr(fa_last_error(), rows[i].part), "\"%s\" gave \"%s\"", rows[i].lua, fa_last_error());
    }
    toy_remove(dir, NULL);
}

static int run_text(lua_State *L)
{
    const char *text = lua_touserdata(L, 1);
    fa_sandbox_env(L);
    fa_sandbox_load(L, lua_gettop(L), text, strlen(text), "@test");
    lua_call(L, 0, 0);
    return 0;
}

/* What a library call does in C counts as work of the script: each of these asks for more than the text before them. */
Test(engine, library_calls_are_charged)
{
    static const char *const begin = "local t = {} for i = 1, 500 do t[i] = (i * 7919) % 1000 end local s = ('x'):rep(200):rep(1000) ";
    static const char *const calls[] = { "local u = sorted(t)",
                                         "table.sort(t)",
                                         "for i = 1, 20 do local n = select('#', table.unpack(t)) end",
                                         "for i = 1, 20 do table.insert(t, 1, i) end",
                                         "for i = 1, 20 do table.remove(t, 1) end",
                                         "for i = 1, 20 do local u = table.concat(t) end",
                                         "for i = 1, 2 do local u = s:upper() end",
                                         "for i = 1, 2 do local u = s:lower() end",
                                         "for i = 1, 2 do local u = s:reverse() end",
                                         "local n = s:find('y', 1, true)",
                                         "local n = s:match('y')",
                                         "local u = s:gsub('y', 'z')",
                                         "for w in s:gmatch('y') do end",
                                         "local n = select('#', s:byte(1, 200000))" };
    char text[512];
    const char *error;
    for (size_t i = 0; i <= COUNT(calls); i++) { /* and last, without any */
        fa_sandbox *sb;
        snprintf(text, sizeof text, "%s%s", begin, i < COUNT(calls) ? calls[i] : "");
        cr_assert_eq(fa_sandbox_open(&sb, fa_sandbox_names_open), FA_OK);
        cr_expect_eq(fa_sandbox_run(sb, run_text, text, &error), FA_OK, "%s: %s", text, error);
        fa_sandbox_limit(sb, 50000);
        fa_status st = fa_sandbox_run(sb, run_text, text, &error);
        if (i < COUNT(calls))
            cr_expect(st == FA_TEMPLATE && strstr(error, "the step limit is used up"), "%s: %s", calls[i],
                      st == FA_OK ? "no limit" : error);
        else
            cr_expect_eq(st, FA_OK, "%s", error);
        fa_sandbox_close(sb);
    }
}

/* What a terminal would obey is text; what it shows stays, also at the end of the room and at the edges of UTF-8. */
Test(engine, messages_are_plain)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "", "" },
        { "plain\n\ttext \\x1b ~", "plain\n\ttext \\x1b ~" },
        { "a\033[31mb\033]0;t\a\r\b\x7f", "a\\x1b[31mb\\x1b]0;t\\x07\\x0d\\x08\\x7f" },
        { "\x01\x1f", "\\x01\\x1f" },
        { "\u00e9\u20ac\U0001f600\u00a0", "\u00e9\u20ac\U0001f600\u00a0" },
        { "\xc2\x9b"
          "31m\xc2\x80",
          "\\xc2\\x9b31m\\xc2\\x80" }, /* U+009B, U+0080 */
        { "\x9b"
          "31m\xff\xc0\x80\xc1\xbf",
          "\\x9b31m\\xff\\xc0\\x80\\xc1\\xbf" },
        { "\xe0\x82\x9b\xed\xa0\x80\xf4\x90\x80\x80", "\\xe0\\x82\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80" },
        { "\xf0\x80\x80\x9b\xef\xbf\xbf\xf4\x8f\xbf\xbf", "\\xf0\\x80\\x80\\x9b\xef\xbf\xbf\xf4\x8f\xbf\xbf" },
        { "cut \xe2\x82", "cut \\xe2\\x82" },
    };
    char room[64], want[2100], many[4000];
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].out);
        cr_expect_eq(fa_text_plain(room, sizeof room, rows[i].in), n);
        cr_expect_str_eq(room, rows[i].out);
        cr_expect_eq(fa_fail(FA_IO, "%s", rows[i].in), FA_IO);
        cr_expect_str_eq(fa_last_error(), rows[i].out);
        fa_wrap(FA_IO, "%s", rows[i].in);
        snprintf(want, sizeof want, "%s: %s", rows[i].out, rows[i].out);
        cr_expect_str_eq(fa_last_error(), want);
        fa_text t = { 0 };
        fa_text_str(&t, rows[i].in);
        fa_text_make_plain(&t);
        cr_expect_str_eq(fa_text_cstr(&t), rows[i].out);
        cr_expect_eq(t.n, n);
        fa_text_free(&t);
    }
    for (size_t n = 1; n < sizeof room; n++) { /* whole characters alone */
        memset(room, 1, sizeof room);
        size_t at = fa_text_plain(room, n, "ab\033c\u20acd");
        cr_expect(at == strlen(room) && at < n && !strncmp("ab\\x1bc\u20acd", room, at), "%zu: %s", n, room);
        cr_expect(at == 0 || at == 1 || at == 2 || (at >= 6 && at != 8 && at != 9), "%zu: %s", n, room);
    }
    memset(many, '\033', sizeof many - 1);
    many[sizeof many - 1] = 0;
    fa_fail(FA_IO, "%s", many);
    cr_expect_eq(strlen(fa_last_error()), 2044, "whole codes that find room in 2047 bytes");
}

/* What would change a kernel and not the key of the cache, in every spelling that NVRTC 13 takes, and under the trigraphs of C++14. */
Test(engine, texts_take_nothing_from_outside)
{
    static const struct {
        const char *text, *what;
        int line;
    } refused[] = {
        { "#include \"a.h\"\n", "#include reads a file", 1 },
        { "#include <a.h>", "#include", 1 },
        { "int x;\n\n \t# \v\f include NAME\n", "#include", 3 },
        { "%:include \"a.h\"\n", "#include", 1 },
        { "\?\?=include \"a.h\"\n", "#include", 1 },
        { "#inc\\\nlude \"a.h\"\n", "#include", 1 },
        { "#inc\\\r\nlude \"a.h\"\r\n", "#include", 1 },
        { "#inc\?\?/\nlude \"a.h\"\n", "#include", 1 },
        { "\\\n#\\\n\\\ninclude \"a.h\"\n", "#include", 2 },
        { "/* x */ # /* y\n */ include \"a.h\"\n", "#include", 1 },
        { "/* \n\n */#include \"a.h\"\n", "#include", 3 },
        { "/\\\n* \n *\\\n/#include \"a.h\"\n", "#include", 4 },
        { "// x\n#include \"a.h\"\n", "#include", 2 },
        { "// x \r#include \"a.h\"\n", "#include", 1 },
        { "const char *s = \"/*\"; // */\n#include \"a.h\"\n", "#include", 2 },
        { "char c = '\"', d = '\\'';\n#include \"a.h\"\n", "#include", 2 },
        { "int x = 1'000;\n#include \"a.h\" // '\n", "#include", 2 },
        { "const char *s = R\"x(\n)\" \\\n)x\";\n#include \"a.h\"\n", "#include", 4 },
        { "const char *s = R\"(\" ;\n)\"; \"\n#include \"a.h\"\n", "#include", 3 },
        { "int FOUR\"(\n#include \"a.h\"\n", "#include", 2 },
        { "#error don't\n#include \"a.h\"\n", "#include", 2 },
        { "#if 0\n#include \"a.h\"\n#endif\n", "#include", 2 },
        { "#include_next <a.h>\n", "#include_next", 1 },
        { "#import \"a.h\"\n", "#import", 1 },
        { "int x[] = {\n# embed \"a\"\n};", "#embed", 2 },
        { "#if defined X || __has_include(\"a.h\")\n#endif\n", "__has_include looks for a file", 1 },
        { "#define HAS __has_inc\\\nlude(<a.h>)\n", "__has_include", 1 },
        { "#if __has_embed(\"a\")\n#endif\n", "__has_embed", 1 },
        { "const char *s = \"x\" __DATE__;\n", "__DATE__ is the day of the compilation", 1 },
        { "const char *s = __TIME__;\n", "__TIME__", 1 },
        { "f(__TIMESTAMP__)\n", "__TIMESTAMP__", 1 },
    };
    static const char *const accepted[] = {
        "",
        "\n",
        "#",
        "#\n# \nint include; import x; #include\n",
        "// #include \"a.h\"\n",
        "// \\\n#include \"a.h\"\n",
        "/*\n#include \"a.h\"\n*/\n",
        "const char *s = \"\\\n#include <a.h>\";\n",
        "const char *s = \"__DATE__ \\\" __TIME__\";\n",
        "const char *s = R\"(\n#include \"a.h\"\n)\";\n",
        "const char *s = u8R\"x(\n#include \"a.h\"\n)\"\n)x\", *t = LR\"()\";\n",
        "const char *s = R\"(\n#include \"a.h\"\n",
        "int x = 1; #include\n",
        "#define include x\n#pragma include\n#includes\n#inclu de\n#define y #include\n",
        "int __has_include_of, my__DATE__, __DATE;\n",
        "asm(\"{%0, %1}\" : : \"r\"(1'000'000)); /",
        "x \\",
        "x \?\?/",
        "/* never closed",
        "\"never closed",
    };
    char text[256], message[256];
    for (size_t i = 0; i < COUNT(refused); i++) {
        cr_expect_eq(fa_directives_check(refused[i].text, "x.cu"), FA_TEMPLATE, "%s", refused[i].text);
        snprintf(message, sizeof message, "x.cu:%d: %s", refused[i].line, refused[i].what);
        cr_expect(strstr(fa_last_error(), message) && strstr(fa_last_error(), "accepted: "), "%s: %s", refused[i].text, fa_last_error());
        snprintf(text, sizeof text, "int a;\n# line 40 \"templates/soft max.cu\"\n%s", refused[i].text);
        cr_expect_eq(fa_directives_check(text, "x.cu"), FA_TEMPLATE, "%s", text);
        snprintf(message, sizeof message, "templates/soft max.cu:%d: %s", refused[i].line + 39, refused[i].what);
        cr_expect(strstr(fa_last_error(), message), "%s: %s", text, fa_last_error());
    }
    for (size_t i = 0; i < COUNT(accepted); i++)
        cr_expect_eq(fa_directives_check(accepted[i], "x.cu"), FA_OK, "%s: %s", accepted[i], fa_last_error());
    for (const fa_template_file *t = fa_template_files; t->name; t++)
        if (strstr(t->name, ".cu"))
            cr_expect_eq(fa_directives_check(t->bytes, t->name), FA_OK, "%s", fa_last_error());
}

/* Takes more processor time than a script may, of which no step tells, then a step. */
static int linger(lua_State *L)
{
    struct timespec t;
    for (int64_t from = -1, at = 0; from < 0 || at - from < 600000000; from = from < 0 ? at : from) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        at = t.tv_sec * 1000000000ll + t.tv_nsec;
    }
    fa_sandbox_charge(L, 1);
    return 0;
}

/* The library's own scripts end by steps and memory alone; those of a folder by time too. */
Test(engine, time_limits_are_for_scripts_of_others)
{
    char dir[64];
    const char *error;
    fa_gen *g;
    toy_dir(dir, "x\n");
    for (int own = 0; own < 2; own++) {
        cr_assert_eq(fa_gen_open(&g, own ? NULL : dir), FA_OK, "%s", fa_last_error());
        fa_status st = fa_sandbox_run(g->sb, linger, NULL, &error);
        cr_expect(own ? st == FA_OK : st == FA_TEMPLATE && strstr(error, "the time limit is used up"), "%d: %s", own, st ? error : "");
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}

/* A file of the folder with the name of one of the library's takes its place: it is listed once. */
Test(engine, names_of_folder_and_library_are_each_once)
{
    char dir[64], **names, **ours;
    size_t n, own;
    fa_files fs;
    cr_assert_eq(fa_files_open(&fs, NULL), FA_OK);
    cr_assert_eq(fa_files_names(&fs, ".lua", &ours, &own), FA_OK);
    fa_files_close(&fs);
    toy_dir(dir, "x\n");
    toy_write(dir, "naive.lua", toy_lua);
    toy_write(dir, ".naive.lua", toy_lua); /* and these are no names of templates */
    toy_write(dir, "naive.lua~", toy_lua);
    cr_assert_eq(fa_files_open(&fs, dir), FA_OK);
    cr_assert_eq(fa_files_names(&fs, ".lua", &names, &n), FA_OK);
    cr_expect_eq(n, own + 1, "%zu and toy.lua: %zu", own, n);
    for (size_t i = 1; i < n; i++)
        cr_expect_lt(strcmp(names[i - 1], names[i]), 0, "%s, %s", names[i - 1], names[i]);
    fa_files_free_names(names, n);
    fa_files_free_names(ours, own);
    fa_files_close(&fs);
    static const char *const more[] = { "naive.lua", ".naive.lua", "naive.lua~", NULL };
    toy_remove(dir, more);
}

/* A context that has rendered a kernel of each family holds all of the library's files, and those of a user's folder that are new. */
Test(engine, files_of_all_families_at_once)
{
    fa_files fs;
    int at, n = 0;
    cr_assert_eq(fa_files_open(&fs, NULL), FA_OK);
    for (; fa_template_files[n].name; n++)
        cr_assert_eq(fa_files_get(&fs, &at, fa_template_files[n].name), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fs.n, n);
    cr_assert_leq(2 * n, FA_FILES_MAX, "%d files of the library: little is left for a user's", n);
    fa_files_close(&fs);
}
