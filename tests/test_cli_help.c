/* What the command tells of itself: the same tables as text, JSON, manual pages, and completions of two shells. */
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

TestSuite(cli_help, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 300);

static const char *text_at(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    return s ? s : "";
}

/* What a command of the shell prints, both streams; *code: its exit code. Heap. */
static char *shell(const char *command, int *code)
{
    FILE *f = popen(command, "r");
    char *text = NULL, part[4096];
    size_t size;
    FILE *to = open_memstream(&text, &size);
    cr_assert(f && to);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        fwrite(part, 1, n, to);
    fclose(to);
    int status = pclose(f);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

static bool have(const char *tool)
{
    char command[100];
    snprintf(command, sizeof command, "command -v %s >/dev/null", tool);
    return system(command) == 0;
}

/* The subcommands of `fagen help --json`. */
static json_t *commands(void)
{
    json_t *j = cli_json("help --json", 0), *list = json_object_get(j, "commands");
    cr_assert_geq(json_array_size(list), 14);
    json_incref(list);
    json_decref(j);
    return list;
}

Test(cli_help, json)
{
    static const struct {
        const char *words, *field;
    } rows[] = { { "--version --json", "fagen" },
                 { "-V --json", "fagen" },
                 { "help --json", "topics" },
                 { "--help --json", "commands" },
                 { "-h --json", "commands" },
                 { "help exit-codes --json", "exit_codes" },
                 { "help --json environment", "environment" },
                 { "help tune --json", "groups" },
                 { "tune --help --json", "groups" },
                 { "help help --json", "usage" },
                 { "completion bash --json", "text" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *j = cli_json(rows[i].words, 0);
        cr_expect(json_object_get(j, rows[i].field), "%s: no %s", rows[i].words, rows[i].field);
        json_decref(j);
    }
    json_t *j = cli_json("help exit-codes --json", 0), *codes = json_object_get(j, "exit_codes"), *row;
    size_t i;
    bool interrupted = false;
    json_array_foreach(codes, i, row)
    {
        cr_expect(text_at(row, "means")[0]);
        interrupted |= json_integer_value(json_object_get(row, "code")) == 130;
    }
    cr_expect(json_array_size(codes) >= 9 && interrupted);
    json_decref(j);
    json_decref(cli_json("help nonsense --json", 1));
    json_decref(cli_json("--version --nonsense --json", 1));
    json_decref(cli_json("help --man --json", 1));
}

/* An option as each form tells it: in the JSON, in the manual page, and in what the completions offer. */
Test(cli_help, every_option)
{
    json_t *list = commands(), *one;
    size_t i, n = 0;
    cli_result bash = cli_run("completion bash"), zsh = cli_run("completion zsh");
    json_array_foreach(list, i, one)
    {
        const char *name = text_at(one, "name");
        char words[100];
        snprintf(words, sizeof words, "help --man %s", name);
        cli_result man = cli_run(words);
        snprintf(words, sizeof words, "help %s --json", name);
        json_t *all = cli_json(words, 0), *group, *option;
        size_t g, o;
        snprintf(words, sizeof words, "    %s) echo \"", name);
        const char *offered = strstr(bash.out, words);
        cr_assert(offered && man.code == 0, "%s", name);
        json_array_foreach(json_object_get(all, "groups"), g, group) json_array_foreach(json_object_get(group, "options"), o, option)
        {
            char roff[100] = "\\-\\-", plain[100];
            for (const char *p = text_at(option, "name"); *p; p++)
                snprintf(roff + strlen(roff), sizeof roff - strlen(roff), *p == '-' ? "\\-" : "%c", *p);
            snprintf(plain, sizeof plain, "--%s", text_at(option, "name"));
            const char *found = strstr(offered, plain);
            cr_expect(strstr(man.out, roff), "fagen-%s.1 has no %s", name, plain);
            cr_expect(found && found < strchr(offered, '\n'), "bash: %s is not offered %s", name, plain);
            cr_expect(strstr(zsh.out, plain), "zsh: no %s", plain);
            cr_expect(!json_object_get(option, "value") == !json_object_get(option, "accepted"), "%s %s", name, plain);
            n++;
        }
        json_decref(all);
        cli_result_free(&man);
    }
    cr_expect_gt(n, 200);
    cr_expect(!strstr(bash.out, "candidate-process") && !strstr(zsh.out, "candidate-process"), "what is between processes is told of");
    cli_result_free(&bash);
    cli_result_free(&zsh);
    json_decref(list);
}

/* Every page through a reader of pages; anything that it says is a fault. */
static void read_pages(const char *tool, const char *command)
{
    json_t *list = commands();
    if (!have(tool)) {
        json_decref(list);
        cr_skip_test("there is no %s", tool);
    }
    for (size_t i = 0; i <= json_array_size(list); i++) {
        char words[300];
        int code;
        const char *name = i ? text_at(json_array_get(list, i - 1), "name") : "";
        snprintf(words, sizeof words, "help --man %s", name);
        cli_result page = cli_run(words);
        cli_scratch_write("page.1", page.out, page.out_size);
        char *said = shell(command, &code);
        cr_expect(code == 0 && !said[0], "%s of fagen%s%s.1: %d %s", tool, i ? "-" : "", name, code, said);
        free(said);
        cli_result_free(&page);
    }
    json_decref(list);
}

Test(cli_help, groff)
{
    read_pages("groff", "groff -ww -b -man -Tutf8 page.1 2>&1 >formatted");
}

Test(cli_help, mandoc)
{
    read_pages("mandoc", "mandoc -T lint -W warning page.1 2>&1");
}

/* Words as bash splits them, the last being completed; and the whole reply. */
static const struct {
    const char *words, *reply;
} completions[] = {
    { "fagen t", "tune" },
    { "fagen tune --str", "--strategy" },
    { "fagen tune --strategy ''", "halving exhaustive model random" },
    { "fagen tune --strategy = h", "halving" },
    { "fagen tune --strategy =", "halving exhaustive model random" },
    { "fagen tune --mask none,ca", "none,causal" },
    { "fagen tune --mask = none,ca", "none,causal" },
    { "fagen tune --all --mask w", "window" },
    { "fagen tune -g vi", "vit" },
    { "fagen tune --family na", "naive naive_bwd" },
    { "fagen tune --process", "" },
    { "fagen run --device si",
      "sim:sm_80 sim:sm_86 sim:sm_87 sim:sm_89 sim:sm_90a sim:sm_100a sim:sm_103a sim:sm_120a sim:sm_121a sim:a100 "
      "sim:rtx3090 sim:3090 sim:orin sim:rtx4090 sim:4090 sim:l40s sim:h100 sim:h200 sim:b200 sim:b300 sim:rtx5090 sim:5090 sim:gb10" },
    { "fagen run --device sim : sm_9", "sm_90a" },
    { "fagen run --device = sim : sm_9", "sm_90a" },
    { "fagen cache ''", "ls stat why verify prune export import" },
    { "fagen cache --arch sm_80 ex", "export" },
    { "fagen cache export no", "note.txt" },
    { "fagen emit -o no", "note.txt" },
    { "fagen emit -d 12", "" },
    { "fagen sample -C fo", "folder" },
    { "fagen cache import no", "note.txt" },
    { "fagen help ex", "explore exit-codes" },
    { "fagen completion ''", "bash zsh" },
    { "fagen nonsense --x", "" },
};

Test(cli_help, bash)
{
    if (!have("bash"))
        cr_skip_test("there is no bash");
    cli_result script = cli_run("completion bash");
    cr_assert_eq(script.code, 0);
    cli_scratch_write("fagen.bash", script.out, script.out_size);
    cli_scratch_write("note.txt", "", 0);
    mkdir("folder", 0755);
    for (size_t i = 0; i < sizeof completions / sizeof *completions; i++) {
        char command[512];
        int code;
        snprintf(command, sizeof command,
                 "bash -c \"source ./fagen.bash; COMP_WORDS=(%s); COMP_CWORD=\\$((\\${#COMP_WORDS[@]} - 1)); "
                 "_fagen; echo -n \\\"\\${COMPREPLY[*]}\\\"; complete -p fagen >/dev/null\" 2>&1",
                 completions[i].words);
        char *reply = shell(command, &code);
        cr_expect_eq(code, 0, "%s", completions[i].words);
        cr_expect_str_eq(reply, completions[i].reply, "%s: \"%s\"", completions[i].words, reply);
        free(reply);
    }
    cli_result_free(&script);
}

Test(cli_help, zsh)
{
    char command[512];
    int code;
    if (!have("zsh"))
        cr_skip_test("there is no zsh");
    cli_result script = cli_run("completion zsh");
    mkdir("functions", 0755);
    mkdir("typed", 0755);
    cli_scratch_write("functions/_fagen", script.out, script.out_size);
    snprintf(command, sizeof command, "zsh -f " FAGEN_TESTS "/completion.zsh \"$PWD/functions\" \"$PWD/typed\" 2>&1");
    char *said = shell(command, &code);
    if (code == 77)
        cr_skip_test("zsh has no zsh/zpty");
    cr_expect(code == 0 && strstr(said, "all rows: ok"), "%d %s", code, said);
    free(said);
    cli_result_free(&script);
}

/* What README shows of commands whose answer depends on neither the machine nor the clock is what they print; "..." leaves the rest out. */
static char *whole(const char *path)
{
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    char *text = calloc(1, 1 << 20);
    cr_assert(text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* The first screen of the README: the chart, how to install, lines of C and of Python, the demo after them; and figures that
 * docs/performance.md holds. */
Test(cli_help, readme_begins_with_what_a_visitor_needs)
{
    static const char *const order[] = { "docs/performance-main.svg", "pip install .", "cmake --install", "fa_launch(",
                                         "fagen.attention(",          "scripts/demo" };
    char *readme = whole(FAGEN_TESTS "/../README.md"), *performance = whole(FAGEN_TESTS "/../docs/performance.md");
    const char *at = readme;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *next = strstr(at, order[i]);
        cr_assert(next, "%s is not behind %s", order[i], i ? order[i - 1] : "the title");
        at = next;
    }
    int lines = 0;
    for (const char *s = readme; s < at; s++)
        lines += *s == '\n';
    cr_expect_leq(lines, 45, "the demo begins in line %d", lines);
    const char *fast = strstr(readme, "## How fast"), *end = strstr(fast, "\n[docs/experiments.md]");
    cr_assert(fast && end);
    int figures = 0;
    for (const char *s = strstr(fast, "\n| beside"); s < end;) { /* each number with a decimal point */
        size_t n = strspn(s, "0123456789");
        if (n && s[n] == '.' && s[n + 1] >= '0' && s[n + 1] <= '9' && strncmp(s, "0.2 us", 6)) {
            char figure[32];
            n += 1 + strspn(s + n + 1, "0123456789");
            snprintf(figure, sizeof figure, "%.*s", (int)n, s);
            cr_expect(strstr(performance, figure), "docs/performance.md has no %s", figure);
            figures++;
        }
        s += n ? n : 1;
    }
    cr_expect_gt(figures, 8);
    free(readme);
    free(performance);
}

Test(cli_help, readme)
{
    static const struct {
        const char *command, *only; /* of its lines: those that begin so */
    } rows[] = { { "fagen space", "" }, { "fagen model", "" }, { "fagen doctor", "templates" } };
    FILE *f = fopen(FAGEN_TESTS "/../README.md", "r");
    size_t compared = 0;
    char line[1024];
    cli_result r = { 0 };
    const char *at = NULL, *only = "";
    cr_assert(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "```", 3) || !strcmp(line, "...") || line[0] == '$') {
            cli_result_free(&r);
            r = (cli_result){ 0 };
            at = NULL;
        }
        for (size_t i = 0; line[0] == '$' && i < sizeof rows / sizeof *rows; i++)
            if (!strncmp(line + 2, rows[i].command, strlen(rows[i].command))) {
                r = cli_run(line + 2 + strlen("fagen "));
                at = r.out;
                only = rows[i].only;
                cr_assert_eq(r.code, 0, "%s: %s", line, r.err);
            }
        if (!at || line[0] == '$' || !line[0] || strncmp(line, only, strlen(only)))
            continue;
        const char *found = at;
        size_t n = strlen(line);
        while (found && (strncmp(found, line, n) || (found[n] && found[n] != '\n')))
            found = (found = strchr(found, '\n')) ? found + 1 : NULL;
        cr_expect(found, "README shows, and the command does not print: %s", line);
        at = found ? found + n : at;
        compared++;
    }
    cli_result_free(&r);
    fclose(f);
    cr_expect_gt(compared, 15);
}
