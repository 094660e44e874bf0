
/* Makes a specification of one client from flags and presets. */

#include "sim/work/spec/flags.h"

#include <string.h>


typedef struct {
    const char  *name;
    double       prompt[4];         /* mean, deviation, min, max */
    double       output[4];
} preset_t;

/* The presets of BLIS's defaults.yaml. */
static const preset_t  presets[] = {
    { "chatbot", { 256, 100, 2, 800 }, { 256, 100, 1, 1024 } },
    { "contentgen", { 1024, 150, 10, 2048 }, { 1024, 200, 10, 2048 } },
    { "summarization", { 4096, 500, 100, 8192 }, { 512, 150, 10, 2048 } },
    { "multidoc", { 10240, 1200, 500, 20480 }, { 1536, 300, 50, 4096 } },
};


void
work_flags_init(work_flags_t *flags, int64_t default_requests)
{
    memset(flags, 0, sizeof(*flags));
    flags->rate = WORK_FLAG_UNSET;
    flags->num_requests = WORK_FLAG_UNSET;
    flags->default_requests = default_requests;
}


static work_dist_t *
gaussian(work_arena_t *arena, const double params[4])
{
    size_t        i;
    work_dist_t  *dist;

    static const char  *names[] = { "mean", "std_dev", "min", "max" };

    dist = work_arena_alloc(arena, sizeof(*dist));
    dist->type = "gaussian";
    dist->params.n = 4;
    dist->params.items = work_arena_alloc(arena, 4 * sizeof(
                                          dist->params.items[0]));

    for (i = 0; i < 4; i++) {
        dist->params.items[i].name = names[i];
        dist->params.items[i].value = params[i];
    }

    return dist;
}


/* Adds the one client: with constant arrivals, or a number of users. */
static void
one_client(const work_flags_t *flags, const double prompt[4],
    const double output[4], work_spec_t *spec, work_arena_t *arena)
{
    work_client_t   *c;
    work_arrival_t  *a;

    a = work_arena_alloc(arena, sizeof(*a));
    a->process = "constant";
    c = work_arena_alloc(arena, sizeof(*c));
    c->id = "distribution";
    c->arrival = a;
    c->input = gaussian(arena, prompt);
    c->output = gaussian(arena, output);

    if (flags->concurrency > 0) {
        c->concurrency = flags->concurrency;
        c->think_time_us = flags->think_time_ms * 1000;

    } else {
        c->rate_fraction = 1;
        spec->aggregate_rate = flags->rate > 0 ? flags->rate : 1;
    }

    if (flags->prefix_tokens > 0) {
        c->prefix_group = "shared";
        c->prefix_length = flags->prefix_tokens;
    }

    spec->version = "2";
    spec->file = "flags";
    spec->clients.items = c;
    spec->clients.n = 1;
}


static int
check_lengths(const char *what, const double p[4], work_error_t *error)
{
    double  mean, stdev, min, max;

    mean = p[0];
    stdev = p[1];
    min = p[2];
    max = p[3];

    if (min > max) {
        return work_fail(error, "flags", 0,
                         "--%s-min is %g, above --%s-max, %g", what, min,
                         what, max);
    }

    if (mean < min || mean > max) {
        return work_fail(error, "flags", 0,
                         "--%s is %g, not --%s-min to --%s-max, %g to %g",
                         what, mean, what, what, min, max);
    }

    if (stdev > max || (stdev != 0 && stdev < min)) {
        return work_fail(error, "flags", 0, "--%s-stdev is %g, not --%s-min "
                         "to --%s-max, %g to %g", what, stdev, what, what,
                         min, max);
    }

    return 0;
}


static int
by_lengths(const work_flags_t *f, work_spec_t *spec, work_arena_t *arena,
    work_error_t *error)
{
    double  prompt[4], output[4];

    prompt[0] = (double) f->prompt_tokens;
    prompt[1] = (double) f->prompt_stdev;
    prompt[2] = (double) f->prompt_min;
    prompt[3] = (double) f->prompt_max;
    output[0] = (double) f->output_tokens;
    output[1] = (double) f->output_stdev;
    output[2] = (double) f->output_min;
    output[3] = (double) f->output_max;

    if (check_lengths("prompt-tokens", prompt, error) != 0
        || check_lengths("output-tokens", output, error) != 0)
    {
        return -1;
    }

    one_client(f, prompt, output, spec, arena);

    return 0;
}


static int
by_preset(const work_flags_t *flags, work_spec_t *spec, work_arena_t *arena,
    work_error_t *error)
{
    size_t  i;

    for (i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (strcmp(presets[i].name, flags->workload) == 0) {
            one_client(flags, presets[i].prompt, presets[i].output, spec,
                       arena);
            return 0;
        }
    }

    return work_fail(error, "--workload", 0, "\"%.60s\" is not distribution, "
                     "chatbot, contentgen, summarization or multidoc",
                     flags->workload);
}


static int
by_file(const work_flags_t *flags, work_spec_t *spec, work_arena_t *arena,
    work_error_t *error)
{
    if (flags->concurrency > 0) {
        return work_fail(error, "--concurrency", 0, "cannot be used with "
                         "--workload-spec: give it in the specification");
    }

    if (work_spec_read(spec, flags->workload_spec, arena, error) != 0) {
        return -1;
    }

    if (flags->timeout_s != 0) {
        work_spec_set_timeout(spec, flags->timeout_s > 0
                              ? flags->timeout_s * 1000000 : 0);
    }

    return 0;
}


int
work_flags_spec(const work_flags_t *flags, int has_seed, int64_t seed,
    work_spec_t *spec, int64_t *max_requests, work_arena_t *arena,
    work_error_t *error)
{
    int      rc;
    int64_t  unsaid;

    if (flags->concurrency > 0 && flags->rate > 0) {
        return work_fail(error, "--concurrency", 0, "goes not with --rate");
    }

    if (flags->workload_spec != NULL) {
        rc = by_file(flags, spec, arena, error);
        unsaid = spec->num_requests;

    } else {
        rc = flags->concurrency > 0 || flags->workload == NULL
             || strcmp(flags->workload, "distribution") == 0
             ? by_lengths(flags, spec, arena, error)
             : by_preset(flags, spec, arena, error);
        unsaid = flags->concurrency > 0 ? 0 : flags->default_requests;
    }

    if (rc != 0) {
        return -1;
    }

    if (flags->workload_spec == NULL) {
        work_spec_set_timeout(spec, flags->timeout_s < 0 ? 0
                              : (flags->timeout_s > 0 ? flags->timeout_s : 300)
                                * 1000000);
    }

    if (has_seed || flags->workload_spec == NULL) {
        spec->seed = seed;
    }

    *max_requests = flags->num_requests >= 0 ? flags->num_requests : unsaid;

    return 0;
}
