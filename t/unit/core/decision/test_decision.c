
/*
 * Lines of the decision log: what stands in them, what is left out, and memory
 * that is too small for them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/decision/write.h"


#define TEXT(t)  ((llmgw_line_text_t) { t, sizeof(t) - 1 })

static const llmgw_candidate_t  candidates[] = {
    { .replica = 7, .in_flight = 1, .queue_depth = 2, .batch_size = 3,
      .kv_utilization = 0.1 },
    { .replica = 4, .in_flight = 4, .kv_utilization = 1.0 / 3 },
    { .replica = 2, .cached = 5 }
};

static const double  ranks[] = { 0.25, 0.5, 0.5 };


static void
describe(const void *data, uint32_t position,
    llmgw_decision_replica_t *replica)
{
    static const llmgw_line_text_t  ids[] = {
        { "r7", 2 }, { "r4", 2 }, { "r2", 2 }
    };

    *replica = ((const llmgw_decision_replica_t *) data)[position];
    replica->id = ids[position];
}


static const llmgw_decision_replica_t  plain[] = {
    { .free_blocks = -1, .age_ms = -1 },
    { .free_blocks = -1, .age_ms = -1 },
    { .free_blocks = -1, .age_ms = -1 }
};

static const llmgw_ranker_t  least = { .policy = LLMGW_RANK_LEAST_LOADED };

static const llmgw_scoring_t  scoring = { .candidates = candidates, .n = 3,
                                          .nblocks = 9 };

static const llmgw_decision_route_t  choice = {
    .t_us = 5, .request = { "q", 1 }, .pool = { "llm", 3 },
    .ranker = &least, .scoring = &scoring, .ranks = ranks, .chosen = 1,
    .reason = "because", .describe = describe, .data = plain
};


static char *
line_of(const llmgw_decision_route_t *route)
{
    static char       memory[4096];
    llmgw_line_t  out;

    llmgw_line_init(&out, memory, sizeof(memory) - 1);
    llmgw_decision_route(&out, route);
    assert_true(out.len < sizeof(memory));
    memory[out.len] = '\0';

    return memory;
}


static void
a_choice_has_its_facts_in_order(void **state)
{
    assert_string_equal(line_of(&choice),
        "{\"kind\":\"route\",\"t_us\":5,\"request\":\"q\",\"pool\":\"llm\","
        "\"blocks\":9,\"of\":3,\"chosen\":1,\"reason\":\"because\","
        "\"candidates\":["
        "{\"id\":\"r7\",\"position\":0,\"in_flight\":1,\"queue\":2,"
        "\"batch\":3,\"kv\":0.10000000000000001,\"rank\":0.25},"
        "{\"id\":\"r4\",\"position\":1,\"in_flight\":4,\"queue\":0,"
        "\"batch\":0,\"kv\":0.33333333333333331,\"rank\":0.5},"
        "{\"id\":\"r2\",\"position\":2,\"in_flight\":0,\"queue\":0,"
        "\"batch\":0,\"kv\":0,\"rank\":0.5}]}\n");
}


static void
what_a_gateway_adds_stands_where_it_is_known(void **state)
{
    const char                *line;
    uint64_t                   random = 0xab, key = UINT64_MAX;
    llmgw_pick_sums_t          sums = { .load = 12, .weight = 3 };
    llmgw_decision_route_t     route = choice;
    llmgw_decision_replica_t   replicas[3] = {
        { .free_blocks = 8, .age_ms = 0, .unknown = LLMGW_DECISION_QUEUE
          | LLMGW_DECISION_KV, .lacks = LLMGW_LACKS_CAPACITY },
        { .free_blocks = -1, .age_ms = -1, .has_pick = 1, .is_open = 1,
          .retry_ms = 40,
          .state = LLMGW_PEER_SUSPECT, .weight = 2, .foreign = 3 },
        { .free_blocks = -1, .age_ms = -1 }
    };

    route.worker = 77;
    route.attempt = 2;
    route.random = &random;
    route.key = &key;
    route.sums = &sums;
    route.route = "retry";
    route.data = replicas;
    line = line_of(&route);

    assert_non_null(strstr(line, "\"pool\":\"llm\",\"worker\":77,"
                                 "\"attempt\":2,\"blocks\":9"));
    assert_non_null(strstr(line, "\"of\":3,\"random\":\"00000000000000ab\","
                                 "\"key\":\"ffffffffffffffff\","
                                 "\"sums\":{\"load\":12,\"weight\":3},"
                                 "\"route\":\"retry\",\"chosen\":1"));
    assert_non_null(strstr(line, "\"free_blocks\":8,\"rank\":0.25,"
                                 "\"age_ms\":0,\"unknown\":[\"queue\",\"kv\"]"
                                 ",\"failed\":\"full\"}"));
    assert_non_null(strstr(line, "\"rank\":0.5,\"foreign\":3,\"weight\":2,"
                                 "\"state\":\"suspect\",\"circuit\":\"open\","
                                 "\"retry_ms\":40}"));
}


static void
a_claim_that_got_no_replica_has_no_choice(void **state)
{
    const char              *line;
    llmgw_decision_route_t   route = choice;

    route.chosen = LLMGW_RANK_NONE;
    route.reason = NULL;
    route.outcome = "waits";
    route.ranks = NULL;
    line = line_of(&route);

    assert_non_null(strstr(line, "\"of\":3,\"outcome\":\"waits\","
                                 "\"candidates\":["));
    assert_null(strstr(line, "chosen"));
    assert_null(strstr(line, "\"rank\":1"));
}


static void
a_replica_that_was_no_candidate_has_its_name(void **state)
{
    const char                *line;
    llmgw_decision_route_t     route = choice;
    llmgw_decision_replica_t   replicas[3];

    memcpy(replicas, plain, sizeof(replicas));
    replicas[2].was_passed = 1;
    route.data = replicas;
    route.replica = TEXT("suspect");
    assert_null(strstr(line_of(&route), "suspect"));

    route.chosen = LLMGW_RANK_NONE;
    line = line_of(&route);
    assert_non_null(strstr(line, "\"of\":3,\"replica\":\"suspect\","));
    assert_non_null(strstr(line, "\"rank\":0.5,\"failed\":\"passed\"}]}"));
}


static void
weights_and_scores_go_by_scorer(void **state)
{
    char                    *line, error[80];
    double                   scores[6] = { 0 }, cold[3] = { 0 };
    llmgw_ranker_t           weighted = { .policy = LLMGW_RANK_WEIGHTED };
    llmgw_decision_route_t   route = choice;
    llmgw_decision_policy_t  policy = { .pool = TEXT("llm"),
                                        .name = "weighted", .worker = 4 };
    llmgw_line_t         out;

    assert_int_equal(llmgw_weighted_parse(&weighted.weighted, llmgw_scorers,
                         "queue-depth:2,active-requests:0.5", 33, error,
                         sizeof(error)), 0);
    llmgw_decision_prepare(&weighted, &scoring, scores, cold);
    route.ranker = &weighted;
    route.scores = scores;
    line = line_of(&route);

    /* queue depths 2, 0, 0; in flight 1, 4, 0 */
    assert_non_null(strstr(line, "\"kv\":0.10000000000000001,"
                                 "\"scores\":[0,0.75]"));
    assert_non_null(strstr(line, "\"scores\":[1,0]"));
    assert_non_null(strstr(line, "\"scores\":[1,1]"));

    policy.weighted = &weighted.weighted;
    policy.is_effective = 1;
    llmgw_line_init(&out, line, 4095);
    llmgw_decision_policy(&out, &policy);
    line[out.len] = '\0';
    assert_string_equal(line,
        "{\"kind\":\"policy\",\"pool\":\"llm\",\"policy\":\"weighted\","
        "\"scorers\":[{\"name\":\"queue-depth\",\"weight\":2},"
        "{\"name\":\"active-requests\",\"weight\":0.5}],"
        "\"queue_depth\":\"effective\",\"worker\":4}\n");
}


