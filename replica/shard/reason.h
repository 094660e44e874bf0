
/*
 * Why a shard refuses or ends a session: what Refused and the trailer
 * `llmgw-reason` say.
 */

#ifndef SHARD_REASON_H
#define SHARD_REASON_H

#include <stddef.h>

#include "proto/grpc/session.h"


/* Name, text, and the status that the stream ends with.  SHARD_LATE is an
   orchestrator's own word: it did not wait for the result. */
#define SHARD_REASONS(X)                                                      \
    X(SHARD_FULL, "shard_full", RESOURCE_EXHAUSTED)                           \
    X(SHARD_LOADING, "loading", UNAVAILABLE)                                  \
    X(SHARD_UNKNOWN_SESSION, "unknown_session", FAILED_PRECONDITION)          \
    X(SHARD_BAD_POSITION, "bad_position", FAILED_PRECONDITION)                \
    X(SHARD_BAD_SHAPE, "bad_shape", INVALID_ARGUMENT)                         \
    X(SHARD_TENSOR_TOO_LARGE, "tensor_too_large", INVALID_ARGUMENT)           \
    X(SHARD_TOO_MANY_STEPS, "too_many_steps", RESOURCE_EXHAUSTED)             \
    X(SHARD_WEIGHTS_MISMATCH, "weights_mismatch", FAILED_PRECONDITION)        \
    X(SHARD_NUMERICS_MISMATCH, "numerics_mismatch", FAILED_PRECONDITION)      \
    X(SHARD_BAD_LAYERS, "bad_layers", FAILED_PRECONDITION)                    \
    X(SHARD_BAD_TOKEN, "bad_token", UNAUTHENTICATED)                          \
    X(SHARD_CORRUPTION, "shard_corruption", DATA_LOSS)                        \
    X(SHARD_CONTEXT_FULL, "context_full", FAILED_PRECONDITION)                \
    X(SHARD_SESSION_EXPIRED, "session_expired", FAILED_PRECONDITION)          \
    X(SHARD_DRAINING, "draining", UNAVAILABLE)                                \
    X(SHARD_OUT_OF_MEMORY, "out_of_memory", RESOURCE_EXHAUSTED)               \
    X(SHARD_LATE, "late", UNAVAILABLE)                                        \
    X(SHARD_FAILED, "failed", INTERNAL)

#define SHARD_REASON_ENUM(name, text, status)  name,

typedef enum {
    SHARD_OK = 0,
    SHARD_REASONS(SHARD_REASON_ENUM)
    SHARD_REASONS_COUNT
} shard_reason_t;

#undef SHARD_REASON_ENUM


/* "" for SHARD_OK. */
const char *shard_reason_name(shard_reason_t reason);

/* Of a peer's text; SHARD_FAILED where it is none of ours. */
shard_reason_t shard_reason_parse(const char *text, size_t len);

llmgw_grpc_status_t shard_reason_status(shard_reason_t reason);

#endif /* SHARD_REASON_H */
