/* Where a template is found: the library's folders, a user's folder with folders and without, names that are refused. */
#include "gen/files.h"
#include "gen/templates.h"
#include "test_gen_toy.h"
#include <ftw.h>
#include <sys/stat.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_all(const char *dir)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void folder(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
}

/* A user's folder with the folder pairs. */
static void pairs_dir(char dir[64])
{
    toy_dir(dir, "x\n");
    folder(dir, "pairs");
}

/* The bytes that `name` stands for beside dir, NULL where it is refused; *path is what messages call the file. Free both. */
static char *got(const char *dir, const char *name, char **path)
{
    fa_files fs;
    int at;
    cr_assert_eq(fa_files_open(&fs, dir), FA_OK, "%s", fa_last_error());
    bool ok = fa_files_get(&fs, &at, name) == FA_OK;
    char *bytes = ok ? strdup(fs.file[at].bytes) : NULL;
    *path = ok ? strdup(fs.file[at].path) : NULL;
    fa_files_close(&fs);
    return bytes;
}

static void is(const char *dir, const char *name, const char *bytes)
{
    char *path, *b = got(dir, name, &path);
    cr_expect(b && !strcmp(b, bytes), "%s: %s", name, b ? path : fa_last_error());
    free(b);
    free(path);
}

static void refused(const char *dir, const char *name, fa_status status, const char *said)
{
    fa_files fs;
    int at;
    cr_assert_eq(fa_files_open(&fs, dir), FA_OK, "%s", fa_last_error());
    cr_expect_eq(fa_files_get(&fs, &at, name), status, "%s", name);
    cr_expect(strstr(fa_last_error(), said), "%s: %s", name, fa_last_error());
    fa_files_close(&fs);
}

/* A plain name is one file: what finds it need not know the folder. The names of chunks stay whole in Lua's messages, of 60 letters. */
Test(files, names_of_the_library_are_each_in_one_folder)
{
    int folders = 0;
    for (const fa_template_file *f = fa_template_files, *last = NULL; f->name; last = f++) {
        cr_assert(f->folder && *f->folder && !strchr(f->folder, '/') && !strchr(f->name, '/'), "%s", f->name);
        cr_expect_lt(strlen("templates/") + strlen(f->folder) + 1 + strlen(f->name), 50, "%s", f->name);
        for (const fa_template_file *g = fa_template_files; g < f; g++)
            cr_expect_str_neq(g->name, f->name, "%s/ and %s/", g->folder, f->folder);
        bool begins = !last || strcmp(last->folder, f->folder) != 0;
        for (const fa_template_file *g = fa_template_files; begins && g < f; g++)
            cr_expect_str_neq(g->folder, f->folder, "the rows of %s stand apart", f->folder);
        folders += begins;
        char name[80], *path, *b;
        snprintf(name, sizeof name, "%s/%s", f->folder, f->name);
        for (int k = 0; k < 2; k++) {
            b = got(NULL, k ? name : f->name, &path);
            cr_assert_not_null(b, "%s", fa_last_error());
            cr_expect_str_eq(b, f->bytes);
            cr_expect(!strncmp(path, "templates/", 10) && !strcmp(path + 10, name), "%s", path);
            free(b);
            free(path);
        }
    }
    cr_expect_eq(folders, 9);
}

/* The pieces of the library name the folder of what they include, and each of these is there. */
Test(files, includes_of_the_library_name_the_folder)
{
    int n = 0;
    for (const fa_template_file *f = fa_template_files; f->name; f++)
        for (const char *at = f->bytes; (at = strstr(at, "include")); at++) {
            char name[64], *path;
            if (sscanf(at, "include \"%63[^\"\n]\"", name) != 1)
                continue;
            char *b = got(NULL, name, &path);
            cr_expect(b && strchr(name, '/'), "%s includes %s", f->name, name);
            free(b);
            free(path);
            n++;
        }
    cr_expect_gt(n, 100, "%d", n);
}

