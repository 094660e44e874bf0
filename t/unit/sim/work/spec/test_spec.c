
/* Specifications: which are refused and where, and what the others give. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/work/session.h"
#include "sim/work/spec/flags.h"

#define LENGTHS                                                              \
    ", input_distribution: {type: constant, params: {value: 100}}"           \
    ", output_distribution: {type: constant, params: {value: 10}}"
#define ARRIVAL  ", arrival: {process: poisson}"
#define CLIENT(more)  "  - {id: a, rate_fraction: 1" ARRIVAL LENGTHS more "}\n"


static int
generate(work_t *work, const char *text, int64_t max, int64_t horizon_us,
    work_error_t *error)
{
    int            rc;
    work_spec_t    spec;
    work_arena_t   arena;

    memset(&spec, 0, sizeof(spec));
    memset(&arena, 0, sizeof(arena));
    work_init(work);
    error->text[0] = '\0';
    rc = work_spec_parse(&spec, "s.yaml", text, strlen(text), &arena, error);

    if (rc == 0) {
        rc = work_generate(work, &spec, max, horizon_us, error);
    }

    work_arena_done(&arena);

    return rc;
}


static void
must_generate(work_t *work, const char *text, int64_t max, int64_t horizon_us)
{
    work_error_t  error;

    if (generate(work, text, max, horizon_us, &error) != 0) {
        fail_msg("%s", error.text);
    }
}


static void
bad_specifications_are_refused_with_their_line(void **state)
{
    size_t        i;
    work_t        work;
    work_error_t  error;

    static const struct {
        const char  *text;
        const char  *error;
    } cases[] = {
        { "clients: []\n", "s.yaml:1: \"clients\" or \"cohorts\" are "
          "missing" },
        { "aggregate_rate: -5\n", "s.yaml:1: \"aggregate_rate\" is -5, not 0 "
          "to 1000000000" },
        { "aggregate_rate: .nan\n", "s.yaml:1: \"aggregate_rate\" is .nan, "
          "which is no finite number" },
        { "num_requests: 1000000000\n", "s.yaml:1: \"num_requests\" is "
          "1000000000, not 0 to 10000000" },
        { "seed: 1\nclinets: []\n", "s.yaml:2: unknown key \"clinets\"" },
        { "servegen_data: {path: x}\n",
          "s.yaml:1: \"servegen_data\" is not supported" },
        { "aggregate_rate: 1\nclients:\n  - {id: a, rate_fraction: 1"
          LENGTHS "}\n", "s.yaml:3: \"arrival\" is missing" },
        { "aggregate_rate: 1\nclients:\n  - {id: a" ARRIVAL LENGTHS "}\n",
          "s.yaml:3: \"rate_fraction\" is missing" },
        { "aggregate_rate: 1\nclients:\n" CLIENT(", slo_class: gold"),
          "s.yaml:3: \"slo_class\" is \"gold\", not critical, standard, "
          "sheddable, batch or background" },
        { "aggregate_rate: 1\nclients:\n" CLIENT(", slo_class: batch")
          CLIENT(""), "s.yaml:4: either all clients and cohorts have a "
          "\"slo_class\" or none" },
        { "aggregate_rate: 1\nclients:\n" CLIENT(", timeout: -1"),
          "s.yaml:3: \"timeout\" is -1, not 0 to 9007199254740992" },
        { "clients:\n" CLIENT(""), "s.yaml:2: without an \"aggregate_rate\" "
          "each client needs windows with a \"trace_rate\"" },
        { "aggregate_rate: 1\nclients:\n" CLIENT(", lifecycle: {windows: [{"
          "start_us: 5, end_us: 5}]}"),
          "s.yaml:3: \"end_us\" is not after \"start_us\"" },
        { "aggregate_rate: 1\nclients:\n  - {id: a, concurrency: 2, "
          "rate_fraction: 1" LENGTHS "}\n", "s.yaml:3: \"concurrency\" and "
          "\"rate_fraction\" exclude each other" },
        { "aggregate_rate: 1\nclients:\n  - {id: a, rate_fraction: 1" ARRIVAL
          ", input_distribution: {type: gaussian, params: {mean: 1}}}\n",
          "s.yaml:3: \"gaussian\" needs the parameter \"std_dev\"" },
        { "aggregate_rate: 1\nclients:\n  - {id: a, rate_fraction: 1" ARRIVAL
          ", input_distribution: {type: constant, params: {vale: 1}}}\n",
          "s.yaml:3: unknown parameter \"vale\" of \"constant\"" },
        { "aggregate_rate: 1\nclients:\n  - {id: a, rate_fraction: 1, "
          "arrival: {process: uniform}" LENGTHS "}\n", "s.yaml:3: "
          "\"process\" is \"uniform\", not poisson, gamma, weibull or "
          "constant" },
        { "aggregate_rate: 1\nclients:\n" CLIENT(""), "s.yaml:1: neither a "
          "number of requests nor a horizon ends this workload" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(generate(&work, cases[i].text, 0, 0, &error), -1);
        assert_string_equal(error.text, cases[i].error);
        work_done(&work);
    }
}


static void
a_horizon_that_asks_for_too_many_is_refused(void **state)
{
    work_t        work;
    work_error_t  error;

    assert_int_equal(generate(&work, "aggregate_rate: 1e6\nclients:\n"
                              CLIENT(""), 0, 1000000000, &error), -1);
    assert_string_equal(error.text, "s.yaml:1: 1000000000 requests are more "
                        "than 10000000");
    work_done(&work);
}


static void
a_seed_gives_one_workload(void **state)
{
    size_t  i, differ;
    work_t  a, b, c;

    static const char  text[] =
        "aggregate_rate: 100\nclients:\n"
        "  - {id: a, rate_fraction: 3, arrival: {process: gamma, cv: 3}, "
        "input_distribution: {type: exponential, params: {mean: 50}}, "
        "output_distribution: {type: lognormal, params: {mu: 3, sigma: 1}}}\n"
        "  - {id: b, rate_fraction: 1, arrival: {process: weibull, cv: 2}, "
        "input_distribution: {type: pareto_lognormal, params: {alpha: 2, "
        "xm: 10, mu: 4, sigma: 1, mix_weight: 0.3}}, output_distribution: "
        "{type: empirical, params: {\"10\": 1, \"7\": 3}}}\n";
    char  other[sizeof(text) + 16];

    snprintf(other, sizeof(other), "seed: 9\n%s", text);
    must_generate(&a, text, 2000, 0);
    must_generate(&b, text, 2000, 0);
    must_generate(&c, other, 2000, 0);
    assert_int_equal(a.n, 2000);
    differ = 0;

    for (i = 0; i < a.n; i++) {
        assert_int_equal(work_at(&a, i)->arrival_us,
                         work_at(&b, i)->arrival_us);
        assert_int_equal(work_at(&a, i)->input_tokens,
                         work_at(&b, i)->input_tokens);
        assert_string_equal(work_at(&a, i)->client->text,
                            work_at(&b, i)->client->text);
        assert_true(i == 0 || work_at(&a, i)->arrival_us
                              >= work_at(&a, i - 1)->arrival_us);
        differ += work_at(&a, i)->arrival_us != work_at(&c, i)->arrival_us;
    }

    assert_true(differ > 1000);
    assert_string_equal(work_at(&a, 77)->id, "request_77");
    work_done(&a);
    work_done(&b);
    work_done(&c);
}


/* 40,000 requests: means are good to 2 % by far. */
static void
rates_and_fractions_are_kept(void **state)
{
    size_t  i, n[2];
    work_t  work;
    double  input;

    must_generate(&work,
        "aggregate_rate: 400\nclients:\n"
        "  - {id: a, rate_fraction: 3, arrival: {process: poisson}, "
        "input_distribution: {type: exponential, params: {mean: 500}}, "
        "output_distribution: {type: constant, params: {value: 4}}}\n"
        "  - {id: b, rate_fraction: 1, arrival: {process: constant}, "
        "input_distribution: {type: gaussian, params: {mean: 300, "
        "std_dev: 50, min: 1, max: 600}}, "
        "output_distribution: {type: constant, params: {value: 4}}}\n",
        0, 100000000);
    n[0] = n[1] = 0;
    input = 0;

    for (i = 0; i < work.n; i++) {
        if (work_at(&work, i)->client->text[0] == 'a') {
            n[0]++;
            input += work_at(&work, i)->input_tokens;

        } else {
            n[1]++;
        }
    }

    assert_true(fabs((double) n[0] / 30000 - 1) < 0.02);
    assert_int_equal(n[1], 9999);
    assert_true(fabs(input / (double) n[0] / 500 - 1) < 0.02);
    work_done(&work);
}


