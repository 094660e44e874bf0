
/*
 * llmgw-slice: cuts a model into files with a part of its layers each.
 *
 *   manifest/   the manifest, and which tensors go into which file: pure
 *   whole.c     the model, and whether it can be cut
 *   norms.c     how large activations are between its layers
 *   cut.c       writes a file
 *   tensors.c   GGUF files, by their tensors
 *   sliced.c    reads what was written; replicas have it, too
 */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <llama.h>

#include "common/log.h"
#include "common/options.h"
#include "slice/cut.h"
#include "slice/manifest/ranges.h"
#include "slice/norms.h"
#include "slice/whole.h"


#define MAIN_PROGRESS_S  2

typedef struct {
    const char  *out;
    const char  *layers;
    const char  *cuts;
    int64_t      shards;
    int          is_head;
    const char  *name;
    int          is_without_norms;
    int          is_check;
} main_options_t;

typedef struct {
    main_options_t  options;
    const char     *file;
    log_t           log;
    whole_t         whole;
    ranges_t        ranges;
    const char     *doing;          /* the current work, for progress */
    uint64_t        done;           /* bytes done of the current work */
    struct timespec said;
} main_t;


#define FIELD(name)  offsetof(main_options_t, name)

static const option_t  main_table[] = {

    { "out", OPTION_STRING, FIELD(out), NULL, "DIR",
      "directory to write to; created if it does not exist", 0, 0, 0 },

    { "shards", OPTION_INT, FIELD(shards), NULL, "N",
      "number of slices, as equal as possible", 1, RANGES_MAX, 0 },

    { "cuts", OPTION_STRING, FIELD(cuts), NULL, "N,N",
      "first layers of the slices after the first one", 0, 0, 0 },

    { "layers", OPTION_STRING, FIELD(layers), NULL, "N-N,N-N",
      "slices of these layers; they may overlap", 0, 0, 0 },

    { "head", OPTION_FLAG, FIELD(is_head), NULL, NULL,
      "the head file, which the orchestrator needs", 0, 0, 0 },

    { "name", OPTION_NAME, FIELD(name), NULL, NULL,
      "the model's name; default: as the file calls itself", 0, 0, 0 },

    { "no-norms", OPTION_FLAG, FIELD(is_without_norms), NULL, NULL,
      "do not measure norms: shards then check activations for NaN only", 0,
      0, 0 },

    { "check", OPTION_FLAG, FIELD(is_check), NULL, NULL,
      "write nothing: check that MODEL.gguf is a whole, valid slice or head",
      0, 0, 0 },

    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-slice",
    "--out DIR [options] MODEL.gguf\n       llmgw-slice --check FILE.gguf",
    "Cuts a model into slices, each with some of its layers, for\n"
    "\"llmgw-replica --shard\"; of a model in several files, name the first.",
    "It writes DIR/NAME.FIRST-LAST.gguf and DIR/NAME.head.gguf; layers are\n"
    "numbered from 0.\n",
    main_table
};

static atomic_int  main_is_stopping;


static void
main_on_signal(int signo)
{
    atomic_store(&main_is_stopping, 1);
}


/* Drops libllama's messages, which are of no use here. */
static void
main_on_log(enum ggml_log_level level, const char *text, void *data)
{
}


/* --- the command line */

/* Reads the options, which may come before or after the model. */
static options_rc_t
main_parse(main_t *m, int argc, char **argv)
{
    int           rest, is_first;
    options_rc_t  rc;

    is_first = argc > 1 && argv[1][0] != '-';
    rc = options_parse(&main_spec, &m->options, argc - is_first,
                       argv + is_first, !is_first, &rest);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    if (!is_first && rest != argc - 1) {
        fprintf(stderr, "llmgw-slice: one MODEL.gguf is needed, before the "
                "options or behind them\n");
        return OPTIONS_EUSAGE;
    }

    m->file = is_first ? argv[1] : argv[rest];

    return OPTIONS_DONE;
}