Test(files, names_that_are_refused)
{
    static const char *const names[] = { "",
                                         "/",
                                         "/mask.cu",
                                         "../mask.cu",
                                         "./mask.cu",
                                         "pairs/../mask.cu",
                                         "pairs/",
                                         "pairs//mask.cu",
                                         "a/b/mask.cu",
                                         "pairs/.mask.cu",
                                         ".pairs/mask.cu",
                                         "pairs\\mask.cu",
                                         "pairs/ma sk.cu",
                                         "/etc/passwd",
                                         "pairs/a_name_of_forty_letters_is_too_long.cu" };
    char dir[64];
    pairs_dir(dir);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int own = 0; own < 2; own++)
            refused(own ? NULL : dir, names[i], FA_TEMPLATE, "is not the name of a template; accepted: at most 39 letters");
    refused(NULL, "work/mask.cu", FA_TEMPLATE, "there is no template \"work/mask.cu\"; accepted: pairs/mask.cu");
    refused(NULL, "pairs/none.cu", FA_TEMPLATE, "there is no template \"pairs/none.cu\"");
    refused(dir, "none.cu", FA_TEMPLATE, "there is no template \"none.cu\"");
    remove_all(dir);
}

/* A user's file replaces the library's from the top, as before there were folders, or from its folder. */
Test(files, a_users_file_lies_at_the_top_or_in_the_folder)
{
    char dir[64], both[256];
    for (int top = 0; top < 2; top++) {
        pairs_dir(dir);
        folder(dir, "old"); /* which no name tells of */
        toy_write(dir, top ? "mask.cu" : "pairs/mask.cu", "mine\n");
        toy_write(dir, "old/mask.cu", "old\n");
        is(dir, "mask.cu", "mine\n");
        is(dir, "pairs/mask.cu", "mine\n");
        is(dir, "old/mask.cu", "old\n");
        toy_write(dir, top ? "pairs/mask.cu" : "mask.cu", "mine too\n");
        snprintf(both, sizeof both, "%s/mask.cu and %s/pairs/mask.cu are both there; accepted: one of them", dir, dir);
        refused(dir, "mask.cu", FA_TEMPLATE, both);
        refused(dir, "pairs/mask.cu", FA_TEMPLATE, both);
        remove_all(dir);
    }
}

/* A file is held once, whichever name asks for it, and read once. */
Test(files, two_names_are_one_file)
{
    static const char *const names[][2] = { { "mask.cu", "pairs/mask.cu" }, { "mine.cu", "pairs/mine.cu" } };
    char dir[64];
    pairs_dir(dir);
    toy_write(dir, "pairs/mine.cu", "mine\n");
    for (size_t i = 0; i < 2; i++)
        for (int turned = 0; turned < 2; turned++) {
            fa_files fs;
            int a, b;
            cr_assert_eq(fa_files_open(&fs, dir), FA_OK);
            cr_assert_eq(fa_files_get(&fs, &a, names[i][turned]), FA_OK, "%s", fa_last_error());
            cr_assert_eq(fa_files_get(&fs, &b, names[i][!turned]), FA_OK, "%s", fa_last_error());
            cr_expect(a == b && fs.n == 1);
            cr_expect_str_eq(fs.file[a].name, names[i][1]);
            fa_files_close(&fs);
        }
    remove_all(dir);
}

/* A link in the place of a folder may lead out. A file of that name, of a folder as it was, is in nobody's way. */
Test(files, what_is_no_folder)
{
    char dir[64], out[64], path[256];
    toy_dir(dir, "x\n");
    toy_dir(out, "x\n");
    toy_write(out, "mask.cu", "outside\n");
    snprintf(path, sizeof path, "%s/pairs", dir);
    cr_assert_eq(symlink(out, path), 0);
    refused(dir, "pairs/mask.cu", FA_IO, "/pairs is a link; accepted: a folder");
    refused(dir, "mask.cu", FA_IO, "/pairs is a link; accepted: a folder");
    fa_gen *g;
    cr_expect_eq(fa_gen_open(&g, dir), FA_IO);
    cr_expect(strstr(fa_last_error(), "/pairs is a link"), "%s", fa_last_error());
    cr_assert_eq(unlink(path), 0);
    toy_write(dir, "pairs", "no folder\n");
    toy_write(dir, "mask.cu", "mine\n");
    is(dir, "pairs/mask.cu", "mine\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    fa_gen_close(g);
    remove_all(dir);
    remove_all(out);
}

/* A family in the folder of families, with a piece of a folder: found, rendered, and called by their folders in messages. */
Test(files, a_users_family_in_its_folder)
{
    char dir[64], said[256];
    fa_source s;
    strcpy(dir, "/tmp/fagen-toy-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    folder(dir, "families");
    folder(dir, "mine");
    toy_write(dir, "families/toy.lua", toy_lua);
    toy_write(dir, "families/toy.cu", "a\n//| include \"mine/piece.cu\"\n");
    toy_write(dir, "mine/piece.cu", "b\n");
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    cr_expect_str_eq(s.lined, "#line 1 \"templates/families/toy.cu\"\na\n#line 1 \"templates/mine/piece.cu\"\nb\n");
    fa_source_free(&s);
    toy_write(dir, "mine/piece.cu", "b\n$(nothing)\n");
    cr_assert_eq(toy_render(dir, &s), FA_TEMPLATE);
    snprintf(said, sizeof said, "%s/mine/piece.cu:2: ", dir);
    cr_expect(strstr(fa_last_error(), said), "%s", fa_last_error());
    toy_write(dir, "families/toy.lua", "return { doc = \"x\", tunables = 1 }");
    cr_assert_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "templates/families/toy.lua: tunables is not"), "%s", fa_last_error());
    toy_write(dir, "families/toy.lua", toy_lua);
    toy_write(dir, "toy.lua", toy_lua);
    cr_assert_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "/toy.lua and ") && strstr(fa_last_error(), "/families/toy.lua are both there"), "%s",
              fa_last_error());
    remove_all(dir);
}

