
/*
 * Any server of OpenAI's API.
 *
 * Requests use nothing that OpenAI's API does not have, since the server may
 * answer 400 to an unknown key.  It reports no load; its list of models serves
 * as its health, and a proxy before it may answer 502 to 504 for it.  It shows
 * no ids.  A completion is resumed by text; a chat is so only if the operator
 * knows that this server continues a last message of the assistant's
 * (`llmgw_resume text`).
 */

#include "replica/engine/dialect/dialect_inner.h"
#include "replica/engine/dialect/facts.h"


static int
openai_learn_models(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    if (facts_health(facts, status, status >= 502 && status <= 504
                                    ? DIALECT_UNWILLING : DIALECT_DOWN) != 0)
    {
        return -1;
    }

    return status == 200 ? facts_models(facts, status, body, len) : 0;
}


static const dialect_probe_t  openai_probes[] = {
    { "/v1/models", DIALECT_OFTEN, 0, openai_learn_models },
    { NULL, DIALECT_OFTEN, 0, NULL }
};

static const dialect_ops_t  openai_ops = {
    .completion_tokens = 16
};

const dialect_t  dialect_openai = {
    "openai", openai_probes, 500, &openai_ops, 0
};
