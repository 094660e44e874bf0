
/*
 * Command lines, parsed by a table.
 *
 * The values are set in three rounds, each over the one before: the table's
 * defaults, the file of `-c`, the command line.  The command line is therefore
 * walked twice: first to find out whether there is a file (or --help), then to
 * set the values.  Defaults go through the same parser as command lines, so a
 * default that breaks its own limits is found at once.
 *
 * An error is one line on stderr with the option (or the file and its line),
 * the given value, and the accepted ones.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/option_value.h"
#include "common/options.h"


#define OPTIONS_MAX         160     /* options in one table */
#define OPTIONS_LINE_BYTES  4096    /* a line of the file of -c */
#define OPTIONS_HELP_WIDTH  31      /* column of the help texts */


typedef struct {
    const options_spec_t  *spec;
    char                  *values;
    const char            *file;                /* the file of -c, or NULL */
    unsigned               line;                /* of that file; 0: an error in
                                                   argv */
    char                   given[OPTIONS_MAX];
    int                    is_partial;          /* options not in the table are
                                                   no error */
} options_state_t;


static const char *const  option_metavars[] = {
    "TEXT", "NAME", "HOST:PORT", NULL, "N", "X", "TIME", "SIZE"
};


static const char *
option_dashes(const option_t *o)
{
    return o->name[1] == '\0' ? "-" : "--";
}


/*
 * Prints the beginning of an error: the program, and the file and line if it is
 * about one.
 */
static void
options_blame(const options_state_t *s)
{
    fprintf(stderr, "%s: ", s->spec->program);

    if (s->line > 0) {
        fprintf(stderr, "%s:%u: ", s->file, s->line);
    }
}


static int
options_set(options_state_t *s, const option_t *o, const char *value)
{
    char  expected[160];

    if (option_value_store(o, s->values + o->offset, value) != 0) {
        option_value_expected(o, expected, sizeof(expected));
        options_blame(s);
        fprintf(stderr, "%s%s: \"%s\" is not %s\n",
                s->line > 0 ? "" : option_dashes(o), o->name, value,
                expected);
        return -1;
    }

    s->given[o - s->spec->table] = 1;

    return 0;
}


static const option_t *
options_find(const options_spec_t *spec, const char *name, size_t len)
{
    const option_t  *o;

    for (o = spec->table; o->name != NULL; o++) {
        if (o->kind != OPTION_HEADING && strlen(o->name) == len
            && memcmp(o->name, name, len) == 0)
        {
            return o;
        }
    }

    return NULL;
}


static int
options_set_defaults(options_state_t *s)
{
    const option_t  *o;

    for (o = s->spec->table; o->name != NULL; o++) {
        if (o->value != NULL && options_set(s, o, o->value) != 0) {
            return -1;
        }
    }

    memset(s->given, 0, sizeof(s->given));

    return 0;
}


/* --- the file */

static char *
options_trim(char *text)
{
    size_t  len;

    while (isspace((unsigned char) *text)) {
        text++;
    }

    len = strlen(text);

    while (len > 0 && isspace((unsigned char) text[len - 1])) {
        len--;
    }

    text[len] = '\0';

    return text;
}


/* Cuts a comment off: a '#' at the line's beginning or after a blank. */
static void
options_strip_comment(char *line)
{
    char  *p;

    for (p = line; *p != '\0'; p++) {
        if (*p == '#' && (p == line || isspace((unsigned char) p[-1]))) {
            *p = '\0';
            return;
        }
    }
}


static int
options_read_line(options_state_t *s, char *line)
{
    char            *key, *value;
    size_t           len;
    const option_t  *o;

    options_strip_comment(line);
    key = options_trim(line);

    if (*key == '\0') {
        return 0;
    }

    len = strcspn(key, " \t");
    value = options_trim(key + len);
    o = options_find(s->spec, key, len);

    if (o == NULL && s->is_partial) {
        return 0;
    }

    if (o == NULL) {
        options_blame(s);
        fprintf(stderr, "unknown key \"%.*s\", see --help\n", (int) len, key);
        return -1;
    }

    if (*value == '\0') {
        if (o->kind != OPTION_FLAG) {
            options_blame(s);
            fprintf(stderr, "%s needs a value\n", o->name);
            return -1;
        }

        value = (char *) "on";
    }

    return options_set(s, o, value);
}


