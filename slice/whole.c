
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/parts.h"
#include "slice/manifest/share.h"
#include "slice/whole.h"


#define WHOLE_KEY_BYTES  128

#define whole_fail(error, ...)                                                \
    (snprintf(error, SLICED_ERROR_BYTES, __VA_ARGS__), -1)

/*
 * By libllama 0.5's src/models/: in these architectures every layer is built by
 * the same code, the first one gets the input unchanged, and the output of a
 * layer is named "l_out".  This does not hold, for example, for gemma (the
 * input is scaled), phi3 and cohere2 (windows by the layer's number), deepseek2
 * (the first layers are dense), olmo2 with windows, and models with layers that
 * keep a state.
 */
static const char *const  whole_architectures[] = {
    "llama", "qwen2", "qwen3", "qwen3moe", NULL
};

/* Tensors that belong to no layer; slice/manifest/share.h says which files have
   them. */
static const char *const  whole_globals[] = {
    SHARE_EMBED, SHARE_OUTPUT, "output.bias", "output_norm.weight",
    "rope_freqs.weight", "rope_factors_long.weight",
    "rope_factors_short.weight", NULL
};


static int
whole_is_listed(const char *const *list, const char *name)
{
    while (*list != NULL && strcmp(*list, name) != 0) {
        list++;
    }

    return *list != NULL;
}


static int
whole_check_architecture(const whole_t *w, char error[SLICED_ERROR_BYTES])
{
    const char  *kind;

    kind = tensors_text(&w->tensors, "llmgw.kind");

    if (kind != NULL) {
        return whole_fail(error, "\"%.180s\" is a %.10s already: only the "
                          "whole model can be cut", w->paths[0], kind);
    }

    if (w->architecture == NULL) {
        return whole_fail(error, "\"%.180s\" is not a model", w->paths[0]);
    }

    if (!whole_is_listed(whole_architectures, w->architecture)) {
        return whole_fail(error, "architecture \"%.40s\" cannot be cut: its "
                          "layers may depend on their numbers; llama, qwen2, "
                          "qwen3 and qwen3moe can", w->architecture);
    }

    return 0;
}


/* Refuses facts with a value for each layer, which would be another layer's in
   a slice. */
static int
whole_check_facts(const whole_t *w, char error[SLICED_ERROR_BYTES])
{
    int64_t                     i;
    size_t                      len;
    const char                 *key;
    const struct gguf_context  *gguf;

    gguf = w->tensors.parts[0].gguf;
    len = strlen(w->architecture);

    for (i = 0; i < gguf_get_n_kv(gguf); i++) {
        key = gguf_get_key(gguf, i);

        if (strncmp(key, w->architecture, len) == 0 && key[len] == '.'
            && gguf_get_kv_type(gguf, i) == GGUF_TYPE_ARRAY)
        {
            return whole_fail(error, "this model cannot be cut: \"%.80s\" has "
                              "a value for each layer", key);
        }
    }

    return 0;
}


static int
whole_read_sizes(whole_t *w, char error[SLICED_ERROR_BYTES])
{
    char             key[WHOLE_KEY_BYTES];
    const tensor_t  *embed;

    snprintf(key, sizeof(key), "%s.block_count", w->architecture);

    if (tensors_u32(&w->tensors, key, &w->layers) != 0
        || w->layers == 0 || w->layers > SLICED_LAYERS_MAX)
    {
        return whole_fail(error, "\"%s\" is not 1 to %d", key,
                          SLICED_LAYERS_MAX);
    }

    embed = tensors_find(&w->tensors, SHARE_EMBED);

    if (embed == NULL || embed->ne[0] > UINT32_MAX
        || embed->ne[1] > UINT32_MAX)
    {
        return whole_fail(error, "\"%.180s\" has no " SHARE_EMBED,
                          w->paths[0]);
    }

    w->width = (uint32_t) embed->ne[0];
    w->vocabulary = (uint32_t) embed->ne[1];

    return 0;
}


/* Checks that each tensor is a layer's or a known one, and that each layer has
   some. */
static int
whole_check_tensors(const whole_t *w, char error[SLICED_ERROR_BYTES])
{
    char         seen[SLICED_LAYERS_MAX] = { 0 };
    size_t       i;
    int64_t      layer;
    const char  *name;

    for (i = 0; i < w->tensors.n; i++) {
        name = w->tensors.tensors[i].name;
        layer = share_layer(name);

        if (layer >= (int64_t) w->layers
            || (layer < 0 && !whole_is_listed(whole_globals, name)))
        {
            return whole_fail(error, "this model cannot be cut: where tensor "
                              "\"%.60s\" belongs is not known", name);
        }

        if (layer >= 0) {
            seen[layer] = 1;
        }
    }

    for (i = 0; i < w->layers; i++) {
        if (!seen[i]) {
            return whole_fail(error, "layer %zu of \"%.150s\" is missing", i,
                              w->paths[0]);
        }
    }

    return 0;
}


/* Sets a name that members may have: the name in a file may have blanks and
   other characters. */
static void
whole_name(whole_t *w, const char *name)
{
    size_t  i;

    if (name == NULL) {
        name = tensors_text(&w->tensors, "general.name");
    }

    snprintf(w->name, SLICED_NAME_BYTES, "%s",
             name != NULL && name[0] != '\0' ? name : w->architecture);

    for (i = 0; w->name[i] != '\0'; i++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                   "0123456789._-", w->name[i])
            == NULL)
        {
            w->name[i] = i == 0 ? 'm' : '-';
        }
    }
}


int
whole_open(whole_t *w, const char *path, const char *name,
    char error[SLICED_ERROR_BYTES])
{
    memset(w, 0, sizeof(*w));
    w->paths = parts_list(path, &w->npaths);

    if (w->paths == NULL) {
        return whole_fail(error, "out of memory");
    }

    if (tensors_open(&w->tensors, w->paths, w->npaths, error) != 0) {
        return -1;
    }

    w->architecture = tensors_text(&w->tensors, "general.architecture");

    if (whole_check_architecture(w, error) != 0
        || whole_check_facts(w, error) != 0
        || whole_read_sizes(w, error) != 0
        || whole_check_tensors(w, error) != 0)
    {
        return -1;
    }

    whole_name(w, name);

    return 0;
}


int
whole_hash(whole_t *w, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES])
{
    if (tensors_manifest(&w->tensors, watch, &w->manifest, &w->text, error)
        != 0)
    {
        return -1;
    }

    manifest_id(w->text, w->weights_id);

    return 0;
}


void
whole_done(whole_t *w)
{
    tensors_close(&w->tensors);
    manifest_done(&w->manifest);
    free(w->text);
    free(w->norms);

    if (w->paths != NULL) {
        parts_free(w->paths, w->npaths);
    }
}
