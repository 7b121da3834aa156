/* Memory that runs out while a module is read: the call says so, nothing stays allocated, and the next one succeeds. */
#include "fault.h"
#include "test_sim_machine.h"
#include <errno.h>

TestSuite(sim_memory, .init = open80);

/* A module with all that reading keeps: variables, functions, a table of branches, labels and predicates. */
static const char module[] = HEAD80
    ".global .align 4 .u32 words[3] = {1, 2, 3};\n.shared .align 16 .b8 buf[64];\n"
    ".func (.param .b32 out) twice(.param .b32 in)\n{\n.reg .b32 %x<3>;\nld.param.u32 %x1, [in];\nadd.u32 %x2, %x1, %x1;\nst.param.b32 "
    "[out], %x2;\nret;\n}\n" KERNEL("and.b32 %r1, %r0, 3;\nTARGETS: .branchtargets A, B, C, A;\nbrx.idx %r1, TARGETS;\nA: mov.u32 %r2, 10; "
                                    "bra J;\nB: mov.u32 %r2, 20; bra J;\nC: mov.u32 %r2, 30;\n"
                                    "J: setp.gt.u32 %p1, %r2, 10; @%p1 add.u32 %r2, %r2, 1; st.global.u32 [%rd2], %r2;");

static CUresult loads(CUlibrary *l)
{
    return cu->cuLibraryLoadData(l, module, NULL, NULL, 0, NULL, NULL, 0);
}

static long each_fails(fault_kind kind)
{
    CUlibrary l;
    long failed = 0;
    cr_assert_eq(loads(&l), CUDA_SUCCESS, "%s", cu->detail()); /* what is allocated once per process is allocated now */
    cr_assert_eq(cu->cuLibraryUnload(l), CUDA_SUCCESS);
    for (long n = 1;; n++) {
        const char *what = "";
        long live = fault_live();
        fault_arm(kind, n, ENOMEM);
        CUresult r = loads(&l);
        bool fired = fault_disarm(&what);
        cr_assert_eq(r, fired ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, "%s %ld: %d %s", what, n, r, cu->detail());
        if (r == CUDA_SUCCESS)
            cr_assert_eq(cu->cuLibraryUnload(l), CUDA_SUCCESS);
        cr_assert_eq(fault_live(), live, "%ld blocks are left after %s %ld", fault_live() - live, what, n);
        if (!fired)
            return failed;
        failed++;
    }
}

Test(sim_memory, loading)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    long allocations = each_fails(FAULT_ALLOC), reallocations = each_fails(FAULT_GROW);
    cr_assert(allocations > 20 && reallocations > 4, "only %ld allocations and %ld reallocations", allocations, reallocations);
}
