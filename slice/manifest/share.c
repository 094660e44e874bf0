
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice/manifest/share.h"


#define SHARE_LAYER  "blk."


static int
share_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}


/* Reads the number between "blk." and a dot, and returns the rest of the name;
   NULL: there is none. */
static const char *
share_number(const char *name, unsigned long *number)
{
    char  *end;

    if (!share_begins(name, SHARE_LAYER)
        || !isdigit((unsigned char) name[strlen(SHARE_LAYER)]))
    {
        return NULL;
    }

    *number = strtoul(name + strlen(SHARE_LAYER), &end, 10);

    return *end == '.' && *number < UINT32_MAX ? end : NULL;
}


int64_t
share_layer(const char *name)
{
    unsigned long  layer;

    return share_number(name, &layer) != NULL ? (int64_t) layer : -1;
}


int
share_has_output(const share_t *share)
{
    return !share->is_head && share->last_layer + 1 == share->layers;
}


int
share_has(const share_t *share, const char *name)
{
    int64_t  layer;

    layer = share_layer(name);

    if (layer >= 0) {
        return !share->is_head && layer >= share->first_layer
               && layer <= share->last_layer;
    }

    if (share_begins(name, "token_embd.")) {
        return share->is_head || (share->is_tied && share_has_output(share));
    }

    if (share_begins(name, "output.")) {
        return share_has_output(share);
    }

    return !share->is_head || strcmp(name, SHARE_SETTINGS) == 0;
}


void
share_name(const share_t *share, const char *name,
    char local[SHARE_NAME_BYTES])
{
    const char     *rest;
    unsigned long   layer;

    rest = share_number(name, &layer);

    if (rest != NULL) {
        snprintf(local, SHARE_NAME_BYTES, SHARE_LAYER "%lu%s",
                 layer - share->first_layer, rest);
        return;
    }

    snprintf(local, SHARE_NAME_BYTES, "%s",
             strcmp(name, SHARE_OUTPUT) == 0 ? SHARE_EMBED : name);
}
