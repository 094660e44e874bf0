
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "up/up.h"


#define UP_TICK_S         0.25
#define UP_TICKS_OF_LOGS  8         /* ticks between looks at log sizes */
#define UP_DEMO_ENGINES   3
#define UP_ASK_MS         2000


/* --- readiness */

static void
up_on_end(http_whole_t *answer, http_end_t end, const char *why)
{
    up_t  *up;

    up = answer->data;

    if (end == HTTP_COMPLETE && answer->status == 200
        && up->state == UP_STARTING)
    {
        up->state = UP_SERVING;
        fleet_say(&up->fleet);
        show_ready(up);
    }
}


/* Asks nginx whether it is ready, which is when it would serve a client. */
static void
up_ask_ready(up_t *up)
{
    if (up->state == UP_STARTING && up->ready.request == NULL
        && fleet_count_ready(&up->fleet) > 0)
    {
        (void) http_whole_ask(&up->ready, "/ready", UP_ASK_MS);
    }
}


/* --- events */

/* If nginx has never served, it would not serve after another start either. */
static void
up_check_nginx(up_t *up)
{
    if (up->state == UP_STARTING && program_is_broken(&up->nginx)) {
        fprintf(stderr, "llmgw up: nginx exited before it served: %s (%s)\n",
                up->nginx.why, program_log_name(&up->nginx));
        up->status = 1;
        end_begin(up);
    }
}


static void
up_on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    up_t  *up;

    up = w->data;

    if (up->state < UP_ENDING_NGINX) {
        up_check_nginx(up);
        show_broken(&up->nginx);
        show_broken(&up->agent);
        fleet_say(&up->fleet);
        up_ask_ready(up);
    }

    if (++up->ticks % UP_TICKS_OF_LOGS == 0) {
        program_trim_log(&up->nginx);
        program_trim_log(&up->agent);
        fleet_trim_logs(&up->fleet);
    }
}


static void
up_on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    end_begin(w->data);
}


static void
up_on_members(void *data, const json_t *members)
{
    up_t  *up;

    up = data;
    fleet_see(&up->fleet, members);
}


/* --- its parts */

/*
 * SIGQUIT is for containers: runtimes send it because nginx's image asks for
 * it.  SIGHUP ends the gateway when its terminal is closed, unless nohup(1) was
 * used.
 */
static void
up_watch_signals(up_t *up)
{
    size_t            i;
    struct sigaction  before;

    static const int  numbers[UP_NSIGNALS] = {
        SIGINT, SIGTERM, SIGQUIT, SIGHUP
    };

    for (i = 0; i < UP_NSIGNALS; i++) {

        if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0
            && before.sa_handler == SIG_IGN)
        {
            continue;
        }

        ev_signal_init(&up->signals[i], up_on_signal, numbers[i]);
        up->signals[i].data = up;
        ev_signal_start(up->loop, &up->signals[i]);
    }
}


static void
up_start_nginx(up_t *up, char conf[PATH_MAX])
{
    size_t      i;
    program_t  *c;

    c = &up->nginx;
    program_init(c, up->loop, end_on_nginx_gone, up);
    strcpy(c->name, "nginx");
    c->end_signal = SIGQUIT;
    files_log(c->log, &up->files, "nginx", ".log");
    files_path(conf, up->place.dir, "nginx", ".conf");

    char *const  argv[] = {
        up->tools.nginx, (char *) "-p", up->place.dir, (char *) "-e",
        c->log[0] != '\0' ? c->log : (char *) "stderr", (char *) "-c", conf
    };

    for (i = 0; i < sizeof(argv) / sizeof(argv[0]); i++) {
        c->argv[i] = argv[i];
    }

    program_start(c);
}


static void
up_start_agent(up_t *up, char conf[PATH_MAX])
{
    program_t  *c;

    c = &up->agent;
    program_init(c, up->loop, end_on_agent_gone, up);
    strcpy(c->name, "agent");
    c->end_signal = SIGTERM;
    files_log(c->log, &up->files, FILES_GATEWAY, "-agent.log");
    files_path(conf, up->place.dir, FILES_GATEWAY, ".conf");
    c->argv[0] = up->tools.agent;
    c->argv[1] = (char *) "-c";
    c->argv[2] = conf;
    program_start(c);
}