/* Checks that --check is given, or where and what is to be written. */
static options_rc_t
main_check_options(const main_options_t *o)
{
    int  n;

    n = (o->shards > 0) + (o->cuts != NULL) + (o->layers != NULL);

    if (o->is_check ? n > 0 || o->is_head || o->out != NULL
                    : o->out == NULL)
    {
        fprintf(stderr, "llmgw-slice: give --out DIR to write files, or "
                "--check without it\n");
        return OPTIONS_EUSAGE;
    }

    if (!o->is_check && (n > 1 || (n == 0 && !o->is_head))) {
        fprintf(stderr, "llmgw-slice: give one of --shards, --cuts and "
                "--layers, or --head alone\n");
        return OPTIONS_EUSAGE;
    }

    return OPTIONS_DONE;
}


static int
main_fail(const main_t *m, const char *error)
{
    log_write(&m->log, LOG_ERROR, "%s", error[0] != '\0' ? error
              : "interrupted; what is written is whole");

    return 1;
}


/* --- the work */

static void
main_begin(main_t *m, const char *doing)
{
    m->doing = doing;
    m->done = 0;
    clock_gettime(CLOCK_MONOTONIC, &m->said);
}


/* Prints progress from time to time, so that short work prints nothing. */
static void
main_on_progress(void *data, uint64_t bytes)
{
    main_t           *m = data;
    struct timespec   now;

    m->done += bytes;
    clock_gettime(CLOCK_MONOTONIC, &now);

    if (now.tv_sec - m->said.tv_sec < MAIN_PROGRESS_S) {
        return;
    }

    m->said = now;
    log_write(&m->log, LOG_INFO, "%s: %lu MB of a model of %lu MB", m->doing,
              m->done >> 20, m->whole.tensors.bytes >> 20);
}


static int
main_plan(main_t *m, char error[SLICED_ERROR_BYTES])
{
    const main_options_t  *o;

    o = &m->options;

    if (o->shards > 0) {
        return ranges_even(&m->ranges, m->whole.layers, (uint32_t) o->shards,
                           error);
    }

    if (o->cuts != NULL) {
        return ranges_cuts(&m->ranges, m->whole.layers, o->cuts, error);
    }

    return o->layers != NULL
           ? ranges_parse(&m->ranges, m->whole.layers, o->layers, error) : 0;
}


/* Warns if several slices do not have all layers; a single slice may be for one
   host. */
static void
main_warn_of_gaps(const main_t *m)
{
    char      gaps[RANGES_GAPS_BYTES];
    uint32_t  n;

    n = m->ranges.n > 1 ? ranges_gaps(&m->ranges, m->whole.layers, gaps) : 0;

    if (n > 0) {
        log_write(&m->log, LOG_WARN, "%s %s %s in no slice",
                  n == 1 ? "layer" : "layers", gaps, n == 1 ? "is" : "are");
    }
}


/* Checks that a file can be made in the folder, before a large model is read
   for minutes. */
static int
main_try_folder(const main_t *m, char error[SLICED_ERROR_BYTES])
{
    int   fd;
    char  path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/.llmgw-slice.XXXXXX", m->options.out);
    fd = mkstemp(path);

    if (fd < 0) {
        snprintf(error, SLICED_ERROR_BYTES, "cannot write to \"%.180s\": %s",
                 m->options.out, strerror(errno));
        return -1;
    }

    unlink(path);
    close(fd);

    return 0;
}


static int
main_make_folder(const main_t *m, char error[SLICED_ERROR_BYTES])
{
    struct stat  st;

    if ((mkdir(m->options.out, 0755) != 0 && errno != EEXIST)
        || stat(m->options.out, &st) != 0)
    {
        snprintf(error, SLICED_ERROR_BYTES, "cannot make \"%.180s\": %s",
                 m->options.out, strerror(errno));
        return -1;
    }

    if (!S_ISDIR(st.st_mode)) {
        snprintf(error, SLICED_ERROR_BYTES, "\"%.180s\" is no folder",
                 m->options.out);
        return -1;
    }

    return main_try_folder(m, error);
}


/* The name of the model's file, without the suffixes for GGUF and for a
   part. */
static int
main_stem_bytes(const main_t *m, const char **stem)
{
    const char  *slash, *end;

    slash = strrchr(m->file, '/');
    *stem = slash != NULL ? slash + 1 : m->file;
    end = m->whole.npaths > 1 ? strstr(*stem, "-00001-of-") : NULL;

    if (end == NULL) {
        end = strstr(*stem, ".gguf");
    }

    return end != NULL && end > *stem ? (int) (end - *stem)
                                      : (int) strlen(*stem);
}


