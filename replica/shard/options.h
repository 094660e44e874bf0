
/*
 * Options of the command line for shards: the one that is served, and those
 * that are used.
 */

#ifndef SHARD_OPTIONS_H
#define SHARD_OPTIONS_H

#include <stdint.h>

#include "common/address.h"
#include "common/tls/tls.h"
#include "replica/shard/limits.h"


#define SHARDS_ERROR_BYTES      640

/* Defaults of a shard's options. */
#define SHARDS_IDLE_MS          600000
#define SHARDS_LOAD_TIMEOUT_MS  60000

/* Strings live as long as the process. */
typedef struct shards_options_s {
    const char  *slice;             /* --shard; NULL: this is no shard */
    int64_t      sessions;          /* 1 .. SHARD_SESSIONS_MAX */
    uint64_t     max_memory;        /* in bytes; 0: no limit */
    uint64_t     idle_ms;           /* idle time until it is unloaded; 0:
                                       never */
    uint64_t     load_timeout_ms;   /* how long an Open waits for it */

    const char  *head;              /* --orchestrate; NULL: it uses no shards */
    const char  *members;           /* the segment that lists them */
    const char  *fallback;          /* NULL: none */
    uint64_t     history_max;       /* in bytes, of all streams */
    uint64_t     start_timeout_ms;  /* limit until a shard has Started a step */

    const char  *audit;             /* share of rows, "1%"; NULL: none */
    uint32_t     audit_ppm;         /* the same, checked */

    const char  *zone;              /* NULL: none */
    const char  *dtype;             /* "fp32" or "fp16" */
    int          is_fp16;           /* the same, checked */
    const char  *key_file;          /* NULL: none */
    tls_files_t  tls;               /* all three, or none */

    const char  *id;                /* the replica's id, which is also its
                                       member's */
} shards_options_t;


/*
 * Checks what the table of options cannot; sets is_fp16 and audit_ppm.  0, or
 * -1 and a line with what would be accepted.
 */
int shards_options_check(shards_options_t *options,
    char error[SHARDS_ERROR_BYTES]);

/* Checks whether this shard may serve at the address that --listen resolved to.
   0, or -1 and such a line. */
int shards_options_check_address(const shards_options_t *options,
    const address_t *address, char error[SHARDS_ERROR_BYTES]);

#endif /* SHARD_OPTIONS_H */
