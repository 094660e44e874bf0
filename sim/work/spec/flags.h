
/*
 * A workload given by flags, with BLIS's names: the flags of `run` and
 * `observe`.
 *
 * The flags give one of these: a specification's file; a number of users, of
 * which each always has one request in flight; a rate with lengths from a
 * normal distribution, given by flags or by one of BLIS's presets (chatbot,
 * contentgen, summarization, multidoc).
 */

#ifndef WORK_FLAGS_H
#define WORK_FLAGS_H

#include "common/options.h"
#include "sim/work/spec/spec.h"


/* A number that was not given. */
#define WORK_FLAG_UNSET  (-1)

typedef struct {
    const char  *workload_spec;
    const char  *workload;              /* "distribution" or a preset */
    double       rate;                  /* requests a second */
    int64_t      num_requests;
    int64_t      concurrency;
    int64_t      think_time_ms;
    int64_t      prefix_tokens;
    int64_t      prompt_tokens;
    int64_t      prompt_stdev;
    int64_t      prompt_min;
    int64_t      prompt_max;
    int64_t      output_tokens;
    int64_t      output_stdev;
    int64_t      output_min;
    int64_t      output_max;
    int64_t      timeout_s;             /* negative: no timeout */
    int64_t      default_requests;      /* used if num_requests is not given */
} work_flags_t;

/* Rows of an option table; at(field) is the offset of a field of the flags. */
#define WORK_FLAGS_OPTIONS(at)                                               \
    { .name = "workload-spec", .kind = OPTION_STRING,                        \
      .offset = at(workload_spec), .metavar = "FILE",                        \
      .help = "a workload's specification, version 2" },                     \
    { .name = "workload", .kind = OPTION_STRING, .offset = at(workload),     \
      .value = "distribution",                                               \
      .help = "distribution, chatbot, contentgen, summarization, multidoc" },\
    { .name = "rate", .kind = OPTION_DOUBLE, .offset = at(rate),             \
      .min = 1e-9, .max = 1e9, .help = "requests a second (1)" },            \
    { .name = "num-requests", .kind = OPTION_INT,                            \
      .offset = at(num_requests), .min = 0, .max = WORK_MAX_REQUESTS,        \
      .help = "number of requests; 0: until the horizon" },                  \
    { .name = "concurrency", .kind = OPTION_INT, .offset = at(concurrency),  \
      .value = "0", .min = 0, .max = WORK_MAX_POPULATION,                    \
      .help = "users with one request in flight each, instead of a rate" },  \
    { .name = "think-time-ms", .kind = OPTION_INT,                           \
      .offset = at(think_time_ms), .value = "0", .min = 0, .max = 1e9,       \
      .help = "pause of those users between answer and next request" },      \
    { .name = "prefix-tokens", .kind = OPTION_INT,                           \
      .offset = at(prefix_tokens), .value = "0", .min = 0, .max = 1e6,       \
      .help = "length of a prefix that all prompts share" },                 \
    { .name = "prompt-tokens", .kind = OPTION_INT,                           \
      .offset = at(prompt_tokens), .value = "512", .min = 1, .max = 1e9,     \
      .help = "mean length of a prompt" },                                   \
    { .name = "prompt-tokens-stdev", .kind = OPTION_INT,                     \
      .offset = at(prompt_stdev), .value = "256", .min = 0, .max = 1e9,      \
      .help = "deviation" },                                                 \
    { .name = "prompt-tokens-min", .kind = OPTION_INT,                       \
      .offset = at(prompt_min), .value = "2", .min = 1, .max = 1e9,          \
      .help = "at least" },                                                  \
    { .name = "prompt-tokens-max", .kind = OPTION_INT,                       \
      .offset = at(prompt_max), .value = "7000", .min = 1, .max = 1e9,       \
      .help = "at most" },                                                   \
    { .name = "output-tokens", .kind = OPTION_INT,                           \
      .offset = at(output_tokens), .value = "512", .min = 1, .max = 1e9,     \
      .help = "mean length of an answer" },                                  \
    { .name = "output-tokens-stdev", .kind = OPTION_INT,                     \
      .offset = at(output_stdev), .value = "256", .min = 0, .max = 1e9,      \
      .help = "deviation" },                                                 \
    { .name = "output-tokens-min", .kind = OPTION_INT,                       \
      .offset = at(output_min), .value = "2", .min = 1, .max = 1e9,          \
      .help = "at least" },                                                  \
    { .name = "output-tokens-max", .kind = OPTION_INT,                       \
      .offset = at(output_max), .value = "7000", .min = 1, .max = 1e9,       \
      .help = "at most" },                                                   \
    { .name = "timeout", .kind = OPTION_INT, .offset = at(timeout_s),        \
      .min = -1, .max = 1e9,                                                 \
      .help = "seconds for a request (300); -1: no limit" }

/* To be called before options_parse(): marks numbers as not given. */
void work_flags_init(work_flags_t *flags, int64_t default_requests);

/*
 * Makes the specification that the flags describe (zeroed by the caller; in the
 * arena); if has_seed, seed replaces its own.  *max_requests is to be passed to
 * work_generate().  0, or -1 and *error, which names the flag or the file and
 * its line.
 */
int work_flags_spec(const work_flags_t *flags, int has_seed, int64_t seed,
    work_spec_t *spec, int64_t *max_requests, work_arena_t *arena,
    work_error_t *error);

#endif /* WORK_FLAGS_H */
