
/*
 * Checks which options of a sharded model may be combined.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/options.h"
#include "replica/shard/shard_tls.h"


_Static_assert(SHARD_TLS_ERROR_BYTES <= SHARDS_ERROR_BYTES, "one error's "
               "room");


static int
shards_options_dtype(shards_options_t *o, char error[SHARDS_ERROR_BYTES])
{
    o->is_fp16 = strcmp(o->dtype, "fp16") == 0;

    if (o->is_fp16 || strcmp(o->dtype, "fp32") == 0) {
        return 0;
    }

    snprintf(error, SHARDS_ERROR_BYTES, "--activation-dtype: \"%.80s\" is not "
             "fp32 or fp16", o->dtype);

    return -1;
}


static int
shards_options_audit(shards_options_t *o, char error[SHARDS_ERROR_BYTES])
{
    char    *end;
    double   percent;

    if (o->audit == NULL) {
        return 0;
    }

    percent = strtod(o->audit, &end);

    if (end == o->audit || strcmp(end, "%") != 0
        || !(percent >= 0 && percent <= 100))
    {
        snprintf(error, SHARDS_ERROR_BYTES, "--audit: \"%.80s\" is not a "
                 "share from 0%% to 100%%, as 1%%", o->audit);
        return -1;
    }

    o->audit_ppm = (uint32_t) (percent * 10000 + 0.5);

    return 0;
}


static const char *
shards_options_of_slice(const shards_options_t *o)
{
    return o->sessions != SHARD_SESSIONS_MAX ? "--shard-sessions"
           : o->max_memory != 0 ? "--shard-max-memory"
           : o->idle_ms != SHARDS_IDLE_MS ? "--shard-idle"
           : o->load_timeout_ms != SHARDS_LOAD_TIMEOUT_MS
             ? "--shard-load-timeout" : NULL;
}


static const char *
shards_options_of_head(const shards_options_t *o)
{
    return o->members != NULL ? "--members"
           : o->fallback != NULL ? "--fallback-local"
           : o->audit != NULL ? "--audit" : NULL;
}


/* The first option that was given although it needs --shard or
   --orchestrate. */
static const char *
shards_options_orphan(const shards_options_t *o)
{
    return o->head != NULL || o->slice != NULL ? NULL
           : o->zone != NULL ? "--zone"
           : o->key_file != NULL ? "--shard-key"
           : o->tls.cert != NULL ? "--shard-tls-cert"
           : o->tls.key != NULL ? "--shard-tls-key"
           : o->tls.ca != NULL ? "--shard-tls-ca"
           : o->is_fp16 ? "--activation-dtype" : NULL;
}


static int
shards_options_needs(const char *option, const char *what,
    char error[SHARDS_ERROR_BYTES])
{
    if (option == NULL) {
        return 0;
    }

    snprintf(error, SHARDS_ERROR_BYTES, "%s: needs %s", option, what);

    return -1;
}


int
shards_options_check(shards_options_t *o, char error[SHARDS_ERROR_BYTES])
{
    if (shards_options_dtype(o, error) != 0
        || shards_options_audit(o, error) != 0
        || shards_options_needs(shards_options_orphan(o), "--shard FILE or "
                                "--orchestrate HEAD", error) != 0
        || (o->slice == NULL
            && shards_options_needs(shards_options_of_slice(o),
                                    "--shard FILE", error) != 0)
        || (o->head == NULL
            && shards_options_needs(shards_options_of_head(o),
                                    "--orchestrate HEAD", error) != 0))
    {
        return -1;
    }

    if (o->head != NULL && o->slice != NULL) {
        snprintf(error, SHARDS_ERROR_BYTES, "--shard: not with --orchestrate, "
                 "which is another process");
        return -1;
    }

    if (o->head != NULL && o->members == NULL) {
        snprintf(error, SHARDS_ERROR_BYTES, "--orchestrate: needs --members "
                 "PATH, the segment that an agent of this host writes");
        return -1;
    }

    if (shard_tls_check(&o->tls, error) != 0) {
        return -1;
    }

    if (o->fallback != NULL && o->is_fp16) {
        snprintf(error, SHARDS_ERROR_BYTES, "--fallback-local: not with "
                 "--activation-dtype fp16, whose bits a whole model does not "
                 "have");
        return -1;
    }

    return 0;
}


int
shards_options_check_address(const shards_options_t *o,
    const address_t *address, char error[SHARDS_ERROR_BYTES])
{
    return o->slice == NULL
           ? 0 : shard_tls_check_address(&o->tls, o->key_file, address,
                                         error);
}
