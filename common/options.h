
/*
 * Command lines, declared as data.
 *
 * One table says each option's name, kind, default, limits and help; from it
 * come parsing, `--help`, `--version`, the file of `-c FILE` ("key value" a
 * line, '#' comments; the command line wins over it), and errors of one line
 * that name the option and the accepted values.
 *
 * Accepted forms: `--name value`, `--name=value`, `--flag`, `--flag=off`, and
 * `-s value` for a table's name of one letter.  The first word that is no
 * option, or `--`, ends the options; what follows is left to the caller
 * (*rest), who may parse on from there: argv[0] is not looked at, so a
 * subcommand's own table starts at its name.
 */

#ifndef OPTIONS_H
#define OPTIONS_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    OPTION_STRING = 0,      /* const char **, copied */
    OPTION_NAME,            /* the same, valid for llmgw_name_is_valid() */
    OPTION_ADDRESS,         /* the same, as HOST:PORT */
    OPTION_FLAG,            /* int *; in a file: no value, on or off */
    OPTION_INT,             /* int64_t *, within min .. max */
    OPTION_DOUBLE,          /* double *, within min .. max */
    OPTION_DURATION,        /* uint64_t * in ms, within min .. max ms */
    OPTION_SIZE,            /* uint64_t *, in bytes, within min .. max */
    OPTION_HEADING          /* no option, but a heading in --help for those that
                               follow */
} option_kind_t;

typedef struct {
    const char     *name;           /* without the dashes; NULL ends a table */
    option_kind_t   kind;
    size_t          offset;         /* of the field in the caller's struct */
    const char     *value;          /* default as text; NULL: none */
    const char     *metavar;        /* "HOST:PORT"; NULL: that of the kind */
    const char     *help;           /* one line; NULL: hidden from --help */
    double          min;            /* min == max: no limits */
    double          max;
    int             required;
} option_t;

typedef struct {
    const char      *program;
    const char      *synopsis;      /* after "usage: PROGRAM " */
    const char      *summary;       /* a line or two below the synopsis */
    const char      *epilogue;      /* NULL or text after the options */
    const option_t  *table;
} options_spec_t;

typedef enum {
    OPTIONS_DONE = 0,
    OPTIONS_EXIT,       /* --help or --version was printed: exit 0 */
    OPTIONS_EUSAGE      /* one line was printed on stderr: exit 2 */
} options_rc_t;

/*
 * Fills the caller's struct, which must be zeroed.  *rest is the index in argv
 * of the first word that is no option (argc: there is none).  has_rest: such
 * words are accepted; otherwise they are an error.
 */
options_rc_t options_parse(const options_spec_t *spec, void *values, int argc,
    char **argv, int has_rest, int *rest);

/*
 * The same for a command line that is checked by another table: options that
 * this table does not have, --help included, are skipped.
 */
options_rc_t options_parse_some(const options_spec_t *spec, void *values,
    int argc, char **argv);

/* Frees the strings of a struct filled by options_parse(). */
void options_done(const options_spec_t *spec, void *values);


/*
 * A command of a program whose first word names one.  A NULL name ends the
 * array.
 */
typedef struct {
    const char   *name;
    int         (*run)(int argc, char **argv);     /* the exit status */
} options_command_t;

/*
 * Runs the command that the first word names, with that word as its argv[0].
 * spec is for --help and --version only; its table is empty.  Returns the exit
 * status: the command's, 0 for help, and 2 for an unknown word, after an error
 * message.
 */
int options_run_command(const options_spec_t *spec,
    const options_command_t *commands, int argc, char **argv);

#endif /* OPTIONS_H */
