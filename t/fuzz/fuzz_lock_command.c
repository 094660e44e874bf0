
/* Bytes as a line to the lock service: no crash, and the fields of an accepted
   command are valid. */

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lock/protocol.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char                 error[PROTOCOL_ERROR_BYTES] = "";
    const char          *reason;
    protocol_command_t   c;

    reason = protocol_decode(&c, (const char *) data, len, error);

    if (reason != NULL) {
        assert(error[0] != '\0');
        return 0;
    }

    switch (c.verb) {
    case PROTOCOL_ACQUIRE:
        assert(llmgw_group_is_valid(c.claim.group, strlen(c.claim.group)));
        assert(llmgw_name_is_valid(c.claim.engine, strlen(c.claim.engine)));
        assert(strlen(c.claim.nonce) == MACHINE_NONCE_BYTES - 1);
        assert(c.claim.epoch <= INT64_MAX && c.claim.last_epoch <= INT64_MAX);
        break;
    case PROTOCOL_PONG:
        assert(c.state >= LLMGW_GROUP_INIT && c.state <= LLMGW_GROUP_ACTIVE);
        break;
    case PROTOCOL_TAKE:
        assert(c.epoch != 0);
        break;
    default:
        break;
    }

    return 0;
}