static int
up_add_engines(up_t *up, char error[UP_ERROR_BYTES])
{
    int       i;
    char      word[32];
    source_t  source;

    for (i = 0; i < (up->options->is_demo ? UP_DEMO_ENGINES
                                          : up->options->nwords); i++)
    {
        snprintf(word, sizeof(word), "sim:%d", i + 1);

        if (source_read(&source, up->options->is_demo ? word
                        : up->options->words[i], error) != 0
            || fleet_add(&up->fleet, &source, error) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static void
up_begin_fleet(up_t *up)
{
    fleet_t  *f;

    f = &up->fleet;
    f->loop = up->loop;
    f->files = &up->files;
    f->tools = &up->tools;
    f->key = up->engine_key[0] != '\0' ? up->engine_key : NULL;
    f->dns_period_s = (double) up->options->dns_period_ms / 1000;
    f->on_empty = end_on_fleet_empty;
    f->data = up;
}


/* Reports malformed URLs before anything is made. */
static int
up_check_words(const up_t *up)
{
    int       i;
    char      error[SOURCE_ERROR_BYTES];
    source_t  source;

    for (i = 0; i < up->options->nwords; i++) {
        if (source_read(&source, up->options->words[i], error) != 0) {
            fprintf(stderr, "llmgw up: %s\n", error);
            return -1;
        }
    }

    return 0;
}


static void
up_done(up_t *up)
{
    members_done(&up->members);
    program_done(&up->nginx);
    program_done(&up->agent);
    fleet_done(&up->fleet);
    service_done(&up->service);

    if (up->ready.client != NULL) {
        http_whole_done(&up->ready);
        http_destroy(up->ready.client);
    }
}


static void
up_run(up_t *up)
{
    char  error[UP_ERROR_BYTES], nginx_conf[PATH_MAX], agent_conf[PATH_MAX];
    char  control[PATH_MAX];

    up->loop = ev_default_loop(EVFLAG_AUTO);
    up->log = (log_t) { "llmgw", NULL, LOG_WARN };

    if (control_init(up, error) != 0) {
        fprintf(stderr, "llmgw up: %s\n", error);
        up->status = 1;
        return;
    }

    (void) setenv("RUNTIME_DIRECTORY", up->place.keep, 1);
    up_watch_signals(up);
    up_begin_fleet(up);
    show_start(up);
    explicit_bzero(up->new_key, sizeof(up->new_key));
    up_start_agent(up, agent_conf);
    up_start_nginx(up, nginx_conf);
    up->ready.client = http_create(up->loop, up->base, NULL, NULL);
    up->ready.on_end = up_on_end;
    up->ready.data = up;

    files_path(control, up->place.run, FILES_GATEWAY, ".sock");
    members_init(&up->members, up->loop, control, up_on_members, up);

    if (up->ready.client == NULL || up_add_engines(up, error) != 0) {
        fprintf(stderr, "llmgw up: %s\n", up->ready.client != NULL ? error
                                                           : "out of memory");
        up->status = 1;
        end_begin(up);
    }

    ev_timer_init(&up->tick, up_on_tick, UP_TICK_S, UP_TICK_S);
    up->tick.data = up;
    ev_timer_start(up->loop, &up->tick);

    ev_run(up->loop, 0);
    up_done(up);
}


int
up_main(int argc, char **argv)
{
    up_t       *up;
    int         status;
    cmdline_t   options;

    switch (cmdline_read_up(&options, argc, argv)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_EUSAGE:
        return 2;
    default:
        break;
    }

    up = calloc(1, sizeof(up_t));

    if (up == NULL) {
        fprintf(stderr, "llmgw up: out of memory\n");
        return 1;
    }

    /* Flush each line, also into a file or a pipe. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    umask(022);             /* nginx's workers may have another user */
    up->options = &options;
    up->place.lock = -1;

    if (up_check_words(up) != 0) {
        up->status = 2;

    } else if (options.print != NULL) {
        up->status = prepare_print(up) == 0 ? 0 : 1;

    } else if (prepare(up) != 0) {
        up->status = 1;

    } else {
        up_run(up);
    }

    status = up->status;
    place_done(&up->place);
    explicit_bzero(up->engine_key, sizeof(up->engine_key));
    free(up);
    cmdline_done_up(&options);

    return status;
}
