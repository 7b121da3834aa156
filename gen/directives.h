/* directives: what a kernel's text may not ask of the compiler: anything that is not in the text. The key of a compiled kernel holds the
 * text, the options and the compiler; a file that the text includes, or the day on which it is compiled, would change the kernel and not
 * the key. */
#ifndef FA_GEN_DIRECTIVES_H
#define FA_GEN_DIRECTIVES_H
#include <fagen.h>

/* FA_TEMPLATE for a text with #include, #include_next, #import, #embed, __has_include, __has_embed, __DATE__, __TIME__ or __TIMESTAMP__
 * outside of comments and strings, in any spelling of the preprocessor: `# include`, `%:include`, `??=include`, over continued lines. A
 * line that #if leaves out counts too. The message has the template and line that #line says, else `name` and the line. */
fa_status fa_directives_check(const char *text, const char *name);
#endif
