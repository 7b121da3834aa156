/* What becomes of a pair of a query and a key is written once, in templates/pairs/: the places are counted in all templates, whatever their
 * files are called. A rule written into a kernel by hand raises a count. */
#include "gen/templates.h"
#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *what, *pattern; /* of a line */
    int inside, outside;        /* lines of templates/pairs/, and of all others at most; inside -1: any number */
    const char *by_hand;        /* such a line */
} rules[] = {
    { "whether a key is seen", "%s >= %s && %s <= %s|%s > %s [|][|] %s < %s", 2, 0, "if (%s > %s || %s < %s) hidden = true;" },
    { "where what a query or a key sees begins and ends", "(^|[^.])(first|last)_(key|query)[(]", -1, 0,
      "  const int lo = first_key(sequence, i) - block * BC, hi = last_key(sequence, i) - block * BC;" },
    { "the diagonals", "diag_(lo|hi)[(]", -1, 0, "  if (key - query > sequence.diag_hi()) return;" },
    { "what becomes of a hidden element", "if [(].*[$][(]x[)][$][(]of[.]at[)] = ", 1, 0, "if (key > hi) $(x)$(of.at) = 0.f;" },
    { "a hidden element by hand", "if [(].*[<>].*[)] [a-z]+([[].*[]])+ = (-infinity[(][)]|0[.]f);", 0, 0,
      "          if (key > hi || key < lo) s[m][n][2 * h + e] = -infinity();" },
    { "an element that is seen, chosen", "(&&|[|][|]).*[?] .*: (-infinity[(][)]|UNSEEN)", -1, 0,
      "  s[i][j] = j >= lo && j <= hi ? s[i][j] * p.scale : -infinity();" },
    { "the words of dropout", "dropout[.]words[(]", 1, 0, "  const uint4 w = dropout.words(number, row, key);" },
    { "what dropout keeps", "dropout[.]keeps[(]", 2, 0, "  if (!dropout.keeps(w.x)) s[m][n][e] = 0.f;" },
    { "the scale of what is kept", "p[.]keep_scale", 4, 0, "  const float inverse = reciprocal(l) * p.keep_scale;" },
    { "dS", "%s [*] [(]%s - %s[)]", 1, 0, "%s * (%s - %s)" },
    { "dS by hand", "- delta", 0, 0, "  dp[i] = s[i] * (dp[i] - delta[i / 4 * 2 + i % 2]);" },
    { "the exponent of a score", "fmaf[(][^,]*, [^,]*, -", 2, 0,
      /* and of a product whose tanh is a polynomial */ "  s[i] = exp2_approx(fmaf(s[i], p.scale_log2, -shift));" },
    { "an exponential of base e", "expf[(]", 3, 0, "  const float weight = expf(lse - m);" },
    { "an exponential of base 2", "[^_a-z]exp2_approx[(].*[(;]", -1, 7, "  const float keep = exp2_approx(m - top);" },
    { "LSE", "[+] logf[(]|log2_approx[(].*[*] 0[.]69", 2, 0, "  p.lse[row] = m + logf(l);" },
    { "which blocks an edge cuts", "full_(hi|lo)", -1, 3, "  const bool masked = block >= range.full_hi || block <= range.full_lo;" },
    { "ranges by functions of a kernel's own",
      "__forceinline__ [A-Za-z]+ (look_up|levels_of|keys_of|iterations_of|[a-z]+_range|[a-z]+_blocks|own_[a-z]+|whole|meet)[(].*[)].*[{]",
      -1, 3, "  __device__ __forceinline__ Levels levels_of(int number) const {" },
    { "blocks of keys or rows", "[^+] [/%] B[CR]( |;|,|})", -1, 10, "  const int first = lo / BC;" },
    { "whether pairs are dropped", "has_dropout", -1, 12, "//| if p.has_dropout then" },
    { "names of params", "cu_seqlens_q cu_seqlens_k|rng drop_bits|shift_lo shift_hi|diag_lo diag_hi", 3, 0,
      "    if p.has_dropout then names = names .. \"rng drop_bits keep_scale \" end" },
    { "which mask it is", "p[.]mask", -1, 3, "//| if p.mask == \"causal\" then" },
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Lines of a text that have the pattern; with `said` each is printed. */
static int lines_with(const regex_t *pattern, const char *text, const char *said)
{
    int n = 0;
    for (const char *s = text; *s;) {
        char line[512];
        size_t length = strcspn(s, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, s);
        bool has = !regexec(pattern, line, 0, NULL, 0);
        n += has;
        if (has && said)
            cr_log_info("%s: %s", said, line);
        s += length + (s[length] == '\n');
    }
    return n;
}

static void compile(regex_t *out, size_t rule)
{
    cr_assert_eq(regcomp(out, rules[rule].pattern, REG_EXTENDED | REG_NOSUB), 0, "%s", rules[rule].what);
}

Test(pairs, a_rule_stands_in_one_place)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        regex_t pattern;
        int inside = 0, outside = 0;
        compile(&pattern, i);
        for (const fa_template_file *f = fa_template_files; f->name; f++) {
            bool room = !strcmp(f->folder, "pairs");
            *(room ? &inside : &outside) += lines_with(&pattern, f->bytes, f->name);
        }
        cr_expect_leq(outside, rules[i].outside, "%s: %d lines outside of templates/pairs/; accepted: %d", rules[i].what, outside,
                      rules[i].outside);
        cr_expect(rules[i].inside < 0 || inside == rules[i].inside, "%s: %d lines of templates/pairs/, not %d", rules[i].what, inside,
                  rules[i].inside);
        regfree(&pattern);
    }
}

Test(pairs, a_rule_by_hand_is_counted)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        regex_t pattern;
        compile(&pattern, i);
        cr_expect_eq(lines_with(&pattern, rules[i].by_hand, NULL), 1, "%s is not counted: %s", rules[i].what, rules[i].by_hand);
        regfree(&pattern);
    }
}
