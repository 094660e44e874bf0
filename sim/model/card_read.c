
/*
 * Reads model cards and GPUs from JSON.
 *
 * Publishers name the same figure differently, so most figures have a list of
 * keys, and the first one whose value is not 0 counts.  Configurations of
 * multimodal models have the language model's figures in "text_config".
 */

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/model/card.h"


#define FILE_BYTES_MAX  (4 * 1024 * 1024)
#define PATH_BYTES      4096
#define FIGURE_MAX      1e15

/* The file that is being read, and where its errors go. */
typedef struct {
    const char  *file;
    char        *text;
    json_t      *root;
    char        *error;
    size_t       bytes;
} card_file_t;


/*
 * Writes an error with the line of key, or of the whole object if key is NULL.
 * Returns -1.
 */
static int __attribute__((format(printf, 3, 4)))
card_wrong(const card_file_t *file, const char *key, const char *format, ...)
{
    int          n;
    char         quoted[128];
    va_list      args;
    const char  *at, *p;

    n = 1;
    snprintf(quoted, sizeof(quoted), "\"%s\"", key != NULL ? key : "");
    at = key != NULL && file->text != NULL ? strstr(file->text, quoted)
                                           : NULL;

    for (p = file->text; at != NULL && p < at; p++) {
        n += *p == '\n';
    }

    n = snprintf(file->error, file->bytes, "%s:%d: ", file->file, n);

    if (n > 0 && (size_t) n < file->bytes) {
        va_start(args, format);
        vsnprintf(file->error + n, file->bytes - n, format, args);
        va_end(args);
    }

    return -1;
}


static int
card_file_read(card_file_t *file)
{
    FILE    *stream;
    size_t   n;

    stream = fopen(file->file, "r");

    if (stream == NULL) {
        return card_wrong(file, NULL, "%s", strerror(errno));
    }

    file->text = malloc(FILE_BYTES_MAX + 1);
    n = file->text != NULL ? fread(file->text, 1, FILE_BYTES_MAX + 1, stream)
                           : 0;

    if (file->text == NULL || ferror(stream) || n > FILE_BYTES_MAX) {
        fclose(stream);
        free(file->text);
        file->text = NULL;
        return card_wrong(file, NULL, n > FILE_BYTES_MAX
                          ? "the file is too large" : "cannot be read");
    }

    fclose(stream);
    file->text[n] = '\0';

    return 0;
}


static int
card_file_open(card_file_t *file)
{
    json_error_t  problem;

    if (card_file_read(file) != 0) {
        return -1;
    }

    file->root = json_loads(file->text, 0, &problem);

    if (file->root == NULL) {
        snprintf(file->error, file->bytes, "%s:%d: %s", file->file,
                 problem.line, problem.text);
        return -1;
    }

    if (!json_is_object(file->root)) {
        return card_wrong(file, NULL, "not a JSON object");
    }

    return 0;
}


static void
card_file_close(card_file_t *file)
{
    json_decref(file->root);
    free(file->text);
}


/* Reads a number >= 0; 0 if there is none.  -1: the value is something else. */
static int
card_number(const card_file_t *file, const json_t *object, const char *key,
    double *number)
{
    const json_t  *value;

    *number = 0;
    value = json_object_get(object, key);

    if (value == NULL || json_is_null(value)) {
        return 0;
    }

    if (!json_is_number(value)) {
        return card_wrong(file, key, "\"%s\" is not a number", key);
    }

    *number = json_number_value(value);

    if (!isfinite(*number) || *number < 0 || *number > FIGURE_MAX) {
        return card_wrong(file, key, "\"%s\" must be a number >= 0", key);
    }

    return 0;
}


/*
 * Reads the number of the first of these keys that is at least `min`; the list
 * of keys ends with NULL.
 */
static int
card_integer(const card_file_t *file, const char *const *keys, int64_t min,
    int64_t *integer)
{
    double  number;

    *integer = 0;

    for ( /* void */ ; *keys != NULL; keys++) {

        if (card_number(file, file->root, *keys, &number) != 0) {
            return -1;
        }

        if ((int64_t) number >= min) {
            *integer = (int64_t) number;
            return 0;
        }
    }

    return 0;
}


#define KEYS  6

static const struct {
    size_t       field;
    int64_t      min;
    const char  *keys[KEYS];
} card_integers[] = {
    { offsetof(model_card_t, layers), 1, { "num_hidden_layers" } },
    { offsetof(model_card_t, hidden), 1, { "hidden_size" } },
    { offsetof(model_card_t, heads), 1, { "num_attention_heads" } },
    { offsetof(model_card_t, kv_heads), 1,
      { "num_key_value_heads", "num_kv_heads", "multi_query_group_num" } },
    { offsetof(model_card_t, head), 1, { "head_dim" } },
    { offsetof(model_card_t, intermediate), 1,
      { "intermediate_size", "ffn_hidden_size" } },
    { offsetof(model_card_t, max_positions), 1,
      { "max_position_embeddings" } },
    { offsetof(model_card_t, vocabulary), 1, { "vocab_size" } },
    { offsetof(model_card_t, dense_first), 1, { "first_k_dense_replace" } },
    { offsetof(model_card_t, experts), MODEL_EXPERTS_MIN,
      { "num_experts", "moe_num_experts", "n_routed_experts",
        "num_local_experts", "num_routed_experts" } },
    { offsetof(model_card_t, experts_per_token), 1,
      { "num_experts_per_tok" } },
    { offsetof(model_card_t, expert_intermediate), 1,
      { "moe_intermediate_size" } },
    { offsetof(model_card_t, shared_intermediate), 1,
      { "shared_expert_intermediate_size" } },
    { offsetof(model_card_t, interleave), 1,
      { "interleave_moe_layer_step" } },
    { offsetof(model_card_t, dense_intermediate), 1,
      { "intermediate_size_mlp" } }
};