static void
clients_are_active_in_their_windows_only(void **state)
{
    size_t   i, in_second;
    work_t   work;
    int64_t  at;

    must_generate(&work, "aggregate_rate: 100\nclients:\n"
                  CLIENT(", lifecycle: {windows: [{start_us: 1000000, end_us: "
                         "2000000}, {start_us: 5000000, end_us: 7000000}]}"),
                  0, 100000000);
    in_second = 0;

    for (i = 0; i < work.n; i++) {
        at = work_at(&work, i)->arrival_us;
        assert_true((at >= 1000000 && at < 2000000)
                    || (at >= 5000000 && at < 7000000));
        in_second += at >= 5000000;
    }

    assert_true(work.n > 240 && work.n < 360);
    assert_true(in_second > 140 && in_second < 260);
    work_done(&work);
}


static void
a_window_has_as_many_as_its_rate_says(void **state)
{
    size_t  i;
    work_t  work;

    must_generate(&work, "clients:\n"
                  CLIENT(", prefix_group: g, prefix_length: 32, lifecycle: "
                         "{windows: [{start_us: 0, end_us: 2000000, "
                         "trace_rate: 50, output_distribution: {type: "
                         "constant, params: {value: 3}}}]}"), 0, 100000000);

    /* The last of a hundred would come at the window's end. */
    assert_int_equal(work.n, 99);

    for (i = 0; i < work.n; i++) {
        assert_int_equal(work_at(&work, i)->output_tokens, 3);
        assert_int_equal(work_at(&work, i)->input_tokens, 132);
    }

    work_done(&work);
}


