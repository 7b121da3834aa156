/* fake_parts: what the files of fake_driver know of each other. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H
#include "fake_driver.h"

#define ID(f) id_##f,
enum { CU_DRIVER_FUNCTIONS(ID) id_count };
#undef ID

/* A call of the function, which fails where that was asked for. */
CUresult fake_note(int id);
#define NOTE(f)                             \
    do {                                    \
        CUresult noted = fake_note(id_##f); \
        if (noted != CUDA_SUCCESS)          \
            return noted;                   \
    } while (0)

/* Their functions into the table, and back to the start. */
void fake_memory_begin(cu_driver *t);
void fake_streams_begin(cu_driver *t);

CUcontext fake_current(void);
bool fake_is_capturing(void);
bool fake_capture_forbids(void); /* this mode of a capture forbids calls that are not safe */
bool fake_has_pools(void);
long fake_live_streams(void);
#endif
