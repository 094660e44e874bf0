
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llama.h>

#include "slice/libllama.h"
#include "slice/norms.h"


#define NORMS_TOKENS  128

#define norms_fail(error, ...)                                                \
    (snprintf(error, SLICED_ERROR_BYTES, __VA_ARGS__), -1)

typedef struct {
    whole_t               *whole;
    libllama_t             libllama;
    struct llama_model    *model;
    struct llama_context  *context;
} norms_run_t;


/* The boundary of a tensor: 0 is the input; -1: it is at none. */
static int
norms_boundary(const norms_run_t *run, const char *name)
{
    int  layer, end;

    if (strcmp(name, "embd") == 0) {
        return 0;
    }

    end = 0;

    return sscanf(name, "l_out-%d%n", &layer, &end) == 1 && name[end] == '\0'
           && layer >= 0 && layer < (int) run->whole->layers ? layer + 1 : -1;
}


static float
norms_of_row(const float *row, int64_t width)
{
    double   sum;
    int64_t  i;

    sum = 0;

    for (i = 0; i < width; i++) {
        sum += (double) row[i] * row[i];
    }

    return (float) sqrt(sum);
}


/* Called by libllama, which asks whether a tensor is wanted, and then passes
   it. */
static bool
norms_on_tensor(struct ggml_tensor *tensor, bool is_asking, void *data)
{
    int           at;
    float         norm, *rows;
    int64_t       i;
    norms_run_t  *run = data;

    at = norms_boundary(run, tensor->name);

    if (at < 0 || is_asking) {
        return is_asking ? at >= 0 : true;
    }

    rows = malloc(ggml_nbytes(tensor));

    if (rows == NULL || tensor->type != GGML_TYPE_F32) {
        free(rows);
        return false;
    }

    ggml_backend_tensor_get(tensor, rows, 0, ggml_nbytes(tensor));

    for (i = SLICED_FREE_POSITIONS; i < tensor->ne[1]; i++) {
        norm = norms_of_row(rows + i * tensor->ne[0], tensor->ne[0]);
        run->whole->norms[at] = fmaxf(run->whole->norms[at], norm);
    }

    free(rows);

    return true;
}


/* Loads ggml's code from beside libllama, which would also look in the current
   folder. */
static int
norms_load_backend(char error[SLICED_ERROR_BYTES])
{
    char  folder[PATH_MAX];

    if (ggml_backend_reg_count() > 0) {
        return 0;
    }

    if (libllama_folder(folder) == 0) {
        ggml_backend_load_all_from_path(folder);
    }

    return ggml_backend_reg_count() > 0 ? 0
           : norms_fail(error, "no libggml-cpu-*.so beside libllama that this "
                        "processor can run");
}


static int
norms_open(norms_run_t *run, char error[SLICED_ERROR_BYTES])
{
    struct llama_model_params    model = llama_model_default_params();
    struct llama_context_params  context;

    model.use_extra_bufts = false;
    run->model = libllama_open(&run->libllama, model, run->whole->paths,
                               run->whole->npaths);

    if (run->model == NULL) {
        return norms_fail(error, "libllama cannot load the model: %.180s",
                          run->libllama.error);
    }

    context = libllama_context(&run->libllama, 1, NORMS_TOKENS, NORMS_TOKENS,
                               0);
    context.cb_eval = norms_on_tensor;
    context.cb_eval_user_data = run;
    run->context = llama_init_from_model(run->model, context);

    return run->context != NULL ? 0
           : norms_fail(error, "no context of %d tokens", NORMS_TOKENS);
}


/* Decodes the tokens, with logits of all rows, since the last layer leaves out
   rows without logits. */
static int
norms_decode(norms_run_t *run, char error[SLICED_ERROR_BYTES])
{
    int                 rc, i;
    struct llama_batch  batch;

    batch = llama_batch_init(NORMS_TOKENS, 0, 1);

    if (batch.token == NULL) {
        return norms_fail(error, "out of memory");
    }

    batch.n_tokens = NORMS_TOKENS;

    for (i = 0; i < NORMS_TOKENS; i++) {
        batch.token[i] = (llama_token) ((i * 7919 + 13)
                                        % (int64_t) run->whole->vocabulary);
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }

    rc = llama_decode(run->context, batch);
    llama_batch_free(batch);

    return rc == 0 ? 0
           : norms_fail(error, "libllama cannot compute with the model");
}


/* Checks that a norm was seen at each boundary, and is finite. */
static int
norms_check(const whole_t *whole, char error[SLICED_ERROR_BYTES])
{
    uint32_t  i;

    for (i = 0; i <= whole->layers; i++) {
        if (!(whole->norms[i] > 0) || !isfinite(whole->norms[i])) {
            return norms_fail(error, "the norm of rows before layer %u is %g; "
                              "without norms: --no-norms", i,
                              (double) whole->norms[i]);
        }
    }

    return 0;
}


int
norms_measure(whole_t *whole, atomic_int *is_stopping,
    char error[SLICED_ERROR_BYTES])
{
    int                 rc;
    void               *log_data;
    norms_run_t         run = { .whole = whole };
    ggml_log_callback   log;

    whole->norms = calloc(whole->layers + 1, sizeof(float));

    if (whole->norms == NULL) {
        return norms_fail(error, "out of memory");
    }

    llama_log_get(&log, &log_data);
    run.libllama.is_stopping = is_stopping;
    libllama_listen(&run.libllama);
    rc = norms_load_backend(error);

    if (rc == 0) {
        llama_backend_init();
        rc = norms_open(&run, error) == 0 && norms_decode(&run, error) == 0
             ? norms_check(whole, error) : -1;

        llama_free(run.context);
        llama_model_free(run.model);
        llama_backend_free();
    }

    llama_log_set(log, log_data);

    if (rc != 0 && atomic_load(is_stopping)) {
        error[0] = '\0';
    }

    return rc;
}
