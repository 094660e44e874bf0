
/*
 * What the command line says of shards: of one that is served, and of those
 * that are used.
 */

#ifndef SHARD_OPTIONS_H
#define SHARD_OPTIONS_H

#include <stdint.h>

#include "common/address.h"
#include "common/tls/tls.h"
#include "replica/shard/limits.h"


#define SHARDS_ERROR_BYTES      640

/* What options of a shard are unless they are given. */
#define SHARDS_IDLE_MS          600000
#define SHARDS_LOAD_TIMEOUT_MS  60000

/* Strings live as long as the process. */
typedef struct shards_options_s {
    const char  *slice;             /* --shard; NULL: this is no shard */
    int64_t      sessions;          /* 1 .. SHARD_SESSIONS_MAX */
    uint64_t     max_memory;        /* in bytes; 0: no limit */
    uint64_t     idle_ms;           /* then it is unloaded; 0: never */
    uint64_t     load_timeout_ms;   /* an Open waits so long for it */

    const char  *head;              /* --orchestrate; NULL: it uses no shards */
    const char  *members;           /* the segment that says who they are */
    const char  *fallback;          /* NULL: none */
    uint64_t     history_max;       /* in bytes, of all streams */
    uint64_t     start_timeout_ms;  /* until a shard has Started a step */

    const char  *audit;             /* share of rows, "1%"; NULL: none */
    uint32_t     audit_ppm;         /* the same, checked */

    const char  *zone;              /* NULL: none */
    const char  *dtype;             /* "fp32" or "fp16" */
    int          is_fp16;           /* the same, checked */
    const char  *key_file;          /* NULL: none */
    tls_files_t  tls;               /* all three, or none */

    const char  *id;                /* the replica's, and its member's */
} shards_options_t;


/*
 * What a table of options cannot check; sets is_fp16 and audit_ppm.  0, or -1
 * and a line that says what would be right.
 */
int shards_options_check(shards_options_t *options,
    char error[SHARDS_ERROR_BYTES]);

/* Whether it may serve at this address, which --listen led to.  0, or -1 and
   such a line. */
int shards_options_check_address(const shards_options_t *options,
    const address_t *address, char error[SHARDS_ERROR_BYTES]);

#endif /* SHARD_OPTIONS_H */