static int
options_read_lines(options_state_t *s, FILE *file)
{
    char  line[OPTIONS_LINE_BYTES];

    while (fgets(line, sizeof(line), file) != NULL) {
        s->line++;

        if (strlen(line) == sizeof(line) - 1 && !feof(file)
            && line[sizeof(line) - 2] != '\n')
        {
            options_blame(s);
            fprintf(stderr, "line longer than %d bytes\n",
                    OPTIONS_LINE_BYTES - 2);
            return -1;
        }

        if (options_read_line(s, line) != 0) {
            return -1;
        }
    }

    if (ferror(file)) {
        options_blame(s);
        fprintf(stderr, "%s: %s\n", s->file, strerror(errno));
        return -1;
    }

    return 0;
}


static int
options_read_file(options_state_t *s)
{
    int    rc;
    FILE  *file;

    if (s->file == NULL) {
        return 0;
    }

    file = fopen(s->file, "re");

    if (file == NULL) {
        options_blame(s);
        fprintf(stderr, "-c: \"%s\": %s\n", s->file, strerror(errno));
        return -1;
    }

    rc = options_read_lines(s, file);
    s->line = 0;
    fclose(file);

    return rc;
}


/* --- help */

static void
options_print_option(const option_t *o)
{
    int          n;
    const char  *metavar;

    metavar = o->metavar != NULL ? o->metavar : option_metavars[o->kind];

    n = printf("  %s%s%s%s", option_dashes(o), o->name,
               o->kind == OPTION_FLAG ? "" : " ",
               o->kind == OPTION_FLAG ? "" : metavar);

    if (n > OPTIONS_HELP_WIDTH - 2) {
        printf("\n");
        n = 0;
    }

    printf("%*s%s", OPTIONS_HELP_WIDTH - n, "", o->help);

    if (o->required) {
        printf(" (required)");

    } else if (o->value != NULL && *o->value != '\0'
               && o->kind != OPTION_FLAG)
    {
        printf(" (%s)", o->value);
    }

    printf("\n");
}


static void
options_print_help(const options_spec_t *spec)
{
    size_t           i;
    const option_t  *o;

    static const option_t  common[] = {
        { .name = "c", .metavar = "FILE",
          .help = "read options from FILE, \"key value\" lines" },
        { .name = "help", .kind = OPTION_FLAG, .help = "print this help" },
        { .name = "version", .kind = OPTION_FLAG, .help = "print the version" },
    };

    printf("usage: %s %s\n", spec->program, spec->synopsis);

    if (spec->summary != NULL) {
        printf("\n%s\n", spec->summary);
    }

    printf("\n");

    for (o = spec->table; o->name != NULL; o++) {
        if (o->kind == OPTION_HEADING) {
            printf("%s%s:\n", o != spec->table ? "\n" : "", o->name);

        } else if (o->help != NULL) {
            options_print_option(o);
        }
    }

    if (spec->table->kind == OPTION_HEADING) {
        printf("\nEverywhere:\n");
    }

    /* a command without options of its own reads none from a file either */

    i = spec->table->name != NULL ? 0 : 1;

    for ( /* void */ ; i < sizeof(common) / sizeof(common[0]); i++) {
        options_print_option(&common[i]);
    }

    if (spec->epilogue != NULL) {
        printf("\n%s\n", spec->epilogue);
    }
}


/* If the word is --help or --version, answers it and returns 1. */
static int
options_answer(const options_spec_t *spec, const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        options_print_help(spec);
        return 1;
    }

    if (strcmp(word, "--version") == 0) {
        printf("%s %s\n", spec->program, LLMGW_VERSION);
        return 1;
    }

    return 0;
}


/* --- the command line */

/*
 * Takes a word of the command line apart: "--name=value" or "-n".  Returns the
 * name's length; 0: the word is no option.
 */
static size_t
options_word(const char *word, const char **name, const char **value)
{
    size_t       len;
    const char  *equals;

    *value = NULL;

    if (word[0] != '-' || word[1] == '\0') {
        return 0;
    }

    if (word[1] != '-') {
        *name = word + 1;
        return strlen(*name);
    }

    *name = word + 2;
    equals = strchr(*name, '=');

    if (equals == NULL) {
        return strlen(*name);
    }

    len = (size_t) (equals - *name);
    *value = equals + 1;

    return len;
}