/* All of the library's files without folders, as a copy of before has them: every family's kernel is the same text. */
Test(files, a_folder_of_before_renders_the_same)
{
    static const char *const kernels[][3] = {
        { "bf16,d=64,mask=causal", "flash_fwd_mma", "sm_80" },
        { "bf16,d=128", "flash_fwd_wgmma", "sm_90a" },
        { "bf16,op=backward,d=64", "flash_bwd_mma", "sm_80" },
        { "bf16,op=backward,d=128", "flash_bwd_wgmma", "sm_90a" },
        { "fp32,d=64", "naive", "sm_80" },
    };
    char dir[64];
    fa_gen *g[2];
    toy_dir(dir, "x\n");
    for (const fa_template_file *f = fa_template_files; f->name; f++) {
        char *text = strdup(f->bytes);
        for (const fa_template_file *t = fa_template_files; t->name; t++) {
            char quoted[64], name[64];
            snprintf(quoted, sizeof quoted, "\"%s/%s\"", t->folder, t->name);
            snprintf(name, sizeof name, "\"%s\"", t->name);
            for (char *at = text; (at = strstr(at, quoted));) {
                memmove(at + strlen(name), at + strlen(quoted), strlen(at + strlen(quoted)) + 1);
                memcpy(at, name, strlen(name));
            }
        }
        toy_write(dir, f->name, text);
        free(text);
    }
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fa_gen_open(&g[i], i ? dir : NULL), FA_OK, "%s", fa_last_error());
    cr_expect_eq(fa_gen_families(g[1]), fa_gen_families(g[0]) + 1);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        fa_source s[2];
        fa_problem p = shaped_problem(kernels[k][0]);
        fa_space space = { 0 };
        const fa_arch *arch = fa_arch_find(kernels[k][2]);
        cr_assert_not_null(arch);
        fa_status st = fa_space_list(g[0], &p, arch, 0, kernels[k][1], &space);
        size_t fit = 0;
        while (st == FA_OK && fit < space.n && !space.points[fit].fits)
            fit++;
        cr_assert(st == FA_OK && fit < space.n, "%s: %s", kernels[k][1], fa_last_error());
        for (int i = 0; i < 2; i++)
            cr_assert_eq(fa_render(g[i], &p, &space.points[fit].config, arch, 0, &s[i]), FA_OK, "%s", fa_last_error());
        cr_expect_str_eq(s[1].text, s[0].text, "%s", kernels[k][1]);
        cr_expect_str_eq(s[1].lined, s[0].lined, "%s", kernels[k][1]);
        for (int i = 0; i < 2; i++)
            fa_source_free(&s[i]);
        fa_space_free(&space);
    }
    for (int i = 0; i < 2; i++)
        fa_gen_close(g[i]);
    remove_all(dir);
}

