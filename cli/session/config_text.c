/* config_text: the families' names, read once in a process. */
#include "config_text.h"
#include "cli/options/problem_options.h"
#include "gen/error.h"
#include <stdio.h>
#include <string.h>

/* Lives as long as the process. NULL: the templates cannot be read, which other calls tell. */
static const fa_gen *names(void)
{
    static fa_gen *g;
    static bool asked;
    fa_message before;
    if (asked)
        return g;
    asked = true;
    fa_message_keep(&before);
    if (fa_message_settle(&before, cli_gen_open(&g)) != FA_OK)
        g = NULL;
    return g;
}

const char *cli_config_text(char buf[CLI_CONFIG_TEXT], const fa_config *c)
{
    const fa_gen *g = names();
    if (g)
        fa_gen_config_print(g, buf, CLI_CONFIG_TEXT, c);
    else
        fa_config_print(buf, CLI_CONFIG_TEXT, c);
    return buf;
}

const char *cli_config_named(char buf[CLI_CONFIG_TEXT], const char *text)
{
    fa_config c;
    fa_message before;
    fa_message_keep(&before);
    if (fa_message_settle(&before, fa_config_parse(&c, text)) == FA_OK)
        return cli_config_text(buf, &c);
    snprintf(buf, CLI_CONFIG_TEXT, "%s", text);
    return buf;
}
