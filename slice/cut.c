
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "slice/cut.h"
#include "slice/manifest/share.h"


#define CUT_KEY_BYTES  128

#define cut_fail(error, ...)                                                  \
    (snprintf(error, SLICED_ERROR_BYTES, __VA_ARGS__), -1)

typedef struct {
    const whole_t          *whole;
    share_t                 share;
    struct gguf_context    *gguf;
    struct ggml_context    *shapes;
    int                     fd;
    uint64_t                at;         /* bytes written */
    const tensors_watch_t  *watch;
    char                   *error;
} cut_run_t;


/* --- the head of the file */

static void
cut_set_u32(cut_run_t *run, const char *fact, uint32_t value)
{
    char  key[CUT_KEY_BYTES];

    snprintf(key, sizeof(key), "%s.%s", run->whole->architecture, fact);
    gguf_set_val_u32(run->gguf, key, value);
}


/* Removes keys, from the end on, since removing a key moves those after it. */
static void
cut_remove(cut_run_t *run, const char *prefix)
{
    int64_t      i;
    const char  *key;

    for (i = gguf_get_n_kv(run->gguf) - 1; i >= 0; i--) {
        key = gguf_get_key(run->gguf, i);

        if (strncmp(key, prefix, strlen(prefix)) == 0) {
            gguf_remove_key(run->gguf, key);
        }
    }
}


/* Sets the keys with which libllama loads the slice as a model of its own. */
static void
cut_set_slice(cut_run_t *run)
{
    cut_remove(run, "tokenizer.");
    gguf_set_val_str(run->gguf, "tokenizer.ggml.model", "none");
    cut_set_u32(run, "vocab_size", share_has_output(&run->share)
                                   ? run->whole->vocabulary : 1);
    cut_set_u32(run, "block_count",
                run->share.last_layer - run->share.first_layer + 1);
    gguf_set_val_u32(run->gguf, "llmgw.first_layer", run->share.first_layer);
    gguf_set_val_u32(run->gguf, "llmgw.last_layer", run->share.last_layer);
}


static void
cut_set_facts(cut_run_t *run)
{
    char            hex[MANIFEST_HEX_BYTES];
    const whole_t  *whole;

    whole = run->whole;
    manifest_hex(whole->weights_id, hex);

    gguf_set_kv(run->gguf, whole->tensors.parts[0].gguf);
    cut_remove(run, "split.");
    cut_remove(run, GGUF_KEY_GENERAL_ALIGNMENT);        /* the writer's own */
    gguf_set_val_str(run->gguf, "llmgw.kind",
                     run->share.is_head ? "head" : "slice");
    gguf_set_val_str(run->gguf, "llmgw.model", whole->name);
    gguf_set_val_str(run->gguf, "llmgw.manifest", whole->text);
    gguf_set_val_str(run->gguf, "llmgw.weights_id", hex);
    gguf_set_val_u32(run->gguf, "llmgw.layers", whole->layers);
    gguf_set_val_u32(run->gguf, "llmgw.vocabulary", whole->vocabulary);

    if (whole->norms != NULL) {
        gguf_set_arr_data(run->gguf, "llmgw.norms", GGUF_TYPE_FLOAT32,
                          whole->norms, whole->layers + 1);
    }

    if (!run->share.is_head) {
        cut_set_slice(run);
    }
}


static int
cut_has_filler(const cut_run_t *run)
{
    return !run->share.is_head && !share_has_output(&run->share);
}


static void
cut_add_shape(cut_run_t *run, const char *name, enum ggml_type type,
    const int64_t *ne)
{
    struct ggml_tensor  *shape;

    shape = ggml_new_tensor(run->shapes, type, GGML_MAX_DIMS, ne);
    ggml_set_name(shape, name);
    gguf_add_tensor(run->gguf, shape);
}


/* Adds the tensors, in the order in which their bytes are written below. */
static void
cut_set_tensors(cut_run_t *run)
{
    char              local[SHARE_NAME_BYTES];
    size_t            i;
    const int64_t     filler[GGML_MAX_DIMS] = { run->whole->width, 1, 1, 1 };
    const tensor_t   *tensor;
    const tensors_t  *tensors;

    if (cut_has_filler(run)) {
        cut_add_shape(run, SHARE_EMBED, GGML_TYPE_F32, filler);
    }

    tensors = &run->whole->tensors;

    for (i = 0; i < tensors->n; i++) {
        tensor = &tensors->tensors[i];

        if (share_has(&run->share, tensor->name)) {
            share_name(&run->share, tensor->name, local);
            cut_add_shape(run, local, tensor->type, tensor->ne);
        }
    }
}


/* --- the tensors' bytes */