static void
text_and_figures_stay_json(void **state)
{
    char                        memory[512];
    llmgw_line_t            out;
    llmgw_decision_admission_t  admission = {
        .t_us = 1, .request = TEXT("a\"\\\n\x01<&>\xc3\xa9"),
        .slo_class = TEXT(""), .tenant = TEXT("t"), .tokens = 3,
        .reason = "no"
    };

    llmgw_line_init(&out, memory, sizeof(memory));
    llmgw_decision_admission(&out, &admission);
    memory[out.len] = '\0';
    assert_string_equal(memory,
        "{\"kind\":\"admission\",\"t_us\":1,"
        "\"request\":\"a\\\"\\\\\\n\\u0001\\u003c\\u0026\\u003e\xc3\xa9\","
        "\"slo_class\":\"\",\"tenant\":\"t\",\"tokens\":3,"
        "\"admitted\":false,\"reason\":\"no\"}\n");

    llmgw_line_init(&out, memory, sizeof(memory));
    llmgw_line_double(&out, NULL, INFINITY);
    llmgw_line_double(&out, NULL, -0.0);
    llmgw_line_double(&out, NULL, 5e-324);
    llmgw_line_double(&out, NULL, -3);
    llmgw_line_double(&out, NULL, 999999999999999.0);
    llmgw_line_double(&out, NULL, 1e17);
    memory[out.len] = '\0';
    assert_string_equal(memory, "null,-0,4.9406564584124654e-324,-3,"
                                "999999999999999,1e+17");
}


