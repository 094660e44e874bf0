
/*
 * The table of reason.h.
 */

#include <string.h>

#include "replica/shard/reason.h"


#define REASON_ROW(name, text, words, status)                                 \
    { text, words, LLMGW_GRPC_##status },

static const struct {
    const char           *text;
    const char           *words;
    llmgw_grpc_status_t   status;
} reasons[SHARD_REASONS_COUNT] = {
    { "", "", LLMGW_GRPC_OK },
    SHARD_REASONS(REASON_ROW)
};


const char *
shard_reason_name(shard_reason_t reason)
{
    return reasons[reason].text;
}


const char *
shard_reason_words(shard_reason_t reason)
{
    return reasons[reason].words;
}


shard_reason_t
shard_reason_parse(const char *text, size_t len)
{
    size_t  i;

    for (i = 1; i < SHARD_REASONS_COUNT; i++) {
        if (strlen(reasons[i].text) == len
            && memcmp(reasons[i].text, text, len) == 0)
        {
            return (shard_reason_t) i;
        }
    }

    return SHARD_FAILED;
}


llmgw_grpc_status_t
shard_reason_status(shard_reason_t reason)
{
    return reasons[reason].status;
}
