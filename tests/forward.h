/* forward: the rows of the forward operation in gen/operation.c, by which cases and trials name its tensors. */
#ifndef FA_TEST_FORWARD_H
#define FA_TEST_FORWARD_H
enum { FA_Q, FA_K, FA_V, FA_O, FA_TENSORS };
#endif