static int
card_read_integers(const card_file_t *file, model_card_t *card)
{
    size_t    i;
    int64_t  *field;

    for (i = 0; i < sizeof(card_integers) / sizeof(card_integers[0]); i++) {
        field = (int64_t *) ((char *) card + card_integers[i].field);

        if (card_integer(file, card_integers[i].keys, card_integers[i].min,
                         field) != 0)
        {
            return -1;
        }
    }

    if (card->layers == 0 || card->hidden == 0 || card->heads == 0) {
        return card_wrong(file, NULL, "num_hidden_layers, hidden_size and"
                          " num_attention_heads are needed");
    }

    return 0;
}


/* Whether a feed-forward part with this activation has three matrices. */
static int
card_is_gated(const char *activation)
{
    size_t  i;

    static const char *const  gated[] = {
        "silu", "swiglu", "geglu", "situ", ""
    };

    for (i = 0; i < sizeof(gated) / sizeof(gated[0]); i++) {
        if (activation == NULL || strcmp(activation, gated[i]) == 0) {
            return 1;
        }
    }

    return 0;
}


/* Figures that need more than one key: shared experts, compressed keys. */
static int
card_read_rest(const card_file_t *file, model_card_t *card)
{
    double  shared, rank, rope;

    if (card_number(file, file->root, "n_shared_experts", &shared) != 0
        || card_number(file, file->root, "kv_lora_rank", &rank) != 0
        || card_number(file, file->root, "qk_rope_head_dim", &rope) != 0)
    {
        return -1;
    }

    if (card->shared_intermediate == 0) {
        card->shared_intermediate = (int64_t) shared
            * (card->expert_intermediate > 0 ? card->expert_intermediate
                                             : card->intermediate);
    }

    if (rank > 0) {
        card->kv_latent = (int64_t) rank + (int64_t) rope;
    }

    card->is_tied = json_is_true(json_object_get(file->root,
                                                 "tie_word_embeddings"));

    /*
     * If experts are used and their number is unknown, the size of the weights
     * is unknown.
     */
    card->is_gated = card_is_gated(json_string_value(
                         json_object_get(file->root, "hidden_act")))
        && (card->experts > 0
            || (shared == 0 && card->experts_per_token == 0));

    return 0;
}


static double
card_type_bytes(const char *type)
{
    size_t  i;

    static const struct {
        const char  *type;
        double       bytes;
    } types[] = {
        { "float32", 4 }, { "float16", 2 }, { "bfloat16", 2 }, { "int8", 1 },
        { "uint8", 1 }, { "fp8", 1 }, { "int4", 1 }, { "nf4", 1 }
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].type, type) == 0) {
            return types[i].bytes;
        }
    }

    return 0;
}


/* The bytes of a weight: the group whose name sorts first counts for all. */
static double
card_group_bytes(json_t *groups)
{
    double         bits;
    json_t        *group;
    const char    *key, *first;
    const json_t  *number;

    bits = 0;
    first = NULL;

    json_object_foreach(groups, key, group) {
        number = json_object_get(json_object_get(group, "weights"),
                                 "num_bits");

        if (json_number_value(number) > 0
            && (first == NULL || strcmp(key, first) < 0))
        {
            first = key;
            bits = json_number_value(number);
        }
    }

    return bits / 8;
}


static double
card_quantized_bytes(const json_t *quantization)
{
    double         bits;
    const char    *method;
    const json_t  *value;

    value = json_object_get(quantization, "bits");
    bits = json_is_string(value) ? strtod(json_string_value(value), NULL)
                                 : json_number_value(value);
    method = json_string_value(json_object_get(quantization, "quant_method"));

    if (bits >= 1) {
        return (double) (int64_t) bits / 8;
    }

    if (method != NULL && strcasecmp(method, "fp8") == 0) {
        return 1;
    }

    if (method != NULL && strcasecmp(method, "compressed-tensors") == 0) {
        return card_group_bytes(json_object_get(quantization,
                                                "config_groups"));
    }

    return 0;
}


/*
 * The bytes of a weight by a model's name, which has w4a16 and the like, or
 * fp8.
 */
