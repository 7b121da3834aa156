/* config_text: the one text of a config that people, tables and documents get: values by their names, as --config takes them. */
#ifndef FA_CLI_SESSION_CONFIG_TEXT_H
#define FA_CLI_SESSION_CONFIG_TEXT_H
#include "gen/config.h"

#define CLI_CONFIG_TEXT 512

/* As fa_gen_config_print writes it with the templates of FAGEN_TEMPLATE_DIR; the form of records, numbers, where these cannot be read or do
 * not know the family. Returns buf. Not for several threads at once; leaves the thread's message alone. */
const char *cli_config_text(char buf[CLI_CONFIG_TEXT], const fa_config *c);
/* The same of the text of a record or of a cached kernel's description; that text where it does not parse. */
const char *cli_config_named(char buf[CLI_CONFIG_TEXT], const char *text);
#endif
