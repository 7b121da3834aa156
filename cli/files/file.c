/* file: a result in two pieces. */
#include "file.h"
#include "cache/output.h"

fa_status cli_file_write(const char *path, const void *head, size_t n_head, const void *body, size_t n)
{
    fa_output o;
    fa_status st = fa_output_open(&o, path);
    if (st == FA_OK)
        st = fa_output_write(&o, head, n_head);
    if (st == FA_OK)
        st = fa_output_write(&o, body, n);
    fa_status closed = fa_output_close(&o, st == FA_OK);
    return st == FA_OK ? closed : st;
}

fa_status cli_file_check(const char *path)
{
    return path ? fa_output_check(path) : FA_OK;
}
