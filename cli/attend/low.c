/* low: K and V of files as codes of few bits. Scales of tokens are found as docs/lowbits.md says. */
#include "attend.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "verify/operands/number.h"

/* Of the row that element i of a file is in. */
static float scale_of(const cli_npy *file, const fa_format *f, int32_t width, size_t i)
{
    float row[FA_MAX_HEAD_DIM];
    for (int32_t k = 0; k < width; k++)
        row[k] = cli_npy_at(file, i / (size_t)width * (size_t)width + (size_t)k);
    return fa_format_amax_scale(f, row, width);
}

float attend_element(const attend_inputs *in, fa_operand_id id, size_t i)
{
    bool v = id == FA_ID_v || id == FA_ID_v_scale;
    const fa_format *f = v ? fa_format_v(&in->p) : fa_format_k(&in->p);
    const cli_npy *file = &in->t[v ? FA_ID_v : FA_ID_k];
    int32_t width = v ? in->p.dv : in->p.d;
    if (id == FA_ID_k_scale || id == FA_ID_v_scale)
        return scale_of(file, f, width, i * (size_t)width);
    if ((id != FA_ID_k && id != FA_ID_v) || !f || f->scale_dtype)
        return cli_npy_at(&in->t[id], i);
    float scale = (v ? in->p.v_scale_by : in->p.k_scale_by) ? scale_of(file, f, width, i) : 1;
    return (float)fa_format_number(f, fa_format_quantize(f, cli_npy_at(file, i), scale));
}