static double
card_named_bytes(const char *name)
{
    double      bytes;
    regex_t     pattern;
    regmatch_t  got[3];

    bytes = 0;

    if (regcomp(&pattern, "(^|[-._/])w([0-9]+)a[0-9]+($|[-._])",
                REG_EXTENDED | REG_ICASE) == 0)
    {
        if (regexec(&pattern, name, 3, got, 0) == 0) {
            bytes = strtod(name + got[2].rm_so, NULL) / 8;
        }

        regfree(&pattern);
    }

    if (bytes == 0
        && regcomp(&pattern, "(^|[-._/])fp8($|[-._])",
                   REG_EXTENDED | REG_ICASE | REG_NOSUB) == 0)
    {
        bytes = regexec(&pattern, name, 0, NULL, 0) == 0 ? 1 : 0;
        regfree(&pattern);
    }

    return bytes;
}


static void
card_read_bytes(const card_file_t *file, const char *name, model_card_t *card)
{
    const char  *type;

    type = json_string_value(json_object_get(file->root, "torch_dtype"));

    if (type == NULL) {
        type = json_string_value(json_object_get(file->root, "dtype"));
    }

    card->param_bytes = type != NULL ? card_type_bytes(type) : 0;
    card->weight_bytes = card_quantized_bytes(
        json_object_get(file->root, "quantization_config"));

    if (card->weight_bytes == 0 && name != NULL) {
        card->weight_bytes = card_named_bytes(name);
    }
}


/*
 * Raises max_positions by the scaling of positions beyond the original model's.
 */
static void
card_scale_positions(const card_file_t *file, model_card_t *card)
{
    double         factor, base, original;
    const json_t  *rope;
    const char    *type, *family;

    rope = json_object_get(file->root, "rope_scaling");
    family = json_string_value(json_object_get(file->root, "model_type"));
    type = json_string_value(json_object_get(rope, "type"));

    if (type == NULL || type[0] == '\0') {
        type = json_string_value(json_object_get(rope, "rope_type"));
    }

    if (type == NULL) {
        type = "";
    }

    factor = json_number_value(json_object_get(rope, "factor"));

    if (factor <= 1 || strcmp(type, "su") == 0
        || strcmp(type, "longrope") == 0 || strcmp(type, "llama3") == 0
        || (family != NULL && strstr(family, "gemma3") != NULL))
    {
        return;
    }

    base = (double) card->max_positions;
    original = json_number_value(
        json_object_get(rope, "original_max_position_embeddings"));

    if (strcmp(type, "yarn") == 0 && original > 0) {
        base = original;
    }

    if (base * factor < FIGURE_MAX) {
        card->max_positions = (int64_t) (base * factor);
    }
}


static int
card_read(card_file_t *file, const char *name, model_card_t *card)
{
    json_t  *text;

    memset(card, 0, sizeof(model_card_t));

    text = json_object_get(file->root, "text_config");

    if (json_is_object(text) && json_object_update(file->root, text) != 0) {
        return card_wrong(file, NULL, "no memory");
    }

    if (card_read_integers(file, card) != 0
        || card_read_rest(file, card) != 0)
    {
        return -1;
    }

    card_read_bytes(file, name, card);
    card_scale_positions(file, card);

    return 0;
}


int
model_card_read(const char *folder, const char *model_name,
    model_card_t *card, char *error, size_t bytes)
{
    int           rc;
    char          path[PATH_BYTES];
    card_file_t   file;
    model_card_t  read;

    snprintf(path, sizeof(path), "%s/config.json", folder);
    file = (card_file_t) { .file = path, .error = error, .bytes = bytes };

    rc = card_file_open(&file);

    if (rc == 0) {
        rc = card_read(&file, model_name, &read);
    }

    if (rc == 0) {
        *card = read;
    }

    card_file_close(&file);

    return rc;
}


static int
gpu_read(card_file_t *file, const char *name, model_gpu_t *gpu)
{
    json_t  *object;

    object = json_object_get(file->root, name);

    if (!json_is_object(object)) {
        return card_wrong(file, NULL, "there is no GPU \"%s\"", name);
    }

    if (card_number(file, object, "TFlopsPeak", &gpu->tflops) != 0
        || card_number(file, object, "TFlopsFP8", &gpu->tflops_fp8) != 0
        || card_number(file, object, "BwPeakTBs", &gpu->bandwidth_tbs) != 0
        || card_number(file, object, "mfuPrefill", &gpu->mfu_prefill) != 0
        || card_number(file, object, "mfuDecode", &gpu->mfu_decode) != 0
        || card_number(file, object, "MemoryGiB", &gpu->memory_gib) != 0)
    {
        return -1;
    }

    if (gpu->tflops == 0 || gpu->bandwidth_tbs == 0) {
        return card_wrong(file, name, "GPU \"%s\" needs TFlopsPeak and"
                          " BwPeakTBs", name);
    }

    return 0;
}


int
model_gpu_read(const char *path, const char *name, model_gpu_t *gpu,
    char *error, size_t bytes)
{
    int          rc;
    card_file_t  file;
    model_gpu_t  read;

    file = (card_file_t) { .file = path, .error = error, .bytes = bytes };

    rc = card_file_open(&file);

    if (rc == 0) {
        rc = gpu_read(&file, name, &read);
    }

    if (rc == 0) {
        *gpu = read;
    }

    card_file_close(&file);

    return rc;
}
