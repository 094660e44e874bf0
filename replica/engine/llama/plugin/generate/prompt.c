
/*
 * Makes token ids of a job: the chat template and the tokenizer are libllama's,
 * and no ids are kept anywhere else.  A replica that takes a stream over
 * renders the prompt again; the hash shows whether the ids are the same.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


/* The whole conversation as text, to be freed; NULL: no template fits. */
static char *
prompt_render(const core_seq_t *seq, int32_t *len)
{
    size_t                      i, size;
    char                       *text;
    int32_t                     got;
    const char                 *template;
    const core_job_t           *job;
    struct llama_chat_message  *messages;

    job = seq->job;
    template = seq->generator->template;
    messages = calloc(job->nmessages + 1, sizeof(*messages));

    if (template == NULL || messages == NULL) {
        free(messages);
        return NULL;
    }

    for (size = 1024, i = 0; i < job->nmessages; i++) {
        messages[i].role = job->messages[i].role;
        messages[i].content = job->messages[i].text;
        size += 256 + strlen(job->messages[i].text);
    }

    for (text = NULL; /* void */; size = (size_t) got + 1) {
        free(text);
        text = size < INT32_MAX ? malloc(size) : NULL;

        if (text == NULL) {
            break;
        }

        got = llama_chat_apply_template(template, messages, job->nmessages,
                                        true, text, (int32_t) size);

        if (got >= 0 && (size_t) got <= size) {
            *len = got;
            break;
        }

        if (got < 0) {
            free(text);
            text = NULL;
            break;
        }
    }

    free(messages);

    return text;
}


/*
 * Tokenizes a text, unless it cannot fit: some MB take a second, in which
 * nothing else is decoded.
 */
static core_event_kind_t
prompt_tokenize(core_seq_t *seq, const char *text, int32_t len)
{
    int32_t  n, room;

    if ((uint64_t) len > (uint64_t) seq->generator->core.facts.context
                         * seq->generator->longest)
    {
        return CORE_CONTEXT;
    }

    room = len + 16;
    seq->ids = malloc((size_t) room * sizeof(llama_token));

    if (seq->ids == NULL) {
        return CORE_FAILED;
    }

    n = llama_tokenize(seq->generator->vocab, text, len, seq->ids, room, true,
                       true);

    if (n < 0) {
        return CORE_FAILED;
    }

    seq->nprompt = (uint32_t) n;

    return CORE_PROMPT;
}


static core_event_kind_t
prompt_copy_ids(core_seq_t *seq)
{
    size_t             i;
    const core_job_t  *job;

    job = seq->job;
    seq->ids = malloc((job->nids + 1) * sizeof(llama_token));

    if (seq->ids == NULL) {
        return CORE_FAILED;
    }

    for (i = 0; i < job->nids; i++) {
        seq->ids[i] = (llama_token) job->ids[i];
    }

    seq->nprompt = (uint32_t) job->nids;

    return CORE_PROMPT;
}


static core_event_kind_t
prompt_ids(core_seq_t *seq)
{
    char               *text;
    int32_t             len;
    const core_job_t   *job;
    core_event_kind_t   kind;

    job = seq->job;

    if (job->messages == NULL) {
        return job->text != NULL
               ? prompt_tokenize(seq, job->text, (int32_t) job->text_len)
               : prompt_copy_ids(seq);
    }

    text = prompt_render(seq, &len);

    if (text == NULL) {
        return CORE_NO_TEMPLATE;
    }

    kind = prompt_tokenize(seq, text, len);
    free(text);

    return kind;
}


/* Whether the ids of the request include some that are no tokens. */
static int
prompt_has_strangers(const core_seq_t *seq)
{
    size_t    i;
    uint32_t  n;

    n = seq->generator->room.n;

    for (i = 0; i < seq->nprompt; i++) {
        if ((uint32_t) seq->ids[i] >= n) {
            return 1;
        }
    }

    for (i = 0; i < seq->job->ndelivered; i++) {
        if (seq->job->delivered[i] >= n) {
            return 1;
        }
    }

    return 0;
}


/* Makes room for all ids of the text, and appends the delivered ones to the
   prompt. */
static int
prompt_complete(core_seq_t *seq)
{
    size_t             i;
    llama_token       *ids;
    const core_job_t  *job;

    job = seq->job;
    ids = realloc(seq->ids, (seq->generator->core.facts.context + 1)
                            * sizeof(llama_token));

    if (ids == NULL) {
        return -1;
    }

    seq->ids = ids;

    for (i = 0; i < job->ndelivered; i++) {
        ids[seq->nprompt + i] = (llama_token) job->delivered[i];
    }

    seq->nids = seq->nprompt + (uint32_t) job->ndelivered;

    return 0;
}


/* Whether max_tokens fit, or one token if no limit was given. */
static int
prompt_fits(const core_seq_t *seq)
{
    size_t  after;

    after = seq->job->max_tokens > 0 ? seq->job->max_tokens : 1;

    if (after < seq->job->ndelivered) {
        after = seq->job->ndelivered;
    }

    return seq->nprompt + after <= seq->generator->core.facts.context;
}


int
prompt_make(core_seq_t *seq, core_event_t *event)
{
    const core_job_t  *job;

    job = seq->job;
    memset(event, 0, sizeof(*event));
    event->kind = prompt_ids(seq);
    event->tokens = seq->nprompt;

    if (event->kind != CORE_PROMPT) {
        return -1;
    }

    event->hash = XXH3_64bits(seq->ids, seq->nprompt * sizeof(llama_token));
    seq->name = event->hash;

    if (seq->nprompt == 0 || prompt_has_strangers(seq)) {
        event->kind = CORE_BAD_PROMPT;

    } else if (job->prompt_tokens > 0
               && (job->prompt_tokens != seq->nprompt
                   || (job->prompt_hash != 0
                       && job->prompt_hash != event->hash)))
    {
        event->kind = CORE_OTHER_PROMPT;

    } else if (!prompt_fits(seq)) {
        event->kind = CORE_CONTEXT;

    } else if (prompt_complete(seq) != 0) {
        event->kind = CORE_FAILED;
    }

    return event->kind == CORE_PROMPT ? 0 : -1;
}