static void
cohorts_have_members(void **state)
{
    size_t  i, seen[3];
    work_t  work;

    must_generate(&work, "aggregate_rate: 300\ncohorts:\n"
                  "  - {id: c, population: 3, prefix_sharing: per_member, "
                  "prefix_group: g, rate_fraction: 1" ARRIVAL LENGTHS
                  ", spike: {start_time_us: 1000, duration_us: 1000000}}\n",
                  0, 100000000);
    memset(seen, 0, sizeof(seen));

    for (i = 0; i < work.n; i++) {
        assert_int_equal(work_at(&work, i)->input_tokens, 150);
        assert_int_equal(work_at(&work, i)->client->text[2],
                         work_at(&work, i)->prefix_group->text[2]);
        seen[work_at(&work, i)->client->text[2] - '0']++;
    }

    assert_true(seen[0] > 60 && seen[1] > 60 && seen[2] > 60);
    assert_true(work.n > 240 && work.n < 360);
    work_done(&work);
}


static void
rounds_follow_when_the_last_has_ended(void **state)
{
    work_t                 work;
    work_request_t        *r, *next;

    must_generate(&work, "aggregate_rate: 1\nclients:\n"
                  CLIENT(", reasoning: {multi_turn: {max_rounds: 3, "
                         "think_time_us: 500, context_growth: accumulate, "
                         "single_session: true}}"), 100, 100000000);
    assert_int_equal(work.n, 1);
    assert_true(work.accumulates);
    r = work_at(&work, 0);
    assert_int_equal(r->deadline_us, r->arrival_us + 300000000);

    next = work_followup(&work, r, WORK_END_COMPLETED, 9, 40000000);
    assert_non_null(next);
    assert_int_equal(next->arrival_us, 40000500);
    assert_int_equal(next->input_tokens, 100 + 9 + 100);
    assert_int_equal(next->round, 1);
    assert_true(work_block_hash(r, 16, 3) == work_block_hash(next, 16, 3));

    assert_null(work_followup(&work, r, WORK_END_COMPLETED, 9, 99999999));
    work_done(&work);
}


