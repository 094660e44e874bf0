
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "slice/manifest/share.h"
#include "slice/tensors.h"


#define TENSORS_BLOCK_BYTES  (1024 * 1024)

#define tensors_fail(error, ...)                                              \
    (snprintf(error, TENSORS_ERROR_BYTES, __VA_ARGS__), -1)


/* Opens a part; problems are found here, for messages of our own instead of
   libllama's. */
static int
tensors_open_part(tensors_part_t *part, const char *path,
    char error[TENSORS_ERROR_BYTES])
{
    char                     magic[4];
    struct gguf_init_params  params = { .no_alloc = true };

    part->fd = open(path, O_RDONLY | O_CLOEXEC);

    if (part->fd < 0) {
        return tensors_fail(error, "cannot read \"%.180s\": %s", path,
                            strerror(errno));
    }

    if (pread(part->fd, magic, sizeof(magic), 0) != sizeof(magic)
        || memcmp(magic, GGUF_MAGIC, sizeof(magic)) != 0)
    {
        return tensors_fail(error, "\"%.180s\" is not a GGUF file", path);
    }

    part->path = strdup(path);
    part->gguf = gguf_init_from_file(path, params);

    if (part->path == NULL || part->gguf == NULL) {
        return tensors_fail(error, "the head of \"%.180s\" is damaged", path);
    }

    return 0;
}


/* Appends the i-th tensor of a part. */
static int
tensors_add(tensors_t *t, const tensors_part_t *part, int64_t i,
    uint64_t file_bytes, char error[TENSORS_ERROR_BYTES])
{
    tensor_t  *tensor;

    tensor = &t->tensors[t->n++];
    tensor->name = gguf_get_tensor_name(part->gguf, i);
    tensor->type = gguf_get_tensor_type(part->gguf, i);
    memcpy(tensor->ne, gguf_get_tensor_ne(part->gguf, i), sizeof(tensor->ne));
    tensor->bytes = gguf_get_tensor_size(part->gguf, i);
    tensor->offset = gguf_get_data_offset(part->gguf)
                     + gguf_get_tensor_offset(part->gguf, i);
    tensor->fd = part->fd;
    tensor->path = part->path;
    t->bytes += tensor->bytes;

    if (tensor->offset > file_bytes
        || tensor->bytes > file_bytes - tensor->offset)
    {
        return tensors_fail(error, "\"%.150s\" is cut off: it ends in the "
                            "tensor \"%.60s\"", part->path, tensor->name);
    }

    return 0;
}


static int
tensors_list_part(tensors_t *t, const tensors_part_t *part,
    char error[TENSORS_ERROR_BYTES])
{
    int64_t      i, n;
    tensor_t    *tensors;
    struct stat  st;

    n = gguf_get_n_tensors(part->gguf);

    if (fstat(part->fd, &st) != 0 || n > MANIFEST_TENSORS) {
        return tensors_fail(error, "cannot read \"%.180s\"", part->path);
    }

    tensors = realloc(t->tensors, (t->n + (size_t) n + 1) * sizeof(tensor_t));

    if (tensors == NULL) {
        return tensors_fail(error, "out of memory");
    }

    t->tensors = tensors;

    for (i = 0; i < n; i++) {
        if (tensors_add(t, part, i, (uint64_t) st.st_size, error) != 0) {
            return -1;
        }
    }

    return 0;
}


int
tensors_open(tensors_t *t, char *const *paths, size_t n,
    char error[TENSORS_ERROR_BYTES])
{
    size_t  i;

    memset(t, 0, sizeof(*t));
    t->parts = calloc(n, sizeof(tensors_part_t));

    if (t->parts == NULL) {
        return tensors_fail(error, "out of memory");
    }

    for (i = 0; i < n; i++) {
        t->nparts++;

        if (tensors_open_part(&t->parts[i], paths[i], error) != 0
            || tensors_list_part(t, &t->parts[i], error) != 0)
        {
            tensors_close(t);
            return -1;
        }
    }

    return 0;
}


void
tensors_close(tensors_t *t)
{
    size_t  i;

    for (i = 0; i < t->nparts; i++) {
        gguf_free(t->parts[i].gguf);
        free(t->parts[i].path);

        if (t->parts[i].fd >= 0) {
            close(t->parts[i].fd);
        }
    }

    free(t->parts);
    free(t->tensors);
    memset(t, 0, sizeof(*t));
}


const tensor_t *
tensors_find(const tensors_t *t, const char *name)
{
    size_t  i;

    for (i = 0; i < t->n; i++) {
        if (strcmp(t->tensors[i].name, name) == 0) {
            return &t->tensors[i];
        }
    }

    return NULL;
}


/* The index of a fact, checked, since gguf's functions abort if it is missing
   or of another type. */
