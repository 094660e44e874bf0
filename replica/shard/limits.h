
/*
 * Limits of Shard.Forward (proto/shard.proto), which both ends enforce.
 *
 * Nothing that a peer sends is unbounded: each limit is here with its reason,
 * and both ends check it before they accept what it bounds.
 */

#ifndef SHARD_LIMITS_H
#define SHARD_LIMITS_H


#define SHARD_FORWARD  "/llmgateway.shard.Shard/Forward"

/*
 * Rows of one step.  With steps of up to 48 rows, results do not depend on how
 * a prompt is cut, whatever the format of the KV cache; 32 rows of 8192 fp32
 * numbers are one chunk.
 */
#define SHARD_ROWS_MAX        32

/* Bytes of a tensor in one message, so that no stream delays the others. */
#define SHARD_CHUNK_BYTES     (1024 * 1024)

/* Bytes of the other fields of a message: names, ids, numbers.  Before a
   stream's Open was accepted, none of its messages may be larger. */
#define SHARD_HEADER_BYTES    4096
#define SHARD_MESSAGE_BYTES   (SHARD_CHUNK_BYTES + SHARD_HEADER_BYTES)

/* Bytes of a whole tensor: logits of 32 rows over a vocabulary of 512 Ki. */
#define SHARD_TENSOR_BYTES    (64 * 1024 * 1024)

/* Steps of a session that have no whole Result yet. */
#define SHARD_STEPS_MAX       4

/* HTTP/2's window of a stream: 16 chunks may be in transit. */
#define SHARD_WINDOW_BYTES    (16 * SHARD_CHUNK_BYTES)

/* Sessions of a shard, unless --shard-sessions says less. */
#define SHARD_SESSIONS_MAX    64

/* A session ends when no Step has come or been outstanding for this time ... */
#define SHARD_IDLE_MS         60000

/* ... and at this age, whatever it does. */
#define SHARD_SESSION_MS      3600000

/* Limit of --shard-load-timeout, for which a session waits for its slice; the
   slice of a large model is hashed, too. */
#define SHARD_LOAD_MAX_MS     300000

/* Layers of a model: a bound for what a peer sends. */
#define SHARD_LAYERS_MAX      4096

/* Bytes of an id, as 32 bytes and as 64 hex digits. */
#define SHARD_WEIGHTS_BYTES   32

/* Shards in one request's pipeline, and pipelines that are built at a time. */
#define SHARD_HOPS_MAX        16
#define SHARD_BUILDS_MAX      4

/* The trailer of a Forward to a replica that is no shard. */
#define SHARD_DISABLED  "experimental_disabled"

#endif /* SHARD_LIMITS_H */
