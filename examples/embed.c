/* embed: fagen inside a program, from tensors to attention, with nothing but <fagen.h>.
 *   cc embed.c $(pkg-config --cflags --libs fagen) && ./a.out         on the GPU
 *   FAGEN_DEVICE=sim:sm_80 ./a.out                                    on the simulator
 * An engine has device memory and streams of its own and passes those; fa_alloc() and fa_copy() stand in for them here. */
#include <fagen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 1, H = 2, N = 256, D = 64, COUNT = B * N * H * D };
typedef uint16_t bf16; /* the upper half of a float */

static void check(const char *what, fa_status st)
{
    if (st != FA_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, fa_status_name(st), fa_last_error());
        exit(1);
    }
}

static bf16 random_bf16(void)
{
    float f = 2 * (float)rand() / (float)RAND_MAX - 1;
    uint32_t bits;
    memcpy(&bits, &f, sizeof f);
    return (bf16)(bits >> 16);
}

static float to_float(bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

int main(void)
{
    static bf16 in[3][COUNT], o[COUNT]; /* Q, K, V and O, packed [b, s, h, d] */
    fa_context *ctx;
    fa_problem problem = FA_PROBLEM_INIT;
    fa_args args = FA_ARGS_INIT;
    fa_tensor *tensor[4] = { &args.q, &args.k, &args.v, &args.o };
    char text[2048];

    check("fa_create", fa_create(&ctx, NULL));
    for (int t = 0; t < 4; t++)
        check("fa_alloc", fa_alloc(ctx, &tensor[t]->ptr, sizeof o));
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < COUNT; i++)
            in[t][i] = random_bf16();
        check("fa_copy", fa_copy(ctx, tensor[t]->ptr, in[t], sizeof in[t], FA_TO_DEVICE));
    }

    problem.dtype = args.dtype = FA_BF16;
    problem.d = args.d = D;
    problem.mask = args.mask = FA_MASK_CAUSAL;
    problem.b = args.b = B;
    problem.hq = problem.hkv = args.hq = args.hkv = H;
    problem.sq = problem.sk = args.sq = args.sk = N;
    check("fa_prepare", fa_prepare(ctx, &problem)); /* compiles, or finds it in the cache */
    check("fa_launch", fa_launch(ctx, &args, NULL));
    check("fa_copy", fa_copy(ctx, o, args.o.ptr, sizeof o, FA_FROM_DEVICE)); /* waits for the launch */
    check("fa_explain", fa_explain(ctx, &problem, &args, text, sizeof text));

    printf("%s\nO[0, %d, 0] =", text, N - 1);
    for (int i = 0; i < D; i++)
        printf("%s%8.4f", i % 8 ? " " : "\n   ", to_float(o[(N - 1) * H * D + i]));
    int same = !memcmp(o, in[2], D * sizeof *o);
    printf("\nThe first query sees one key: O[0, 0, 0] %s V[0, 0, 0]\n", same ? "is" : "IS NOT");
    for (int t = 0; t < 4; t++)
        check("fa_free", fa_free(ctx, tensor[t]->ptr));
    fa_destroy(ctx);
    return !same;
}