/*
 * At each size: nothing after the end is touched, and the needed size is
 * returned.
 */
static void
a_line_that_does_not_fit_says_how_much_it_takes(void **state)
{
    char              *line, *small;
    size_t             size, len;
    llmgw_line_t   out;

    line = strdup(line_of(&choice));
    len = strlen(line);

    for (size = 0; size <= len + 1; size++) {
        small = malloc(size + 1);
        memset(small, '~', size + 1);
        llmgw_line_init(&out, small, size);
        llmgw_decision_route(&out, &choice);

        assert_int_equal(out.len, len);
        assert_int_equal(small[size], '~');

        if (size >= len) {
            assert_memory_equal(small, line, len);
        }

        free(small);
    }

    free(line);
}


static void
the_best_are_shown_and_the_chosen_one_always(void **state)
{
    uint32_t                heap[3], shown[4];
    llmgw_decision_route_t  route = choice;

    assert_int_equal(llmgw_decision_top(&route, 2, heap, shown), 2);
    assert_int_equal(shown[0], 1);
    assert_int_equal(shown[1], 2);

    route.chosen = 0;           /* the better ones were not eligible */
    assert_int_equal(llmgw_decision_top(&route, 2, heap, shown), 3);
    assert_int_equal(shown[2], 0);

    route.chosen = 2;
    route.ranks = NULL;         /* chosen by a ring */
    assert_int_equal(llmgw_decision_top(&route, 2, heap, shown), 2);
    assert_int_equal(shown[0], 2);
    assert_int_equal(shown[1], 0);

    route.chosen = LLMGW_RANK_NONE;
    assert_int_equal(llmgw_decision_top(&route, 2, heap, shown), 2);
    assert_int_equal(shown[0], 0);

    route.ranks = ranks;
    assert_int_equal(llmgw_decision_top(&route, 2, heap, shown), 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_choice_has_its_facts_in_order),
        cmocka_unit_test(what_a_gateway_adds_stands_where_it_is_known),
        cmocka_unit_test(a_claim_that_got_no_replica_has_no_choice),
        cmocka_unit_test(a_replica_that_was_no_candidate_has_its_name),
        cmocka_unit_test(weights_and_scores_go_by_scorer),
        cmocka_unit_test(text_and_figures_stay_json),
        cmocka_unit_test(a_line_that_does_not_fit_says_how_much_it_takes),
        cmocka_unit_test(the_best_are_shown_and_the_chosen_one_always)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
