/* A plain stand-in for the part of Criterion that the suites use. Criterion's own runner does not start under ThreadSanitizer; this
 * one forks once per test and has no threads of its own. Same names, same meaning; see runner.c. */
#ifndef FA_TEST_PLAIN_CRITERION_H
#define FA_TEST_PLAIN_CRITERION_H
#pragma GCC system_header /* as the real one is: what the checks compare is the suites' business */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plain_extra {
    int line_; /* so that an empty list of initialisers is none */
    void (*init)(void), (*fini)(void);
    double timeout;
} plain_extra;

struct criterion_test_params {
    size_t size;
    void *params;
    size_t length;
};

typedef struct plain_test {
    const char *suite, *name; /* name NULL: what follows is said of the whole suite */
    void (*body)(void);
    void (*body_of)(void *param);
    struct criterion_test_params (*params)(void);
    plain_extra extra;
    struct plain_test *next;
} plain_test;

void plain_register(plain_test *t);
/* Tells of a failure; a fatal one ends the test. */
void plain_failed(bool fatal, const char *file, int line, const char *what, const char *format, ...) __attribute__((format(printf, 5, 6)));
_Noreturn void plain_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void plain_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define PLAIN_ADD(id, ...)                                  \
    static plain_test id##_row = { __VA_ARGS__ };           \
    __attribute__((constructor)) static void id##_add(void) \
    {                                                       \
        plain_register(&id##_row);                          \
    }

#define TestSuite(s, ...) PLAIN_ADD(plain_suite_##s, .suite = #s, .extra = { .line_ = __LINE__, __VA_ARGS__ })
#define Test(s, n, ...)                                                                                              \
    static void s##_##n##_body(void);                                                                                \
    PLAIN_ADD(s##_##n, .suite = #s, .name = #n, .body = s##_##n##_body, .extra = { .line_ = __LINE__, __VA_ARGS__ }) \
    static void s##_##n##_body(void)
#define ParameterizedTestParameters(s, n) static struct criterion_test_params s##_##n##_params(void)
#define ParameterizedTest(declared, s, n, ...)                                                         \
    static void s##_##n##_body(declared);                                                              \
    static void s##_##n##_call(void *param)                                                            \
    {                                                                                                  \
        s##_##n##_body(param);                                                                         \
    }                                                                                                  \
    PLAIN_ADD(s##_##n, .suite = #s, .name = #n, .body_of = s##_##n##_call, .params = s##_##n##_params, \
              .extra = { .line_ = __LINE__, __VA_ARGS__ })                                             \
    static void s##_##n##_body(declared)
#define cr_make_param_array(type, array, n) ((struct criterion_test_params){ sizeof(type), (array), (n) })

#define PLAIN_CHECK(fatal, holds, what, ...)                                \
    do {                                                                    \
        if (!(holds))                                                       \
            plain_failed(fatal, __FILE__, __LINE__, what, " " __VA_ARGS__); \
    } while (0)
#define PLAIN_TRUE(fatal, c, ...) PLAIN_CHECK(fatal, (c), #c, ##__VA_ARGS__)

#define cr_assert(c, ...) PLAIN_TRUE(true, c, ##__VA_ARGS__)
#define cr_expect(c, ...) PLAIN_TRUE(false, c, ##__VA_ARGS__)
#define cr_assert_not(c, ...) PLAIN_TRUE(true, !(c), ##__VA_ARGS__)
#define cr_expect_not(c, ...) PLAIN_TRUE(false, !(c), ##__VA_ARGS__)
#define cr_assert_null(p, ...) PLAIN_TRUE(true, (p) == NULL, ##__VA_ARGS__)
#define cr_expect_null(p, ...) PLAIN_TRUE(false, (p) == NULL, ##__VA_ARGS__)
#define cr_assert_not_null(p, ...) PLAIN_TRUE(true, (p) != NULL, ##__VA_ARGS__)
#define cr_expect_not_null(p, ...) PLAIN_TRUE(false, (p) != NULL, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_TRUE(true, (a) == (b), ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_TRUE(false, (a) == (b), ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_TRUE(true, (a) != (b), ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) PLAIN_TRUE(false, (a) != (b), ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_TRUE(true, (a) < (b), ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_TRUE(false, (a) < (b), ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_TRUE(true, (a) <= (b), ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) PLAIN_TRUE(false, (a) <= (b), ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_TRUE(true, (a) > (b), ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_TRUE(false, (a) > (b), ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_TRUE(true, (a) >= (b), ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) PLAIN_TRUE(false, (a) >= (b), ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...) PLAIN_TRUE(true, fabs((double)(a) - (double)(b)) <= (e), ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) PLAIN_TRUE(false, fabs((double)(a) - (double)(b)) <= (e), ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN_TRUE(true, strcmp((a), (b)) == 0, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) PLAIN_TRUE(false, strcmp((a), (b)) == 0, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) PLAIN_TRUE(true, strcmp((a), (b)) != 0, ##__VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) PLAIN_TRUE(false, strcmp((a), (b)) != 0, ##__VA_ARGS__)
#define cr_assert_str_empty(a, ...) PLAIN_TRUE(true, (a)[0] == 0, ##__VA_ARGS__)
#define cr_expect_str_empty(a, ...) PLAIN_TRUE(false, (a)[0] == 0, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) PLAIN_TRUE(true, memcmp((a), (b), (n)) == 0, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) PLAIN_TRUE(false, memcmp((a), (b), (n)) == 0, ##__VA_ARGS__)
#define cr_assert_fail(...) PLAIN_CHECK(true, false, "fail", ##__VA_ARGS__)
#define cr_expect_fail(...) PLAIN_CHECK(false, false, "fail", ##__VA_ARGS__)
#define cr_skip_test(...) plain_skip(" " __VA_ARGS__)
#define cr_log_info(...) plain_log(__VA_ARGS__)
#define cr_log_warn(...) plain_log(__VA_ARGS__)
#define cr_log_error(...) plain_log(__VA_ARGS__)
#endif
