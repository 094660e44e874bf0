
/*
 * Why a shard refuses or ends a session: the reasons in Refused and in the
 * trailer `llmgw-reason`.
 */

#ifndef SHARD_REASON_H
#define SHARD_REASON_H

#include <stddef.h>

#include "proto/grpc/session.h"


/*
 * Name; what the shard did, in plain words for a client; and the status that
 * the stream ends with.  SHARD_LATE is used only in an orchestrator, which did
 * not wait longer for the result.
 */
#define SHARD_REASONS(X)                                                      \
    X(SHARD_FULL, "shard_full", "has as many sessions as it serves",          \
      RESOURCE_EXHAUSTED)                                                     \
    X(SHARD_LOADING, "loading", "is still loading", UNAVAILABLE)              \
    X(SHARD_UNKNOWN_SESSION, "unknown_session", "does not know the session",  \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_BAD_POSITION, "bad_position", "answered for another position",    \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_BAD_SHAPE, "bad_shape", "broke the protocol", INVALID_ARGUMENT)   \
    X(SHARD_TENSOR_TOO_LARGE, "tensor_too_large", "refused a large step",     \
      INVALID_ARGUMENT)                                                       \
    X(SHARD_TOO_MANY_STEPS, "too_many_steps", "refused one step more",        \
      RESOURCE_EXHAUSTED)                                                     \
    X(SHARD_WEIGHTS_MISMATCH, "weights_mismatch", "has other weights",        \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_NUMERICS_MISMATCH, "numerics_mismatch", "computes other bits",    \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_BAD_LAYERS, "bad_layers", "has other layers",                     \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_BAD_TOKEN, "bad_token", "refused the key", UNAUTHENTICATED)       \
    X(SHARD_CORRUPTION, "shard_corruption", "computed impossible values",     \
      DATA_LOSS)                                                              \
    X(SHARD_CONTEXT_FULL, "context_full", "has a smaller context",            \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_SESSION_EXPIRED, "session_expired", "ended an idle session",      \
      FAILED_PRECONDITION)                                                    \
    X(SHARD_DRAINING, "draining", "is draining", UNAVAILABLE)                 \
    X(SHARD_OUT_OF_MEMORY, "out_of_memory", "is out of memory",               \
      RESOURCE_EXHAUSTED)                                                     \
    X(SHARD_LATE, "late", "gave no result in time", UNAVAILABLE)              \
    X(SHARD_FAILED, "failed", "ended or cannot be reached", INTERNAL)

#define SHARD_REASON_ENUM(name, text, words, status)  name,

typedef enum {
    SHARD_OK = 0,
    SHARD_REASONS(SHARD_REASON_ENUM)
    SHARD_REASONS_COUNT
} shard_reason_t;

#undef SHARD_REASON_ENUM


/* "" for SHARD_OK. */
const char *shard_reason_name(shard_reason_t reason);

/* What follows "the shard ": "is out of memory"; "" for SHARD_OK. */
const char *shard_reason_words(shard_reason_t reason);

/* The reason of that name, which a peer sent; SHARD_FAILED for an unknown
   one. */
shard_reason_t shard_reason_parse(const char *text, size_t len);

llmgw_grpc_status_t shard_reason_status(shard_reason_t reason);

#endif /* SHARD_REASON_H */
