
/*
 * A header block while it arrives, in either role: its size, and the fields
 * that the role keeps.
 */

#include <string.h>

#include "proto/grpc/session_inner.h"


#define FIELD_OVERHEAD  32


static void
block_clear(llmgw_grpc_block_t *block)
{
    llmgw_grpc_buf_clear(&block->path);
    llmgw_grpc_buf_clear(&block->fields);
}


void
llmgw_grpc_block_init(llmgw_grpc_block_t *block)
{
    block_clear(block);

    block->bytes = 0;
    block->timeout_ms = 0;
    block->is_post = 0;
    block->is_grpc = 0;
    block->is_response = 0;
    block->is_interim = 0;
}


void
llmgw_grpc_block_done(llmgw_grpc_block_t *block)
{
    llmgw_grpc_buf_done(&block->path);
    llmgw_grpc_buf_done(&block->fields);
}


int
llmgw_grpc_is_grpc_type(const char *value, size_t len)
{
    static const char  type[] = "application/grpc";
    const size_t       type_len = sizeof(type) - 1;

    if (len < type_len || memcmp(value, type, type_len) != 0) {
        return 0;
    }

    return len == type_len || value[type_len] == '+' || value[type_len] == ';';
}


int
llmgw_grpc_block_add(llmgw_grpc_block_t *block, size_t name_len,
    size_t value_len)
{
    block->bytes += name_len + value_len + FIELD_OVERHEAD;

    return block->bytes <= LLMGW_GRPC_MAX_BLOCK_BYTES;
}