static int
options_missing_value(options_state_t *s, const char *word)
{
    options_blame(s);
    fprintf(stderr, "%s needs a value\n", word);

    return -1;
}


/*
 * Takes the option at argv[i].  apply: the field is set, otherwise the option
 * is only checked.  Returns the number of words used, or -1 after printing an
 * error.
 */
static int
options_take(options_state_t *s, int argc, char **argv, int i, int apply)
{
    size_t           len;
    const char      *name = NULL, *value = NULL;
    const option_t  *o;

    len = options_word(argv[i], &name, &value);

    if (argv[i][1] != '-' && len == 1 && *name == 'c') {
        if (i + 1 == argc) {
            return options_missing_value(s, argv[i]);
        }

        s->file = argv[i + 1];
        return 2;
    }

    o = options_find(s->spec, name, len);

    if (o == NULL && s->is_partial) {
        return 1;
    }

    if (o == NULL || (argv[i][1] == '-') != (len > 1)) {
        options_blame(s);
        fprintf(stderr, "unknown option \"%s\", see --help\n", argv[i]);
        return -1;
    }

    if (o->kind == OPTION_FLAG && value == NULL) {
        return apply && options_set(s, o, "on") != 0 ? -1 : 1;
    }

    if (value != NULL) {
        return apply && options_set(s, o, value) != 0 ? -1 : 1;
    }

    if (i + 1 == argc) {
        return options_missing_value(s, argv[i]);
    }

    return apply && options_set(s, o, argv[i + 1]) != 0 ? -1 : 2;
}


/*
 * Walks the command line and sets *rest.  EXIT: a word asked for help, which
 * was printed.
 */
static options_rc_t
options_walk(options_state_t *s, int argc, char **argv, int apply, int *rest)
{
    int  i, n;

    for (i = 1; i < argc; i += n) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }

        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            if (s->is_partial) {      /* a value, or an error that is found
                                         later */
                n = 1;
                continue;
            }

            break;
        }

        if (!s->is_partial && options_answer(s->spec, argv[i])) {
            return OPTIONS_EXIT;
        }

        n = options_take(s, argc, argv, i, apply);

        if (n < 0) {
            return OPTIONS_EUSAGE;
        }
    }

    *rest = i;

    return OPTIONS_DONE;
}


static int
options_check_required(options_state_t *s)
{
    const option_t  *o;

    for (o = s->spec->table; o->name != NULL; o++) {
        if (o->required && !s->given[o - s->spec->table]) {
            options_blame(s);
            fprintf(stderr, "%s%s is required, see --help\n",
                    option_dashes(o), o->name);
            return -1;
        }
    }

    return 0;
}


static options_rc_t
options_fill(options_state_t *s, int argc, char **argv, int *rest)
{
    options_rc_t  rc;

    rc = options_walk(s, argc, argv, 0, rest);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    if (options_set_defaults(s) == 0 && options_read_file(s) == 0
        && options_walk(s, argc, argv, 1, rest) == OPTIONS_DONE)
    {
        return OPTIONS_DONE;
    }

    options_done(s->spec, s->values);

    return OPTIONS_EUSAGE;
}


options_rc_t
options_parse(const options_spec_t *spec, void *values, int argc, char **argv,
    int has_rest, int *rest)
{
    options_rc_t     rc;
    options_state_t  s = { .spec = spec, .values = values };

    rc = options_fill(&s, argc, argv, rest);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    if (*rest < argc && !has_rest) {
        options_blame(&s);
        fprintf(stderr, "unexpected word \"%s\", see --help\n", argv[*rest]);

    } else if (options_check_required(&s) == 0) {
        return OPTIONS_DONE;
    }

    options_done(spec, values);

    return OPTIONS_EUSAGE;
}


options_rc_t
options_parse_some(const options_spec_t *spec, void *values, int argc,
    char **argv)
{
    int              rest;
    options_state_t  s = { .spec = spec, .values = values, .is_partial = 1 };

    return options_fill(&s, argc, argv, &rest);
}


void
options_done(const options_spec_t *spec, void *values)
{
    char           **field;
    const option_t  *o;

    for (o = spec->table; o->name != NULL; o++) {
        if (o->kind == OPTION_STRING || o->kind == OPTION_NAME
            || o->kind == OPTION_ADDRESS)
        {
            field = (char **) ((char *) values + o->offset);
            free(*field);
            *field = NULL;
        }
    }
}