/* The Lua of a template: what stands after //| up to a comment, and the values. Free it. */
static char *lua_parts(const char *s)
{
    char *out = malloc(strlen(s) + 1), *to = out;
    for (bool begins = true; *s; begins = s[-1] == '\n') {
        if (begins && !strncmp(s, "//|", 3)) {
            for (s += 3; *s != '\n' && strncmp(s, "--", 2); s++)
                *to++ = *s;
            s += strcspn(s, "\n") + 1;
            *to++ = ' ';
        } else if (!strncmp(s, "$(", 2)) {
            int depth = 0;
            for (s++; *s && (depth += (*s == '(') - (*s == ')')) > 0; s++)
                *to++ = *s;
            *to++ = ' ';
            s++;
        } else {
            s++;
        }
    }
    *to = 0;
    return out;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The words "c.lag" of s in the order of the text, with a blank before and after each, each once. */
static void add_words(char *out, size_t most, const char *s)
{
    for (const char *at = s; *at; at++) {
        char word[64];
        if ((*at != 'c' && *at != 'l') || at[1] != '.' || !is_letter(at[2]) || (at > s && (is_letter(at[-1]) || strchr(".:", at[-1]))))
            continue;
        size_t n = 2;
        while (is_letter(at[n]))
            n++;
        snprintf(word, sizeof word, " %.*s ", (int)n, at);
        if (!strstr(out, word)) {
            cr_assert_lt(strlen(out) + n + 3, most);
            strcat(out, word);
        }
    }
}

static void each_is_in(const char *words, const char *in, const char *file, const char *said)
{
    while (*words) {
        char word[64];
        size_t n = strcspn(words + 1, " ") + 2;
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        cr_expect(strstr(in, word), "%s:%s%s", file, word, said);
        words += n;
    }
}

/* A piece says in front which names of the config and the layout it reads, all of them and no others. */
Test(files, pieces_open_with_what_they_need)
{
    int pieces = 0;
    for (const fa_template_file *f = fa_template_files; f->name; f++) {
        static char reads[4000], says[4000];
        char lua[64];
        bool family = false;
        snprintf(lua, sizeof lua, "%.*s.lua", (int)strcspn(f->name, "."), f->name);
        for (const fa_template_file *t = fa_template_files; t->name; t++)
            family = family || !strcmp(t->name, lua);
        if (family || !strstr(f->name, ".cu"))
            continue;
        const char *s = f->bytes;
        *reads = *says = 0;
        for (; !strncmp(s, "//| needs \"", 11); s = strchr(s, '\n') + 1) {
            char line[200];
            snprintf(line, sizeof line, "%.*s", (int)strcspn(s + 11, "\""), s + 11);
            add_words(says, sizeof says, line);
        }
        char *code = lua_parts(s);
        add_words(reads, sizeof reads, code);
        each_is_in(reads, says, f->name, "is read, and not among its needs");
        each_is_in(says, reads, f->name, "is among its needs, and not read");
        cr_expect(!strstr(code, "cfg.") && !strstr(code, "layout."), "%s calls c or l by another name", f->name);
        free(code);
        pieces += *says != 0;
    }
    cr_expect_gt(pieces, 40, "%d", pieces);
}

Test(files, needs_are_checked_where_a_piece_is_included)
{
    static const struct {
        const char *needs, *said;
    } rows[] = {
        { "c.br l.bytes  c.bc", NULL },
        { "", NULL },
        { "c.lag? l.run?", NULL },
        { "c.br l.run", "piece.cu:1: needs l.run, which is absent; accepted: a family whose layout() returns it" },
        { "c.lag", "piece.cu:1: needs c.lag, which is absent; accepted: a family with this tunable" },
        { "p.d", "needs \"p.d\"; accepted: names such as c.bc and l.run, with a ? after what may be absent: l.pack?" },
        { "c.", "needs \"c.\"; accepted" },
        { "c", "needs \"c\"; accepted" },
        { "c.br,l.run", "needs \"c.br,l.run\"; accepted" },
        { "c.br??", "needs \"c.br??\"; accepted" },
        { "?", "needs \"?\"; accepted" },
    };
    char dir[64], text[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_source s;
        toy_dir(dir, "a\n//| include \"piece.cu\"\n");
        snprintf(text, sizeof text, "//| needs \"%s\"\nb\n", rows[i].needs);
        toy_write(dir, "piece.cu", text);
        fa_status st = toy_render(dir, &s);
        cr_expect_eq(st, rows[i].said ? FA_TEMPLATE : FA_OK, "%s: %s", rows[i].needs, fa_last_error());
        if (rows[i].said)
            cr_expect(strstr(fa_last_error(), rows[i].said), "%s: %s", rows[i].needs, fa_last_error());
        else if (st == FA_OK)
            cr_expect_str_eq(s.text, "a\nb\n");
        fa_source_free(&s);
        remove_all(dir);
    }
    toy_dir(dir, "a\n");
    toy_write(dir, "toy.lua", "needs \"c.br\"\nreturn {}");
    fa_source s;
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "undefined name 'c'"), "%s", fa_last_error());
    remove_all(dir);
    toy_dir(dir, "//| c = 1\n//| needs \"c.br\"\n");
    cr_expect_eq(toy_render(dir, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "toy.cu:2: needs c.br, where there is no config"), "%s", fa_last_error());
    remove_all(dir);
}
