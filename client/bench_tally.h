
/*
 * Counts errors by kind: errors that a gateway answers with (gRPC status and
 * llmgw-reason), wrong tokens, and failed connections.
 */

#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stddef.h>
#include <stdint.h>


/*
 * A gateway has about a dozen kinds.  If a peer invents reasons, the last row,
 * "other", counts the rest, so that memory does not grow.
 */
#define BENCH_TALLY_KINDS       32
#define BENCH_TALLY_TEXT_BYTES  48

typedef enum {
    BENCH_TALLY_STATUS = 0,     /* the stream ended with this status */
    BENCH_TALLY_TOKENS,         /* a token that is wrong or missing */
    BENCH_TALLY_TRANSPORT       /* a reset or a lost connection */
} bench_tally_class_t;

typedef struct {
    bench_tally_class_t  class;
    char                 code[BENCH_TALLY_TEXT_BYTES];
    char                 reason[BENCH_TALLY_TEXT_BYTES];    /* may be "" */
    uint64_t             count;
} bench_tally_kind_t;

typedef struct {
    size_t              n;
    bench_tally_kind_t  kinds[BENCH_TALLY_KINDS];
} bench_tally_t;

/*
 * Counts an error.  Its texts are cut to a row's size; control characters
 * become '?'.
 */
void bench_tally_add(bench_tally_t *tally, bench_tally_class_t class,
    const char *code, const char *reason);

/* The name of a class: "status", "tokens" or "transport". */
const char *bench_tally_class_name(bench_tally_class_t class);

#endif /* BENCH_TALLY_H */
