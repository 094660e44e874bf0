
#include <stdio.h>
#include <string.h>

#include "proto/members/shards.h"


#define WEIGHTS_DIGITS  (2 * LLMGW_WEIGHTS_ID_BYTES)


void
llmgw_weights_id_write(const uint8_t *id, char *text)
{
    size_t  i;

    for (i = 0; i < LLMGW_WEIGHTS_ID_BYTES; i++) {
        sprintf(text + 2 * i, "%02x", id[i]);
    }
}


static int
hex_value(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}


int
llmgw_weights_id_read(uint8_t *id, const char *text, size_t len)
{
    size_t  i;

    if (len != WEIGHTS_DIGITS
        || strspn(text, "0123456789abcdef") < WEIGHTS_DIGITS)
    {
        return -1;
    }

    for (i = 0; i < LLMGW_WEIGHTS_ID_BYTES; i++) {
        id[i] = (uint8_t) (hex_value(text[2 * i]) * 16
                           + hex_value(text[2 * i + 1]));
    }

    return 0;
}


/* The next name of a list, or NULL; *at is moved after it. */
static const char *
name_next(const char *names, size_t bytes, size_t *at)
{
    const char  *name;

    if (*at >= bytes) {
        return NULL;
    }

    name = names + *at;
    *at += strlen(name) + 1;

    return name;
}


int
llmgw_shard_model_read(llmgw_shard_model_t *model, const char *names,
    size_t bytes)
{
    size_t               at;
    const char          *name, *weights, *numerics;
    llmgw_shard_model_t  read = { .name = "" };

    if (!llmgw_members_list_is_valid(names, bytes)) {
        return -1;
    }

    at = 0;
    name = name_next(names, bytes, &at);
    weights = name_next(names, bytes, &at);
    numerics = name_next(names, bytes, &at);

    if (numerics == NULL || at != bytes
        || strlen(name) >= LLMGW_SHARD_MODEL_BYTES
        || llmgw_weights_id_read(read.weights_id, weights, strlen(weights))
           != 0
        || !llmgw_name_is_valid(numerics, strlen(numerics)))
    {
        return -1;
    }

    strcpy(read.name, name);
    strcpy(read.numerics, numerics);
    *model = read;

    return 0;
}


size_t
llmgw_shard_model_write(const llmgw_shard_model_t *model, char *names)
{
    char  *at;

    at = stpcpy(names, model->name) + 1;
    llmgw_weights_id_write(model->weights_id, at);
    at = stpcpy(at + WEIGHTS_DIGITS + 1, model->numerics) + 1;

    return (size_t) (at - names);
}
