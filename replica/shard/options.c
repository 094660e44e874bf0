
/*
 * Which options of a sharded model go together.
 */

#include <stdio.h>
#include <string.h>

#include "replica/shard/door.h"
#include "replica/shard/options.h"


_Static_assert(SHARD_DOOR_ERROR_BYTES <= SHARDS_ERROR_BYTES, "one error's "
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


/* The first one that was given and needs what was not. */
static const char *
shards_options_orphan(const shards_options_t *o)
{
    return o->head != NULL ? NULL
           : o->members != NULL ? "--members"
           : o->fallback != NULL ? "--fallback-local"
           : o->zone != NULL ? "--zone"
           : o->key_file != NULL ? "--shard-key"
           : o->tls.cert != NULL ? "--shard-tls-cert"
           : o->tls.key != NULL ? "--shard-tls-key"
           : o->tls.ca != NULL ? "--shard-tls-ca"
           : o->is_fp16 ? "--activation-dtype" : NULL;
}


int
shards_options_check(shards_options_t *o, char error[SHARDS_ERROR_BYTES])
{
    const char  *orphan;

    if (shards_options_dtype(o, error) != 0) {
        return -1;
    }

    orphan = shards_options_orphan(o);

    if (orphan != NULL) {
        snprintf(error, SHARDS_ERROR_BYTES, "%s: needs --orchestrate HEAD",
                 orphan);
        return -1;
    }

    if (o->head != NULL && o->members == NULL) {
        snprintf(error, SHARDS_ERROR_BYTES, "--orchestrate: needs --members "
                 "PATH, the segment that an agent of this host writes");
        return -1;
    }

    if (shard_door_check(&o->tls, o->key_file, NULL, error) != 0) {
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
