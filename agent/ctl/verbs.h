
/*
 * The commands of llmgwctl, as one table: name, verb, words, options and
 * function of each.  The command line is checked against the table, so that a
 * command's function finds as many words as it needs; and --help is made from
 * it.
 */

#ifndef CTL_VERBS_H
#define CTL_VERBS_H

#include "ctl/main.h"


typedef enum {
    CTL_NEEDS_SOCKET = 0,   /* an agent's, or options.service */
    CTL_TAKES_SOCKET,       /* it asks an agent if there is one */
    CTL_NEEDS_FILES         /* it connects to no service */
} ctl_needs_t;

typedef struct {
    const char            *name;
    const char            *verb;        /* "list"; NULL: none.  The first row
                                           with a name is also used without a
                                           verb, if it is_default */
    const char            *words;       /* that follow, as --help shows them */
    int                    min_words;
    int                    max_words;   /* CTL_MAX_WORDS is the limit */
    const char            *help;        /* NULL: hidden */
    int                  (*run)(const ctl_t *ctl);
    const options_spec_t  *spec;        /* NULL: it has no options.  It is the
                                           same in all rows of one name */
    ctl_needs_t            needs;
    int                    is_default;
} ctl_verb_t;


/*
 * Reads a command and its options; argv[0] is its name.  The words after name
 * and verb are in ctl.  -1: *verb must be run, after which ctl_verb_done()
 * releases the options; otherwise the exit status.
 */
int ctl_verb_parse(const ctl_verb_t **verb, ctl_t *ctl, int argc,
    char **argv);
void ctl_verb_done(const ctl_verb_t *verb, ctl_t *ctl);

/* Prints a line for each command. */
void ctl_verbs_help(FILE *out);

#endif /* CTL_VERBS_H */