static int
cut_put(void *data, const void *bytes, size_t n)
{
    size_t      done;
    ssize_t     rc;
    cut_run_t  *run = data;

    for (done = 0; done < n; done += (size_t) rc) {
        rc = write(run->fd, (const char *) bytes + done, n - done);

        if (rc < 0 && errno == EINTR) {
            rc = 0;
        }

        if (rc < 0) {
            return -1;
        }
    }

    run->at += n;

    return 0;
}


static int
cut_put_zeros(cut_run_t *run, size_t n)
{
    int    rc;
    char  *zeros;

    zeros = calloc(n + 1, 1);
    rc = zeros != NULL ? cut_put(run, zeros, n) : -1;
    free(zeros);

    return rc;
}


/* Pads to the next offset in the file's head. */
static int
cut_pad(cut_run_t *run)
{
    return cut_put_zeros(run, (size_t) (-run->at
                              & (gguf_get_alignment(run->gguf) - 1)));
}


static int
cut_put_head(cut_run_t *run)
{
    int     rc;
    void   *head;
    size_t  n;

    n = gguf_get_meta_size(run->gguf);
    head = malloc(n);

    if (head == NULL) {
        return -1;
    }

    gguf_get_meta_data(run->gguf, head);
    rc = cut_put(run, head, n);
    free(head);

    return rc;
}


static int
cut_put_tensors(cut_run_t *run)
{
    size_t           i;
    const tensor_t  *tensor;

    if (cut_has_filler(run)
        && (cut_put_zeros(run, run->whole->width * sizeof(float)) != 0
            || cut_pad(run) != 0))
    {
        return -1;
    }

    for (i = 0; i < run->whole->tensors.n; i++) {
        tensor = &run->whole->tensors.tensors[i];

        if (share_has(&run->share, tensor->name)
            && (tensors_read(tensor, run->watch, cut_put, run) != 0
                || cut_pad(run) != 0))
        {
            return -1;
        }
    }

    return 0;
}


/* --- the file */

/* Opens PATH.tmp for this run alone: two runs that write the same file would
   mix their bytes. */
static int
cut_open(cut_run_t *run, const char *path)
{
    run->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (run->fd < 0) {
        return cut_fail(run->error, "cannot write \"%.180s\": %s", path,
                        strerror(errno));
    }

    if (flock(run->fd, LOCK_EX | LOCK_NB) != 0) {
        close(run->fd);
        return cut_fail(run->error, "\"%.180s\" is being written by another "
                        "run", path);
    }

    return 0;
}


/* Renames the file, and syncs the folder, so that the new name is on the disk,
   too. */
static int
cut_rename(const char *from, const char *to)
{
    int   fd, rc;
    char  folder[PATH_MAX];

    if (rename(from, to) != 0) {
        return -1;
    }

    snprintf(folder, sizeof(folder), "%s", to);
    fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = fd >= 0 ? fsync(fd) : -1;

    if (fd >= 0) {
        close(fd);
    }

    return rc;
}


static int
cut_put_file(cut_run_t *run, const char *tmp, const char *path)
{
    if (cut_open(run, tmp) != 0) {
        return -1;
    }

    if (ftruncate(run->fd, 0) == 0 && cut_put_head(run) == 0
        && cut_put_tensors(run) == 0 && fsync(run->fd) == 0
        && cut_rename(tmp, path) == 0)
    {
        close(run->fd);
        return 0;
    }

    run->error[0] = '\0';

    if (errno != ECANCELED) {
        (void) cut_fail(run->error, "cannot write \"%.180s\": %s", path,
                        strerror(errno));
    }

    unlink(tmp);
    close(run->fd);

    return -1;
}


static int
cut_begin(cut_run_t *run)
{
    struct ggml_init_params  params = { .no_alloc = true };

    params.mem_size = (run->whole->tensors.n + 1) * ggml_tensor_overhead();
    run->gguf = gguf_init_empty();
    run->shapes = ggml_init(params);

    return run->gguf != NULL && run->shapes != NULL ? 0
           : cut_fail(run->error, "out of memory");
}


int
cut_write(const whole_t *whole, cut_t *cut, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES])
{
    int        rc;
    char       tmp[PATH_MAX];
    cut_run_t  run = {
        .whole = whole, .watch = watch, .error = error,
        .share = { cut->kind == SLICED_HEAD,
                   manifest_find(&whole->manifest, SHARE_OUTPUT) == NULL,
                   cut->first_layer, cut->last_layer, whole->layers }
    };

    snprintf(tmp, sizeof(tmp), "%s.tmp", cut->path);
    rc = cut_begin(&run);

    if (rc == 0) {
        cut_set_facts(&run);
        cut_set_tensors(&run);
        rc = cut_put_file(&run, tmp, cut->path);
        cut->bytes = run.at;
    }

    ggml_free(run.shapes);
    gguf_free(run.gguf);

    return rc;
}