static void
rounds_in_open_loop_are_there_at_once(void **state)
{
    work_t  work;

    must_generate(&work, "aggregate_rate: 1\nclients:\n"
                  CLIENT(", closed_loop: false, reasoning: {multi_turn: "
                         "{max_rounds: 3, think_time_us: 500, context_growth: "
                         "accumulate, single_session: true}}"), 100,
                  100000000);
    assert_int_equal(work.n, 3);
    assert_null(work.sessions);
    assert_int_equal(work_at(&work, 2)->input_tokens, 320);
    assert_int_equal(work_at(&work, 2)->arrival_us,
                     work_at(&work, 0)->arrival_us + 2 * 510);
    work_done(&work);
}


static void
kept_users_stop_at_the_number_of_requests(void **state)
{
    size_t  i;
    work_t  work;

    must_generate(&work, "clients:\n  - {id: u, concurrency: 4, "
                  "think_time_us: 400" LENGTHS "}\n", 10, 0);
    assert_int_equal(work.n, 4);
    assert_int_equal(work_at(&work, 3)->arrival_us, 300);

    for (i = 0; i < 4; i++) {
        assert_non_null(work_followup(&work, work_at(&work, i),
                                      WORK_END_COMPLETED, 10, 1000));
    }

    assert_null(work_followup(&work, work_at(&work, 4), WORK_END_TIMED_OUT, 0,
                              2000));
    assert_non_null(work_followup(&work, work_at(&work, 5),
                                  WORK_END_COMPLETED, 10, 3000));
    assert_non_null(work_followup(&work, work_at(&work, 6),
                                  WORK_END_COMPLETED, 10, 3000));
    assert_int_equal(work.n, 10);
    assert_null(work_followup(&work, work_at(&work, 7), WORK_END_COMPLETED, 10,
                              3000));
    work_done(&work);
}


static void
flags_make_blis_default_workload(void **state)
{
    work_t         work;
    int64_t        max;
    work_spec_t    spec;
    work_flags_t   flags;
    work_arena_t   arena;
    work_error_t   error;

    memset(&spec, 0, sizeof(spec));
    memset(&arena, 0, sizeof(arena));
    work_flags_init(&flags, 100);
    flags.workload = "summarization";
    assert_int_equal(work_flags_spec(&flags, 1, 3, &spec, &max, &arena,
                                     &error), 0);
    assert_int_equal(max, 100);
    work_init(&work);
    assert_int_equal(work_generate(&work, &spec, max, 0, &error), 0);
    assert_int_equal(work.n, 100);
    assert_int_equal(work_at(&work, 99)->arrival_us, 100000000);
    assert_int_equal(work_at(&work, 0)->deadline_us, 301000000);
    assert_true(work_at(&work, 0)->input_tokens > 1000);
    work_done(&work);

    flags.workload = "chat";
    assert_int_equal(work_flags_spec(&flags, 1, 3, &spec, &max, &arena,
                                     &error), -1);
    assert_string_equal(error.text, "--workload: \"chat\" is not "
                        "distribution, chatbot, contentgen, summarization or "
                        "multidoc");
    work_arena_done(&arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(bad_specifications_are_refused_with_their_line),
        cmocka_unit_test(a_horizon_that_asks_for_too_many_is_refused),
        cmocka_unit_test(a_seed_gives_one_workload),
        cmocka_unit_test(rates_and_fractions_are_kept),
        cmocka_unit_test(clients_are_active_in_their_windows_only),
        cmocka_unit_test(a_window_has_as_many_as_its_rate_says),
        cmocka_unit_test(cohorts_have_members),
        cmocka_unit_test(rounds_follow_when_the_last_has_ended),
        cmocka_unit_test(rounds_in_open_loop_are_there_at_once),
        cmocka_unit_test(kept_users_stop_at_the_number_of_requests),
        cmocka_unit_test(flags_make_blis_default_workload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
