
/*
 * llmgw-weights: keeps the weights of a model in memory, once for all engines
 * of the host.
 *
 *   roles.c     which client may write or read: pure
 *   store.c     connections
 *   request.c   clients' requests
 *   bytes.c     long work: hashing, freeing
 *   memfile.c   descriptors and seals
 *   digest.c    the id
 *   show.c      STATE
 */

#include <string.h>

#include "common/duration.h"
#include "common/options.h"
#include "weights/store.h"


#define MAIN_DEVICES  4096

typedef struct {
    const char  *socket;
    int64_t      device;
    uint64_t     adopt_window_ms;
} main_options_t;


#define FIELD(name)  offsetof(main_options_t, name)

static const option_t  main_table[] = {

    { "socket", OPTION_STRING, FIELD(socket), NULL, "PATH",
      "where engines connect", 0, 0, 1 },

    { "device", OPTION_INT, FIELD(device), "0", NULL,
      "number of the part, of a split GGUF file; from 0", 0,
      MAIN_DEVICES - 1, 0 },

    { "adopt-window", OPTION_DURATION, FIELD(adopt_window_ms), "10s", NULL,
      "time after a start in which no engine may write",
      0, DURATION_MAX_MS, 0 },

    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-weights",
    "--socket PATH [options]",
    "Keeps the weights of a model in memory, once for all engines of the\n"
    "host, and grants the right to write or to read them.",
    NULL,
    main_table
};


static int
main_serve(const main_options_t *o)
{
    int       status;
    char      error[UNIX_LISTENER_ERROR_BYTES];
    log_t     log = { "llmgw-weights", NULL, LOG_INFO };
    store_t  *store;

    store = store_create(ev_default_loop(EVFLAG_AUTO), &log, o->socket,
                         o->device, o->adopt_window_ms, error);

    if (store == NULL) {
        log_write(&log, LOG_ERROR, "%s", error);
        return 1;
    }

    log_write(&log, LOG_INFO, "serving device %d at \"%s\"; for %.1f s nobody "
              "writes, so that engines can hand back what they have",
              (int) o->device, o->socket, o->adopt_window_ms / 1000.0);
    status = store_run(store);
    log_write(&log, LOG_INFO, "ending: engines keep the weights that they "
              "have");
    store_destroy(store);

    return status;
}


int
main(int argc, char **argv)
{
    int             rc, rest;
    options_rc_t    parsed;
    main_options_t  options;

    memset(&options, 0, sizeof(options));
    parsed = options_parse(&main_spec, &options, argc, argv, 0, &rest);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        rc = main_serve(&options);
    }

    options_done(&main_spec, &options);

    return rc;
}