static int64_t
tensors_fact(const tensors_t *t, const char *key, enum gguf_type type)
{
    int64_t  id;

    id = gguf_find_key(t->parts[0].gguf, key);

    return id >= 0 && gguf_get_kv_type(t->parts[0].gguf, id) == type ? id : -1;
}


int
tensors_u32(const tensors_t *t, const char *key, uint32_t *value)
{
    int64_t  id;

    id = tensors_fact(t, key, GGUF_TYPE_UINT32);

    if (id < 0) {
        return -1;
    }

    *value = gguf_get_val_u32(t->parts[0].gguf, id);

    return 0;
}


const char *
tensors_text(const tensors_t *t, const char *key)
{
    int64_t  id;

    id = tensors_fact(t, key, GGUF_TYPE_STRING);

    return id >= 0 ? gguf_get_val_str(t->parts[0].gguf, id) : NULL;
}


const float *
tensors_floats(const tensors_t *t, const char *key, size_t n)
{
    int64_t                     id;
    const struct gguf_context  *gguf;

    gguf = t->parts[0].gguf;
    id = tensors_fact(t, key, GGUF_TYPE_ARRAY);

    return id >= 0 && gguf_get_arr_type(gguf, id) == GGUF_TYPE_FLOAT32
           && gguf_get_arr_n(gguf, id) == n
           ? gguf_get_arr_data(gguf, id) : NULL;
}


void
tensors_shape(const tensor_t *tensor, char shape[MANIFEST_SHAPE_BYTES])
{
    int  i, n, dimensions;

    dimensions = GGML_MAX_DIMS;

    while (dimensions > 1 && tensor->ne[dimensions - 1] == 1) {
        dimensions--;
    }

    n = snprintf(shape, MANIFEST_SHAPE_BYTES / 2, "%s",
                 ggml_type_name(tensor->type));

    for (i = 0; i < dimensions; i++) {
        n += snprintf(shape + n, MANIFEST_SHAPE_BYTES - (size_t) n, "%c%ld",
                      i == 0 ? ' ' : 'x', (long) tensor->ne[i]);
    }
}


/* Reads one block at an offset in the tensor, and returns its size; -1 and
   errno. */
static ssize_t
tensors_block(const tensor_t *tensor, const tensors_watch_t *watch,
    uint64_t at, void *block)
{
    size_t   n;
    ssize_t  got;

    if (watch != NULL && watch->is_stopping != NULL
        && atomic_load(watch->is_stopping))
    {
        errno = ECANCELED;
        return -1;
    }

    n = tensor->bytes - at < TENSORS_BLOCK_BYTES
        ? (size_t) (tensor->bytes - at) : TENSORS_BLOCK_BYTES;

    do {
        got = pread(tensor->fd, block, n, (off_t) (tensor->offset + at));
    } while (got < 0 && errno == EINTR);

    if (got == 0) {
        errno = EIO;        /* the file became shorter */
        return -1;
    }

    if (got > 0 && watch != NULL && watch->progress != NULL) {
        watch->progress(watch->data, (uint64_t) got);
    }

    return got;
}


int
tensors_read(const tensor_t *tensor, const tensors_watch_t *watch,
    int (*each)(void *data, const void *bytes, size_t n), void *data)
{
    int        rc;
    void      *block;
    ssize_t    n;
    uint64_t   at;

    block = malloc(TENSORS_BLOCK_BYTES);

    if (block == NULL) {
        return -1;
    }

    rc = 0;

    for (at = 0; rc == 0 && at < tensor->bytes; at += (uint64_t) n) {
        n = tensors_block(tensor, watch, at, block);
        rc = n > 0 ? each(data, block, (size_t) n) : -1;
    }

    free(block);

    return rc;
}


static int
tensors_hash_block(void *data, const void *bytes, size_t n)
{
    return EVP_DigestUpdate(data, bytes, n) == 1 ? 0 : -1;
}


int
tensors_hash(const tensor_t *tensor, const tensors_watch_t *watch,
    uint8_t sha256[MANIFEST_ID_BYTES])
{
    int          rc;
    EVP_MD_CTX  *hash;

    hash = EVP_MD_CTX_new();

    if (hash == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(hash);
        errno = ENOMEM;
        return -1;
    }

    rc = tensors_read(tensor, watch, tensors_hash_block, hash);

    if (rc == 0) {
        EVP_DigestFinal_ex(hash, sha256, NULL);
    }

    EVP_MD_CTX_free(hash);

    return rc;
}


static int
tensors_is_setting(const tensors_t *t, const char *key)
{
    size_t       len;
    const char  *architecture;

    architecture = tensors_text(t, "general.architecture");
    len = architecture != NULL ? strlen(architecture) : 0;

    return len > 0 && strncmp(key, architecture, len) == 0 && key[len] == '.'
           && strcmp(key + len, ".block_count") != 0
           && strcmp(key + len, ".vocab_size") != 0;
}


