/* A program with libfagen_launch as a guest, for test_guest.c: it starts and ends. */
#include <fagen.h>

int main(void)
{
    return fa_launch(0, 0, 0) == FA_INVALID ? 7 : 9;
}
