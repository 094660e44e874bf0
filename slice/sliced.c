
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice/manifest/share.h"
#include "slice/sliced.h"
#include "slice/tensors.h"


#define SLICED_KEY_BYTES  128

#define sliced_fail(error, ...)                                               \
    (snprintf(error, SLICED_ERROR_BYTES, __VA_ARGS__), -1)

_Static_assert(SLICED_ERROR_BYTES == TENSORS_ERROR_BYTES, "one error's room");


/* --- the file's keys */

static int
sliced_read_kind(sliced_t *s, const tensors_t *t)
{
    const char  *kind;

    kind = tensors_text(t, "llmgw.kind");

    if (kind != NULL && strcmp(kind, "slice") == 0) {
        s->kind = SLICED_SLICE;
        return 0;
    }

    s->kind = SLICED_HEAD;

    return kind != NULL && strcmp(kind, "head") == 0 ? 0 : -1;
}


static int
sliced_read_layers(sliced_t *s, const tensors_t *t)
{
    if (tensors_u32(t, "llmgw.layers", &s->layers) != 0
        || s->layers == 0 || s->layers > SLICED_LAYERS_MAX)
    {
        return -1;
    }

    if (s->kind == SLICED_HEAD) {
        return 0;
    }

    if (tensors_u32(t, "llmgw.first_layer", &s->first_layer) != 0
        || tensors_u32(t, "llmgw.last_layer", &s->last_layer) != 0
        || s->first_layer > s->last_layer || s->last_layer >= s->layers)
    {
        return -1;
    }

    s->has_output = s->last_layer == s->layers - 1;

    return 0;
}


static int
sliced_read_sizes(sliced_t *s, const tensors_t *t)
{
    char         key[SLICED_KEY_BYTES];
    const char  *architecture;

    architecture = tensors_text(t, "general.architecture");

    if (architecture == NULL) {
        return -1;
    }

    snprintf(key, sizeof(key), "%.80s.embedding_length", architecture);

    return tensors_u32(t, key, &s->width) == 0 && s->width > 0
           && tensors_u32(t, "llmgw.vocabulary", &s->vocabulary) == 0
           && s->vocabulary > 0 ? 0 : -1;
}


static int
sliced_read_name(sliced_t *s, const tensors_t *t)
{
    const char  *model;

    model = tensors_text(t, "llmgw.model");

    if (model == NULL || model[0] == '\0'
        || strlen(model) >= SLICED_NAME_BYTES)
    {
        return -1;
    }

    snprintf(s->model, SLICED_NAME_BYTES, "%s", model);

    return 0;
}


/* Reads the norms; called last, since it allocates memory. */
static int
sliced_read_norms(sliced_t *s, const tensors_t *t,
    char error[SLICED_ERROR_BYTES])
{
    const float  *norms;

    norms = tensors_floats(t, "llmgw.norms", s->layers + 1);

    if (norms == NULL) {
        return 0;
    }

    s->norms = malloc((s->layers + 1) * sizeof(float));

    if (s->norms == NULL) {
        return sliced_fail(error, "out of memory");
    }

    memcpy(s->norms, norms, (s->layers + 1) * sizeof(float));

    return 0;
}


/* Reads the manifest in the file, and its id. */
static int
sliced_read_manifest(sliced_t *s, const tensors_t *t, manifest_t *manifest,
    char error[SLICED_ERROR_BYTES])
{
    int          line;
    uint8_t      id[MANIFEST_ID_BYTES];
    const char  *text, *hex;

    text = tensors_text(t, "llmgw.manifest");
    hex = tensors_text(t, "llmgw.weights_id");

    if (text == NULL || hex == NULL || manifest_unhex(hex, id) != 0) {
        return sliced_fail(error, "\"%.180s\" has no manifest",
                           t->parts[0].path);
    }

    manifest_id(text, s->weights_id);

    if (memcmp(id, s->weights_id, sizeof(id)) != 0) {
        return sliced_fail(error, "the manifest of \"%.160s\" is not the one "
                           "that its weights id is of", t->parts[0].path);
    }

    line = manifest_parse(manifest, text);

    if (line != 0) {
        return sliced_fail(error, "line %d of the manifest of \"%.160s\" is "
                           "damaged", line, t->parts[0].path);
    }

    return 0;
}


/* --- the file's tensors */

typedef struct {
    const tensors_t        *tensors;
    const tensors_watch_t  *watch;      /* NULL: checks types and shapes, reads
                                           no bytes */
    char                   *error;
} sliced_look_t;


static int
sliced_check_tensor(const sliced_look_t *look, const manifest_line_t *line,
    const char *local)
{
    char             shape[MANIFEST_SHAPE_BYTES];
    uint8_t          sha256[MANIFEST_ID_BYTES];
    const char      *path;
    const tensor_t  *tensor;

    path = look->tensors->parts[0].path;
    tensor = tensors_find(look->tensors, local);

    if (tensor == NULL) {
        return sliced_fail(look->error, "\"%.150s\" has no tensor \"%.60s\"",
                           path, local);
    }

    tensors_shape(tensor, shape);

    if (strcmp(shape, line->shape) != 0) {
        return sliced_fail(look->error, "tensor \"%.50s\" of \"%.70s\" is "
                           "%.36s, the manifest says %.36s", local, path,
                           shape, line->shape);
    }

    if (look->watch == NULL) {
        return 0;
    }

    if (tensors_hash(tensor, look->watch, sha256) != 0) {
        return errno == ECANCELED ? sliced_fail(look->error, "%s", "")
               : sliced_fail(look->error, "cannot read \"%.180s\": %s", path,
                             strerror(errno));
    }

    if (memcmp(sha256, line->sha256, sizeof(sha256)) != 0) {
        return sliced_fail(look->error, "tensor \"%.60s\" of \"%.130s\" is "
                           "not as the manifest says: the file is damaged",
                           local, path);
    }

    return 0;
}