static int
tensors_compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}


/* Appends one key: its name with the NUL, its type, its value as the file has
   it. */
static void
tensors_put_setting(const tensors_t *t, const char *key, FILE *out)
{
    size_t                      i, n, size;
    int64_t                     id;
    enum gguf_type              type;
    const struct gguf_context  *gguf;

    static const size_t  sizes[GGUF_TYPE_COUNT] = {
        1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
    };

    gguf = t->parts[0].gguf;
    id = gguf_find_key(gguf, key);
    type = gguf_get_kv_type(gguf, id);
    fprintf(out, "%s%c%d", key, '\0', (int) type);

    if (type == GGUF_TYPE_STRING) {
        fprintf(out, "%s%c", gguf_get_val_str(gguf, id), '\0');
        return;
    }

    if (type != GGUF_TYPE_ARRAY) {
        fwrite(gguf_get_val_data(gguf, id), sizes[type], 1, out);
        return;
    }

    type = gguf_get_arr_type(gguf, id);
    size = sizes[type];
    n = gguf_get_arr_n(gguf, id);
    fprintf(out, "%d %zu ", (int) type, n);

    if (size > 0) {
        fwrite(gguf_get_arr_data(gguf, id), size, n, out);
        return;
    }

    for (i = 0; i < n; i++) {
        fprintf(out, "%s%c", gguf_get_arr_str(gguf, id, i), '\0');
    }
}


/* The keys that are part of the line, sorted; the caller frees the list. */
static const char **
tensors_list_settings(const tensors_t *t, size_t *n)
{
    int64_t                     i, keys;
    const char                **list;
    const struct gguf_context  *gguf;

    gguf = t->parts[0].gguf;
    keys = gguf_get_n_kv(gguf);
    list = calloc((size_t) keys + 1, sizeof(char *));
    *n = 0;

    for (i = 0; list != NULL && i < keys; i++) {
        if (tensors_is_setting(t, gguf_get_key(gguf, i))) {
            list[(*n)++] = gguf_get_key(gguf, i);
        }
    }

    if (list != NULL) {
        qsort(list, *n, sizeof(char *), tensors_compare_keys);
    }

    return list;
}


int
tensors_settings(const tensors_t *t, char shape[MANIFEST_SHAPE_BYTES],
    uint8_t sha256[MANIFEST_ID_BYTES])
{
    int          rc;
    FILE        *out;
    char        *text;
    size_t       i, n, bytes;
    const char **keys;

    text = NULL;
    keys = tensors_list_settings(t, &n);
    out = keys != NULL ? open_memstream(&text, &bytes) : NULL;

    for (i = 0; out != NULL && i < n; i++) {
        tensors_put_setting(t, keys[i], out);
    }

    rc = out != NULL && fclose(out) == 0 && n > 0 ? 0 : -1;

    if (rc == 0) {
        snprintf(shape, MANIFEST_SHAPE_BYTES, "keys %zu", n);
        EVP_Digest(text, bytes, sha256, NULL, EVP_sha256(), NULL);
    }

    free(text);
    free(keys);

    return rc;
}


static int
tensors_add_lines(const tensors_t *t, const tensors_watch_t *watch,
    manifest_t *manifest, char error[TENSORS_ERROR_BYTES])
{
    char      shape[MANIFEST_SHAPE_BYTES];
    size_t    i;
    uint8_t   sha256[MANIFEST_ID_BYTES];

    for (i = 0; i < t->n; i++) {
        tensors_shape(&t->tensors[i], shape);

        if (tensors_hash(&t->tensors[i], watch, sha256) != 0) {
            return errno == ECANCELED ? tensors_fail(error, "%s", "")
                   : tensors_fail(error, "cannot read \"%.180s\": %s",
                                  t->tensors[i].path, strerror(errno));
        }

        if (manifest_add(manifest, t->tensors[i].name, shape, sha256) != 0) {
            return tensors_fail(error, "tensor \"%.60s\" cannot be in a "
                                "manifest", t->tensors[i].name);
        }
    }

    return tensors_settings(t, shape, sha256) == 0
           && manifest_add(manifest, SHARE_SETTINGS, shape, sha256) == 0
           ? 0 : tensors_fail(error, "\"%.180s\" says no architecture",
                              t->parts[0].path);
}


int
tensors_manifest(const tensors_t *t, const tensors_watch_t *watch,
    manifest_t *manifest, char **text, char error[TENSORS_ERROR_BYTES])
{
    memset(manifest, 0, sizeof(*manifest));

    if (tensors_add_lines(t, watch, manifest, error) != 0) {
        manifest_done(manifest);
        return -1;
    }

    *text = manifest_text(manifest);

    if (*text == NULL) {
        manifest_done(manifest);
        return tensors_fail(error, "a tensor of \"%.180s\" is there twice",
                            t->parts[0].path);
    }

    return 0;
}
