
#include <llama.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/kernels.h"
#include "replica/engine/llama/plugin/shard_name.h"
#include "slice/manifest/manifest.h"
#include "slice/tensors.h"

/* All that the name depends on. */
typedef struct {
    uint64_t  weights;
    uint64_t  cpu;
    uint64_t  kernels;
    uint64_t  is_fp16;
    char      variant[CORE_NAME_BYTES];
    char      library[CORE_NAME_BYTES];
} shard_name_parts_t;


static uint64_t
shard_name_text(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}


/* "q8_0 4096x14336": matrices have their own code for each type. */
static void
shard_name_type(const char *shape, uint8_t types[GGML_TYPE_COUNT])
{
    size_t    n;
    uint32_t  type;

    n = strcspn(shape, " ");

    for (type = 0; type < GGML_TYPE_COUNT && strchr(shape, 'x') != NULL;
         type++)
    {
        if (strlen(ggml_type_name(type)) == n
            && strncmp(ggml_type_name(type), shape, n) == 0)
        {
            types[type] = 1;
        }
    }
}


/* Reads the weights id, and the types of the whole model. */
static int
shard_name_weights(const tensors_t *t, uint64_t *hash,
    uint8_t types[GGML_TYPE_COUNT])
{
    size_t       i;
    manifest_t   manifest;
    const char  *id, *text;

    id = tensors_text(t, "llmgw.weights_id");
    text = tensors_text(t, "llmgw.manifest");

    if (id == NULL || text == NULL || manifest_parse(&manifest, text) != 0) {
        return -1;
    }

    *hash = shard_name_text(id);

    for (i = 0; i < manifest.n; i++) {
        shard_name_type(manifest.lines[i].shape, types);
    }

    manifest_done(&manifest);

    return 0;
}


static int
shard_name_collect(const tensors_t *t, shard_name_parts_t *parts)
{
    uint8_t  types[GGML_TYPE_COUNT];

    memset(types, 0, sizeof(types));

    return shard_name_weights(t, &parts->weights, types) == 0
           && kernels_hash(types, &parts->kernels) == 0 ? 0 : -1;
}


int
shard_name(const char *file, const backend_t *backend, int is_fp16,
    char name[CORE_NAME_BYTES], char error[CORE_ERROR_BYTES])
{
    int                  rc;
    char                *path;
    tensors_t            t;
    shard_name_parts_t   parts;

    path = (char *) file;

    if (tensors_open(&t, &path, 1, error) != 0) {
        return -1;
    }

    memset(&parts, 0, sizeof(parts));
    parts.cpu = backend->hash;
    parts.is_fp16 = (uint64_t) is_fp16;
    snprintf(parts.variant, CORE_NAME_BYTES, "%s", backend->variant);
    snprintf(parts.library, CORE_NAME_BYTES, "%s", llama_version());

    rc = shard_name_collect(&t, &parts);
    tensors_close(&t);

    if (rc != 0) {
        snprintf(error, CORE_ERROR_BYTES, "\"%.200s\" does not say what it "
                 "is computed with", file);
        return -1;
    }

    snprintf(name, CORE_NAME_BYTES, "llama-shard-%016lx",
             XXH3_64bits(&parts, sizeof(parts)));

    return 0;
}
