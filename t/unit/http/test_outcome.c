
/*
 * What clients get for each outcome, in both protocols: this is a contract.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "http/outcome.c"


static const struct {
    llmgw_outcome_t      outcome;
    const char          *reason;
    llmgw_grpc_status_t  grpc;
    int                  http;
    int                  pushback_ms;
} contract[] = {
    { LLMGW_OUTCOME_SERVED, NULL, LLMGW_GRPC_OK, 200, 0 },
    { LLMGW_OUTCOME_QUEUE_FULL, "queue_full",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 503, 1000 },
    { LLMGW_OUTCOME_QUEUE_TIMEOUT, "queue_timeout",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 503, 1000 },
    { LLMGW_OUTCOME_QUEUE_TTL, "queue_ttl",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_QUEUE_SHED, "queue_shed",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_NO_REPLICAS, "no_replicas",
      LLMGW_GRPC_UNAVAILABLE, 503, 0 },
    { LLMGW_OUTCOME_CIRCUITS_OPEN, "circuits_open",
      LLMGW_GRPC_UNAVAILABLE, 503, 0 },
    { LLMGW_OUTCOME_TRIES_EXHAUSTED, "tries_exhausted",
      LLMGW_GRPC_UNAVAILABLE, 502, 0 },
    { LLMGW_OUTCOME_NOT_RESUMABLE, "not_resumable",
      LLMGW_GRPC_UNAVAILABLE, 502, 0 },
    { LLMGW_OUTCOME_REJECT_ALL, "admission_reject_all",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_TOKEN_BUCKET, "admission_token_bucket",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_TENANT_BUDGET, "admission_tenant_budget",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_GONE, "client_gone", LLMGW_GRPC_CANCELLED, 499, 0 },
    { LLMGW_OUTCOME_INVALID_KEY, "invalid_api_key",
      LLMGW_GRPC_UNAUTHENTICATED, 401, 0 },
    { LLMGW_OUTCOME_KEY_FORBIDS, "key_forbids",
      LLMGW_GRPC_PERMISSION_DENIED, 403, 0 },
    { LLMGW_OUTCOME_RATE_LIMIT, "rate_limit_exceeded",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 1000 },
    { LLMGW_OUTCOME_QUOTA, "insufficient_quota",
      LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 0 },
    { LLMGW_OUTCOME_ACCOUNTS_FULL, "accounts_full",
      LLMGW_GRPC_UNAVAILABLE, 503, 1000 },
    { LLMGW_OUTCOME_DEADLINE, NULL, LLMGW_GRPC_DEADLINE_EXCEEDED, 504, 0 },
    { LLMGW_OUTCOME_BAD_REQUEST, NULL, LLMGW_GRPC_INVALID_ARGUMENT, 400, 0 },
    { LLMGW_OUTCOME_TOO_LARGE, NULL, LLMGW_GRPC_RESOURCE_EXHAUSTED, 413, 0 },
    { LLMGW_OUTCOME_UNKNOWN_METHOD, NULL, LLMGW_GRPC_UNIMPLEMENTED, 404, 0 },
    { LLMGW_OUTCOME_NOT_FOUND, NULL, LLMGW_GRPC_NOT_FOUND, 404, 0 },
    { LLMGW_OUTCOME_INTERNAL, NULL, LLMGW_GRPC_INTERNAL, 500, 0 },
};


static void
every_outcome_has_its_answer(void **state)
{
    size_t       i;
    llmgw_end_t  end;
    const char  *reason;

    memset(&end, 0, sizeof(end));

    for (i = 0; i < sizeof(contract) / sizeof(contract[0]); i++) {
        end.outcome = contract[i].outcome;
        reason = llmgw_outcome_reason(end.outcome);

        assert_int_equal(end.outcome, i);
        assert_int_equal(ngx_http_llmgw_outcome_grpc(&end), contract[i].grpc);
        assert_int_equal(ngx_http_llmgw_outcome_http(&end), contract[i].http);
        assert_int_equal(ngx_http_llmgw_outcome_pushback_ms(&end),
                         contract[i].pushback_ms);
        assert_true((reason == NULL) == (contract[i].reason == NULL));
        assert_true(reason == NULL || strcmp(reason, contract[i].reason) == 0);
        assert_true((reason != NULL) == (end.outcome != LLMGW_OUTCOME_SERVED
                                         && end.outcome < LLMGW_NREASONS));
        assert_true(end.outcome == LLMGW_OUTCOME_SERVED
                    || llmgw_outcome_text(end.outcome)[0] != '\0');
    }

    assert_int_equal(i, LLMGW_OUTCOME_REFUSED);
}


/* Each gRPC status of a replica is passed on, with the HTTP status for it. */
static void
refusal_of_a_replica_is_passed_on(void **state)
{
    int          status;
    llmgw_end_t  end;

    memset(&end, 0, sizeof(end));
    end.outcome = LLMGW_OUTCOME_REFUSED;

    for (status = 1; status <= LLMGW_GRPC_UNAUTHENTICATED; status++) {
        end.status = status;
        assert_int_equal(ngx_http_llmgw_outcome_grpc(&end), status);
        assert_in_range(ngx_http_llmgw_outcome_http(&end), 400, 599);
    }

    end.status = LLMGW_GRPC_NOT_FOUND;
    assert_int_equal(ngx_http_llmgw_outcome_http(&end), 404);
    end.status = LLMGW_GRPC_UNAUTHENTICATED;
    assert_int_equal(ngx_http_llmgw_outcome_http(&end), 401);
    end.status = 99;
    assert_int_equal(ngx_http_llmgw_outcome_http(&end), 502);

    end.status = LLMGW_GRPC_INVALID_ARGUMENT;
    end.http = 422;         /* the engine's own, as reported by the replica */
    assert_int_equal(ngx_http_llmgw_outcome_http(&end), 422);
    assert_int_equal(ngx_http_llmgw_outcome_grpc(&end),
                     LLMGW_GRPC_INVALID_ARGUMENT);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_outcome_has_its_answer),
        cmocka_unit_test(refusal_of_a_replica_is_passed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
