
/*
 * Preloaded into a replica: records what its plugin computes, or slows it
 * down.
 *
 * HASHED_ROWS=PREFIX: each process writes PREFIX.PID, with lines "LAYER
 * POSITION HASH" (XXH3, 64 bits) for the rows that enter a layer, and for
 * logits, as layer -1.  Of a whole model these are layers 1 to the last one,
 * of a shard the layer HASHED_LAYER.  A model that was loaded is probed first;
 * the probes end with an empty cache, and lines written before that do not
 * count.
 *
 * SLOW_DECODE=MS: each call to llama_decode() sleeps first.
 *
 * The plugin is opened after this library, and it opens libllama for itself
 * alone: the first call makes libllama's functions known to this library, too.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <llama.h>


#define LAYERS_MAX  256
#define LOGITS      (-1)

static struct {
    int                 fd;                     /* 0: not open yet */
    struct llama_batch  batch;                  /* of the call in progress */
    int                 rows[LAYERS_MAX];       /* of that call, by layer */
} calls;


static int
find(struct dl_phdr_info *info, size_t size, void *found)
{
    if (strstr(info->dlpi_name, "/libllama") == NULL) {
        return 0;
    }

    *(void **) found = dlopen(info->dlpi_name, RTLD_NOW|RTLD_NOLOAD
                              |RTLD_GLOBAL);

    return 1;
}


static void *
true_function(const char *name)
{
    static void  *library;

    if (library == NULL) {
        dl_iterate_phdr(find, &library);
    }

    return dlsym(library, name);
}


static int
log_fd(void)
{
    char         path[4096];
    const char  *prefix = getenv("HASHED_ROWS");

    if (prefix != NULL && calls.fd == 0) {
        snprintf(path, sizeof(path), "%s.%d", prefix, (int) getpid());
        calls.fd = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0600);
    }

    return calls.fd;
}


/* One write(2) for each line: a process may be killed between two lines. */
static void
note(int layer, int at, const float *row, int n)
{
    int   len;
    char  line[64];

    len = snprintf(line, sizeof(line), "%d %d %016llx\n", layer,
                   calls.batch.pos[at],
                   (unsigned long long) XXH3_64bits(row, n * sizeof(float)));

    if (write(log_fd(), line, len) != len) {
        abort();
    }
}


/* Notes a layer's output as the next layer's input; the last layer has none
   after it, and is not watched. */
static bool
watch(struct ggml_tensor *t, bool is_question, void *data)
{
    int        layer, end, i;
    float     *rows;

    const struct llama_model  *model = data;

    if (sscanf(t->name, "l_out-%d%n", &layer, &end) != 1
        || t->name[end] != '\0' || ++layer >= LAYERS_MAX
        || layer >= llama_model_n_layer(model))
    {
        return false;
    }

    if (is_question) {
        return true;
    }

    rows = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, rows, 0, ggml_nbytes(t));

    for (i = 0; i < t->ne[1]; i++) {
        note(layer, calls.rows[layer]++, rows + i * t->ne[0], t->ne[0]);
    }

    free(rows);

    return true;
}


struct llama_context *
llama_init_from_model(struct llama_model *model,
    struct llama_context_params params)
{
    struct llama_context  *(*init)(struct llama_model *,
                                   struct llama_context_params);

    if (getenv("HASHED_ROWS") != NULL && getenv("HASHED_LAYER") == NULL) {
        params.cb_eval = watch;
        params.cb_eval_user_data = model;
    }

    *(void **) &init = true_function("llama_init_from_model");

    return init(model, params);
}


void
llama_memory_clear(llama_memory_t memory, bool is_data)
{
    void  (*clear)(llama_memory_t, bool);

    if (log_fd() > 0 && ftruncate(calls.fd, 0) != 0) {
        abort();
    }

    *(void **) &clear = true_function("llama_memory_clear");
    clear(memory, is_data);
}


int32_t
llama_decode(struct llama_context *context, struct llama_batch batch)
{
    int              i, width, ms;
    int32_t        (*decode)(struct llama_context *, struct llama_batch);
    const char      *layer = getenv("HASHED_LAYER");
    struct timespec  pause;

    ms = getenv("SLOW_DECODE") != NULL ? atoi(getenv("SLOW_DECODE")) : 0;
    pause = (struct timespec) { ms / 1000, ms % 1000 * 1000000L };
    nanosleep(&pause, NULL);

    calls.batch = batch;
    memset(calls.rows, 0, sizeof(calls.rows));

    if (log_fd() > 0 && batch.embd != NULL && layer != NULL) {
        width = llama_model_n_embd(llama_get_model(context));

        for (i = 0; i < batch.n_tokens; i++) {
            note(atoi(layer), i, batch.embd + (size_t) i * width, width);
        }
    }

    *(void **) &decode = true_function("llama_decode");

    return decode(context, batch);
}


float *
llama_get_logits_ith(struct llama_context *context, int32_t i)
{
    float   *logits;
    float *(*get)(struct llama_context *, int32_t);

    *(void **) &get = true_function("llama_get_logits_ith");
    logits = get(context, i);

    if (log_fd() > 0 && logits != NULL) {
        note(LOGITS, i, logits, llama_vocab_n_tokens(llama_model_get_vocab(
                                    llama_get_model(context))));
    }

    return logits;
}
