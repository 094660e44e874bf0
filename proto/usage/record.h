
/*
 * The usage record: one line of JSON for each request that an account was
 * charged for.  nginx writes it (write.c), and reads its own log again when it
 * starts; `llmgwctl usage` adds up the logs of several gateways (read.c).
 *
 *     {"time":"2026-11-28T08:24:29.123Z","gateway":"gw1",
 *      "birth":"019a...","n":42,"request_id":"...","key":"alice",
 *      "tenant":"lab1","class":"interactive","model":"qwen3",
 *      "served_model":"qwen3-8b","replicas":["r1","r2"],
 *      "prompt_tokens":120,"completion_tokens":31,"cached_tokens":96,
 *      "reasoning_tokens":0,"wasted_tokens":7,"outcome":"ok",
 *      "seconds":1.250,"settled_by":"engine"}
 *
 * in one line, with these members in this order.  A record is known by
 * (gateway, birth, n) and by nothing else: it may be in a log twice, and a
 * request's id is the client's to choose.
 *
 *   birth   of the zone that counted it: 12 hexadecimal digits of the time in
 *           ms at which the zone was made, and 20 of chance.  A zone that is
 *           made later has a greater one.
 *   n       1, 2, 3 ... in the order in which requests were settled; in the log
 *           two workers may have changed places.
 *
 * Texts have a longest length and are cut there, at a character.  In the line,
 * what is not UTF-8 and control characters are '?'.  So no record is longer
 * than LLMGW_USAGE_LINE_BYTES, and it is always whole.
 */

#ifndef LLMGW_USAGE_RECORD_H
#define LLMGW_USAGE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"


/*
 * The longest line, with its newline.  Linux appends a write of this size to a
 * file without mixing it with another process's.
 */
#define LLMGW_USAGE_LINE_BYTES      4096

/* With the NUL. */
#define LLMGW_USAGE_GATEWAY_BYTES   65
#define LLMGW_USAGE_BIRTH_BYTES     33
#define LLMGW_USAGE_TENANT_BYTES    65
#define LLMGW_USAGE_CLASS_BYTES     65
#define LLMGW_USAGE_MODEL_BYTES     129
#define LLMGW_USAGE_REPLICAS_BYTES  257
#define LLMGW_USAGE_OUTCOME_BYTES   25
#define LLMGW_USAGE_REQUEST_BYTES   129

#define LLMGW_USAGE_CHANCE_BYTES    10

/* The greatest number in a record: 2^53, up to which every reader is exact. */
#define LLMGW_USAGE_NUMBER_MAX      9007199254740992ull

typedef enum {
    LLMGW_SETTLED_BY_ENGINE = 0,        /* the engine reported the numbers of
                                           tokens */
    LLMGW_SETTLED_BY_COUNT,             /* we counted the tokens that it sent */
    LLMGW_SETTLED_BY_WORKER_DIED        /* we counted until the worker died */
} llmgw_settled_by_t;

/* The zone that counted a record. */
typedef struct {
    char  gateway[LLMGW_USAGE_GATEWAY_BYTES];
    char  birth[LLMGW_USAGE_BIRTH_BYTES];
} llmgw_usage_source_t;

/* Texts end with a NUL and may be empty. */
typedef struct {
    uint64_t            n;
    uint64_t            ended_ms;       /* since 1970 */
    uint64_t            took_ms;
    uint64_t            prompt;         /* tokens, like the next four */
    uint64_t            completion;     /* tokens taken by the client's front */
    uint64_t            cached;         /* part of `prompt` */
    uint64_t            reasoning;      /* part of `completion` */
    uint64_t            wasted;         /* tokens received and thrown away */
    llmgw_settled_by_t  settled_by;
    char                key[LLMGW_KEY_NAME_BYTES];
    char                tenant[LLMGW_USAGE_TENANT_BYTES];
    char                slo_class[LLMGW_USAGE_CLASS_BYTES];
    char                model[LLMGW_USAGE_MODEL_BYTES];     /* that was asked
                                                               for */
    char                served[LLMGW_USAGE_MODEL_BYTES];    /* after the mapping
                                                               by "as" */
    char                replicas[LLMGW_USAGE_REPLICAS_BYTES];   /* separated by
                                                                   spaces */
    char                outcome[LLMGW_USAGE_OUTCOME_BYTES];
    char                request_id[LLMGW_USAGE_REQUEST_BYTES];
} llmgw_usage_t;


/*
 * The birth of a zone that is made now, with the given random bytes, greater
 * than `above`; above "": there is none yet.
 */
void llmgw_usage_birth(char birth[LLMGW_USAGE_BIRTH_BYTES], uint64_t unix_ms,
    const uint8_t chance[LLMGW_USAGE_CHANCE_BYTES], const char *above);

/* Sets a text field of `size` bytes.  Longer texts are cut. */
void llmgw_usage_text(char *field, size_t size, const void *text, size_t len);

/*
 * Whether an account may have that name, so that it is the same in records: 1
 * to 96 bytes of UTF-8 without control characters.  Names of the key file are
 * valid.
 */
int llmgw_usage_name_is_valid(const void *name, size_t len);

/*
 * Adds a replica that was asked, unless its id does not fit beside the others',
 * or it is the last one in the list already.
 */
void llmgw_usage_replica(llmgw_usage_t *usage, const char *id, size_t len);

/* "engine" ... */
const char *llmgw_settled_by_name(llmgw_settled_by_t settled_by);

/* Writes the line with its newline and returns its length. */
size_t llmgw_usage_write(char line[LLMGW_USAGE_LINE_BYTES],
    const llmgw_usage_source_t *source, const llmgw_usage_t *usage);

/*
 * Reads a line, without its newline.  0; -1: it is no record, *why (constant,
 * for people) has the reason, and nothing else was changed.  Members that are
 * not known are passed over, so that later versions may add some; one of the
 * above that is missing, given twice, too long, of another type or with control
 * characters is an error.
 */
int llmgw_usage_read(const char *line, size_t len,
    llmgw_usage_source_t *source, llmgw_usage_t *usage, const char **why);

#endif /* LLMGW_USAGE_RECORD_H */
