// fagen.h as C++11 sees it.
#include <fagen.h>

extern "C" int cxx_sees(void)
{
    fa_problem problem = FA_PROBLEM_INIT;
    fa_args args = FA_ARGS_INIT;
    fa_options options = FA_OPTIONS_INIT;
    fa_tune_options tune = FA_TUNE_OPTIONS_INIT;
    return problem.size == sizeof problem && args.size == sizeof args && options.size == sizeof options && tune.size == sizeof tune ? 0 : 5;
}
