
/*
 * The options of `llmgw up`, and of `add`, `remove` and `status`, which connect
 * to a running `llmgw up`.
 */

#ifndef UP_CMDLINE_H
#define UP_CMDLINE_H

#include <stdint.h>

#include "common/options.h"


typedef struct {
    const char  *listen;
    const char  *keys;
    int          is_open;
    int          is_log_stderr;
    const char  *dir;
    int          is_demo;
    const char  *nginx;
    const char  *module;
    const char  *engine_key_file;
    uint64_t     drain_timeout_ms;
    uint64_t     dns_period_ms;         /* for tests */
    const char  *print;
    int          is_json;               /* of `status` */

    char       **words;                 /* URLs; they point into argv */
    int          nwords;
} cmdline_t;


/*
 * argv[0] is the command's name.  Options and URLs may come in any order;
 * argv's words may be moved.
 */
options_rc_t cmdline_read_up(cmdline_t *o, int argc, char **argv);
options_rc_t cmdline_read_ask(cmdline_t *o, int argc, char **argv);

void cmdline_done_up(cmdline_t *o);
void cmdline_done_ask(cmdline_t *o);

#endif /* UP_CMDLINE_H */
