/* record_text: a head and lines. */
#include "record_text.h"
#include "entry.h"
#include "gen/error.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC "fagen records "
#define HEAD_MOST 96 /* bytes of the first line */

static void check_of(char hex[33], const char *bytes, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(bytes, n);
    fa_key_print(hex, (fa_key){ h.low64, h.high64 });
}

fa_status fa_record_text_write(fa_text *out, const fa_record *r, size_t n)
{
    fa_text lines = { 0 };
    char hex[33];
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = fa_record_to_json(&r[i], &lines);
        fa_text_str(&lines, "\n");
    }
    fa_status st = !ok || lines.oom ? fa_fail(FA_NOMEM, "records: no memory for %zu of them", n) : FA_OK;
    if (st == FA_OK && (n > FA_RECORD_TEXT_LINES || lines.n + HEAD_MOST > FA_RECORD_TEXT_CAP))
        st = fa_fail(FA_INVALID, "records: %zu of them, %zu bytes; accepted: at most %d and %zu; those of one problem are fewer", n,
                     lines.n, FA_RECORD_TEXT_LINES, FA_RECORD_TEXT_CAP);
    if (st == FA_OK) {
        check_of(hex, fa_text_cstr(&lines), lines.n);
        fa_text_fmt(out, MAGIC "%d %zu %s\n", FA_RECORD_TEXT_VERSION, n, hex);
        fa_text_add(out, fa_text_cstr(&lines), lines.n);
        st = out->oom ? fa_fail(FA_NOMEM, "records: no memory for %zu of them", n) : FA_OK;
    }
    fa_text_free(&lines);
    return st;
}

bool fa_record_text_begins(const char *bytes, size_t size)
{
    return size >= sizeof MAGIC - 1 && !memcmp(bytes, MAGIC, sizeof MAGIC - 1);
}

/* The first line taken apart; *lines: where the others begin. */
static fa_status read_head(const char *bytes, size_t size, size_t *count, const char **lines)
{
    char head[HEAD_MOST], hex[40], own[33], more;
    unsigned version;
    uint64_t n;
    const char *end = size ? memchr(bytes, '\n', size < HEAD_MOST ? size : HEAD_MOST) : NULL;
    if (size > FA_RECORD_TEXT_CAP)
        return fa_fail(FA_INVALID, "records: %zu bytes; accepted: at most %zu", size, FA_RECORD_TEXT_CAP);
    if (!fa_record_text_begins(bytes, size) || !end)
        return fa_fail(FA_INVALID, "records: not a text of records; accepted: what fa_records_export() writes");
    memcpy(head, bytes, (size_t)(end - bytes));
    head[end - bytes] = 0;
    if (sscanf(head, MAGIC "%9u", &version) != 1 || version != FA_RECORD_TEXT_VERSION)
        return fa_fail(FA_INVALID, "records: the first line is \"%s\"; accepted: format version %d", head, FA_RECORD_TEXT_VERSION);
    if (sscanf(head, MAGIC "%9u %9" SCNu64 " %39s%c", &version, &n, hex, &more) != 3 || n > FA_RECORD_TEXT_LINES)
        return fa_fail(FA_INVALID, "records: the first line is \"%s\"; accepted: a count of at most %d and a check", head,
                       FA_RECORD_TEXT_LINES);
    *lines = end + 1;
    check_of(own, *lines, (size_t)(bytes + size - *lines));
    if (strcmp(own, hex) != 0)
        return fa_fail(FA_INVALID, "records: the check does not match: the text is cut short or changed");
    *count = (size_t)n;
    return FA_OK;
}

/* The bytes of one line without its newline. */
static fa_status read_line(fa_record *out, const char *line, size_t n, size_t number, fa_record_memo *memo)
{
    char *text = n <= FA_LINE_CAP && !memchr(line, 0, n) ? strndup(line, n) : NULL;
    fa_status st = FA_OK;
    if (!text)
        st = fa_fail(FA_INVALID, "records: line %zu has %zu bytes, or a 0 among them; accepted: at most %zu", number, n, FA_LINE_CAP);
    else if (!fa_record_read(out, text, memo))
        st = fa_fail(FA_INVALID, "records: line %zu is no record that fagen " FA_VERSION_STRING " knows: %.80s", number, text);
    free(text);
    return st;
}

fa_status fa_record_text_read(fa_records *out, const char *bytes, size_t size)
{
    const char *p = bytes, *end = bytes + size;
    size_t count = 0;
    fa_record_memo memo = { .text = "" };
    *out = (fa_records){ NULL, 0 };
    fa_status st = read_head(bytes, size, &count, &p);
    if (st != FA_OK)
        return st;
    out->r = calloc(count + 1, sizeof *out->r);
    if (!out->r)
        return fa_fail(FA_NOMEM, "records: no memory for %zu of them", count);
    for (size_t i = 0; i < count && st == FA_OK; i++) {
        const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        st = nl ? read_line(&out->r[i], p, (size_t)(nl - p), i + 2, &memo)
                : fa_fail(FA_INVALID, "records: %zu lines, where the first tells of %zu", i, count);
        p = nl ? nl + 1 : end;
        out->n = i + 1;
    }
    if (st == FA_OK && p != end)
        st = fa_fail(FA_INVALID, "records: there are more lines than the %zu that the first tells of", count);
    if (st != FA_OK)
        fa_records_free(out);
    return st;
}
