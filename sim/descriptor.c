/* descriptor: opens matrix descriptors and refuses those that mean no tile. */
#include "descriptor.h"

bool sim_matrix_open(sim_warp *w, const sim_insn *i, const char *what, uint64_t descriptor, bool mn, sim_matrix *m)
{
    static const uint32_t spans[4] = { 16, 128, 64, 32 }; /* by the code of the swizzle */
    const uint64_t fields = 0x3FFFull | 0x3FFFull << 16 | 0x3FFFull << 32 | 7ull << 49 | 3ull << 62;
    *m = (sim_matrix){ .start = (uint32_t)(descriptor & 0x3FFF) << 4,
                       .lead = (uint32_t)(descriptor >> 16 & 0x3FFF) << 4,
                       .stride = (uint32_t)(descriptor >> 32 & 0x3FFF) << 4,
                       .span = spans[descriptor >> 62],
                       .mn = mn };
    if (descriptor & ~fields) {
        sim_fault(w, i, -1, SIM_CHECK_DESCRIPTOR,
                  "the descriptor of %s, 0x%016llx, has bits outside of its fields: 0x%llx; is an address or offset not cut to 14 bits?",
                  what, (unsigned long long)descriptor, (unsigned long long)(descriptor & ~fields));
        return false;
    }
    if (descriptor >> 49 & 7) {
        sim_fault(w, i, -1, SIM_CHECK_UNSUPPORTED,
                  "the descriptor of %s has base offset %u, which is not simulated; start the swizzle pattern at a multiple of %u bytes",
                  what, (unsigned)(descriptor >> 49 & 7), 8 * m->span);
        return false;
    }
    if (m->start & (8 * m->span - 1) & ~(m->span - 1) && m->span > 16) {
        sim_fault(
            w, i, -1, SIM_CHECK_ALIGNMENT,
            "the descriptor of %s starts at shared offset %d, inside of the swizzle pattern of %u bytes that begins at a multiple of %u",
            what, (int)(m->start - SIM_SHARED_BASE), 8 * m->span, 8 * m->span);
        return false;
    }
    return true;
}