static int
sliced_check_settings(const sliced_look_t *look, const manifest_line_t *line)
{
    char     shape[MANIFEST_SHAPE_BYTES];
    uint8_t  sha256[MANIFEST_ID_BYTES];

    if (tensors_settings(look->tensors, shape, sha256) == 0
        && strcmp(shape, line->shape) == 0
        && memcmp(sha256, line->sha256, sizeof(sha256)) == 0)
    {
        return 0;
    }

    return sliced_fail(look->error, "the settings of \"%.150s\" are not as "
                       "the manifest says: the file is damaged",
                       look->tensors->parts[0].path);
}


static int
sliced_check_line(const sliced_look_t *look, const share_t *share,
    const manifest_line_t *line)
{
    char  local[SHARE_NAME_BYTES];

    if (strcmp(line->name, SHARE_SETTINGS) == 0) {
        return sliced_check_settings(look, line);
    }

    share_name(share, line->name, local);

    return sliced_check_tensor(look, line, local);
}


/* Checks that the file has a tensor for each line that it has to have, and no
   other. */
static int
sliced_check_tensors(const sliced_t *s, const manifest_t *manifest,
    const sliced_look_t *look)
{
    size_t   i, n;
    share_t  share = { s->kind == SLICED_HEAD,
                       manifest_find(manifest, SHARE_OUTPUT) == NULL,
                       s->first_layer, s->last_layer, s->layers };

    n = s->kind == SLICED_SLICE && !s->has_output;      /* a row of zeros */

    for (i = 0; i < manifest->n; i++) {
        if (!share_has(&share, manifest->lines[i].name)) {
            continue;
        }

        if (sliced_check_line(look, &share, &manifest->lines[i]) != 0) {
            return -1;
        }

        n += strcmp(manifest->lines[i].name, SHARE_SETTINGS) != 0;
    }

    return n == look->tensors->n ? 0
           : sliced_fail(look->error, "\"%.160s\" has %zu tensors, the "
                         "manifest says %zu", look->tensors->parts[0].path,
                         look->tensors->n, n);
}


/* Reads keys and checks tensors of a file that is open. */
static int
sliced_read_tensors(sliced_t *s, const tensors_t *t,
    const tensors_watch_t *watch, char error[SLICED_ERROR_BYTES])
{
    int            rc;
    manifest_t     manifest;
    sliced_look_t  look = { t, watch, error };

    memset(s, 0, sizeof(*s));

    if (sliced_read_kind(s, t) != 0) {
        return sliced_fail(error, "\"%.180s\" was not made by llmgw-slice",
                           t->parts[0].path);
    }

    if (sliced_read_layers(s, t) != 0 || sliced_read_sizes(s, t) != 0
        || sliced_read_name(s, t) != 0)
    {
        return sliced_fail(error, "the keys llmgw.* of \"%.160s\" are "
                           "damaged", t->parts[0].path);
    }

    if (sliced_read_manifest(s, t, &manifest, error) != 0) {
        return -1;
    }

    s->bytes = t->bytes;
    rc = sliced_check_tensors(s, &manifest, &look);
    manifest_done(&manifest);

    return rc == 0 ? sliced_read_norms(s, t, error) : -1;
}


static int
sliced_open(sliced_t *s, const char *path, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES])
{
    int        rc;
    tensors_t  tensors;

    if (tensors_open(&tensors, (char *const *) &path, 1, error) != 0) {
        return -1;
    }

    rc = sliced_read_tensors(s, &tensors, watch, error);
    tensors_close(&tensors);

    return rc;
}


int
sliced_read(sliced_t *s, const char *path, char error[SLICED_ERROR_BYTES])
{
    return sliced_open(s, path, NULL, error);
}


int
sliced_check(sliced_t *s, const char *path, const atomic_int *is_stopping,
    char error[SLICED_ERROR_BYTES])
{
    tensors_watch_t  watch = { .is_stopping = is_stopping };

    return sliced_open(s, path, &watch, error);
}


void
sliced_done(sliced_t *s)
{
    free(s->norms);
    s->norms = NULL;
}


int
sliced_is_one(const char *path)
{
    int        rc;
    char       error[SLICED_ERROR_BYTES];
    char      *paths[] = { (char *) path };
    tensors_t  tensors;

    if (tensors_open(&tensors, paths, 1, error) != 0) {
        return 0;
    }

    rc = tensors_text(&tensors, "llmgw.kind") != NULL;
    tensors_close(&tensors);

    return rc;
}


int
sliced_weights_id(char *const *paths, size_t n, const atomic_int *is_stopping,
    uint8_t id[MANIFEST_ID_BYTES], char error[SLICED_ERROR_BYTES])
{
    int              rc;
    char            *text;
    tensors_t        tensors;
    manifest_t       manifest;
    tensors_watch_t  watch = { .is_stopping = is_stopping };

    if (tensors_open(&tensors, paths, n, error) != 0) {
        return -1;
    }

    rc = tensors_manifest(&tensors, &watch, &manifest, &text, error);

    if (rc == 0) {
        manifest_id(text, id);
        free(text);
        manifest_done(&manifest);
    }

    tensors_close(&tensors);

    return rc;
}