/* Writes a file.  range: NULL for the head. */
static int
main_cut(main_t *m, const range_t *range, char error[SLICED_ERROR_BYTES])
{
    int              stem_bytes;
    char             path[PATH_MAX - 8], part[32];
    cut_t            cut = { .kind = SLICED_HEAD, .path = path };
    const char      *stem;
    tensors_watch_t  watch = { &main_is_stopping, main_on_progress, m };

    snprintf(part, sizeof(part), "head");

    if (range != NULL) {
        cut.kind = SLICED_SLICE;
        cut.first_layer = range->first;
        cut.last_layer = range->last;
        snprintf(part, sizeof(part), "%u-%u", range->first, range->last);
    }

    stem_bytes = main_stem_bytes(m, &stem);

    if (snprintf(path, sizeof(path), "%s/%.*s.%s.gguf", m->options.out,
                 stem_bytes, stem, part)
        >= (int) sizeof(path))
    {
        snprintf(error, SLICED_ERROR_BYTES, "the path of --out is too long");
        return -1;
    }

    main_begin(m, path);

    if (cut_write(&m->whole, &cut, &watch, error) != 0) {
        return -1;
    }

    printf("%s: %s%s, %lu kB\n", path, range != NULL ? "layers " : "",
           part, (cut.bytes + 1023) >> 10);
    fflush(stdout);

    return 0;
}


static int
main_write(main_t *m, char error[SLICED_ERROR_BYTES])
{
    size_t  i;

    if (m->options.is_head && main_cut(m, NULL, error) != 0) {
        return -1;
    }

    for (i = 0; i < m->ranges.n; i++) {
        if (main_cut(m, &m->ranges.ranges[i], error) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Compares all of a file with its manifest, and prints what it is. */
static int
main_check(main_t *m)
{
    char      error[SLICED_ERROR_BYTES], hex[MANIFEST_HEX_BYTES];
    char      part[48];
    sliced_t  sliced;

    if (sliced_check(&sliced, m->file, &main_is_stopping, error) != 0) {
        return main_fail(m, error);
    }

    snprintf(part, sizeof(part), "head");

    if (sliced.kind == SLICED_SLICE) {
        snprintf(part, sizeof(part), "layers %u-%u", sliced.first_layer,
                 sliced.last_layer);
    }

    manifest_hex(sliced.weights_id, hex);
    printf("%s: right, %s of %s, %u layers, weights id %s\n", m->file, part,
           sliced.model, sliced.layers, hex);
    sliced_done(&sliced);

    return 0;
}


static int
main_run(main_t *m)
{
    char             error[SLICED_ERROR_BYTES], hex[MANIFEST_HEX_BYTES];
    tensors_watch_t  watch = { &main_is_stopping, main_on_progress, m };

    if (whole_open(&m->whole, m->file, m->options.name, error) != 0
        || main_plan(m, error) != 0 || main_make_folder(m, error) != 0)
    {
        return main_fail(m, error);
    }

    main_warn_of_gaps(m);
    main_begin(m, "hashing");

    if (whole_hash(&m->whole, &watch, error) != 0
        || (!m->options.is_without_norms
            && norms_measure(&m->whole, &main_is_stopping, error) != 0)
        || main_write(m, error) != 0)
    {
        return main_fail(m, error);
    }

    manifest_hex(m->whole.weights_id, hex);
    printf("%s: %u layers, weights id %s\n", m->whole.name, m->whole.layers,
           hex);

    return 0;
}


int
main(int argc, char **argv)
{
    int               rc;
    main_t            m;
    options_rc_t      parsed;
    struct sigaction  action = { .sa_handler = main_on_signal };

    memset(&m, 0, sizeof(m));
    m.log.program = "llmgw-slice";
    m.log.level = LOG_INFO;
    parsed = main_parse(&m, argc, argv);

    if (parsed == OPTIONS_DONE) {
        parsed = main_check_options(&m.options);
    }

    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        llama_log_set(main_on_log, NULL);
        rc = m.options.is_check ? main_check(&m) : main_run(&m);
        whole_done(&m.whole);
    }

    options_done(&main_spec, &m.options);

    return rc;
}
