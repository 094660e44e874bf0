
/*
 * A session: what is sent, and how it ends.
 *
 * A lost session is put into `lost`, and on_lost() is called from the loop (the
 * teller).  So no callback comes from within a call, and a broken connection is
 * closed before a new session is opened.
 */

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replica/shard/fleet/peer.h"
#include "shard.pb-c.h"


/* --- losses */

static void
link_uncount(link_session_t *s)
{
    if (s->shard != NULL) {
        fleet_count(s->shard, -1);
        s->shard = NULL;
    }
}


/* Makes a shard's text fit for a log line: printable, one line, short. */
static void
link_clean_text(char *text)
{
    for ( ; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7e) {
            *text = '?';
        }
    }
}


void
link_lose(link_session_t *s, shard_reason_t reason, const char *format, ...)
{
    va_list  args;

    if (s->state != LINK_OPENING && s->state != LINK_OPEN) {
        return;
    }

    va_start(args, format);
    vsnprintf(s->text, sizeof(s->text), format, args);
    va_end(args);
    link_clean_text(s->text);

    if (s->peer != NULL) {
        TAILQ_REMOVE(&s->peer->sessions, s, entry);
        s->peer = NULL;
    }

    link_uncount(s);
    s->state = LINK_LOST;
    s->reason = reason;
    TAILQ_INSERT_TAIL(&s->fleet->lost, s, entry);
    ev_feed_event(s->fleet->loop, &s->fleet->teller, EV_CUSTOM);
}


/* The shard broke the protocol: its stream is of no use any more. */
void
link_break(link_session_t *s, shard_reason_t reason, const char *text)
{
    if (s->line != NULL) {
        line_reset(s->line);
    }

    link_lose(s, reason, "%s", text);
}


/* Calls on_lost() for sessions that are lost now; those that are lost by these
   callbacks come later. */
static void
link_on_teller(struct ev_loop *loop, ev_prepare *w, int revents)
{
    int              is_last;
    fleet_t         *f;
    link_session_t  *s, *last;

    f = w->data;
    last = TAILQ_LAST(&f->lost, fleet_sessions_s);

    while ((s = TAILQ_FIRST(&f->lost)) != NULL) {
        TAILQ_REMOVE(&f->lost, s, entry);
        is_last = s == last;
        s->state = LINK_TOLD;
        s->is_calling = 1;
        s->callbacks->on_lost(s->data, s->reason, s->text);
        s->is_calling = 0;

        if (s->state == LINK_CLOSED) {
            link_free(s);
        }

        if (is_last) {
            break;
        }
    }

    if (!TAILQ_EMPTY(&f->lost)) {
        ev_feed_event(loop, w, EV_CUSTOM);
    }
}


void
link_init(fleet_t *f)
{
    ev_prepare_init(&f->teller, link_on_teller);
    f->teller.data = f;
}


void
link_done(fleet_t *f)
{
    ev_clear_pending(f->loop, &f->teller);
}


void
link_free(link_session_t *s)
{
    free(s->values);
    free(s);
}


/* --- what is sent */

static int
link_send(link_session_t *s, Llmgateway__Shard__Request *request)
{
    uint8_t  *to;

    to = line_reserve(s->line,
                      llmgateway__shard__request__get_packed_size(request));

    if (to == NULL) {
        link_break(s, SHARD_OUT_OF_MEMORY, "out of memory");
        return -1;
    }

    llmgateway__shard__request__pack(request, to);

    return 0;
}


static void
link_send_open(link_session_t *s, const fleet_hop_t *hop, uint32_t rows)
{
    uint8_t                     token[SHARD_TOKEN_BYTES];
    fleet_t                    *f;
    shard_claim_t               claim;
    Llmgateway__Shard__Open     open = LLMGATEWAY__SHARD__OPEN__INIT;
    Llmgateway__Shard__Request  request = LLMGATEWAY__SHARD__REQUEST__INIT;

    f = s->fleet;
    open.session = s->id;
    open.model = (char *) f->want.model;
    open.weights_id.data = f->want.weights_id;
    open.weights_id.len = sizeof(f->want.weights_id);
    open.first_layer = hop->first;
    open.last_layer = hop->last;
    open.dtype = f->options.dtype == TENSOR_FP16
                 ? LLMGATEWAY__SHARD__DTYPE__FP16
                 : LLMGATEWAY__SHARD__DTYPE__FP32;
    open.numerics_id = (char *) f->want.numerics;
    open.caller = (char *) f->options.id;
    open.rows = rows;

    if (f->options.key != NULL) {
        claim.caller = f->options.id;
        claim.session = s->id;
        claim.shard = hop->id;
        claim.model = f->want.model;
        shard_key_sign(f->options.key, &claim, (uint64_t) time(NULL), token);
        open.token.data = token;
        open.token.len = sizeof(token);
    }

    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_OPEN;
    request.open = &open;
    (void) link_send(s, &request);
}


link_session_t *
link_open(fleet_t *f, const fleet_hop_t *hop, uint32_t rows,
    const link_callbacks_t *callbacks, void *data)
{
    fleet_shard_t   *shard;
    link_session_t  *s;
    shard_reason_t   reason;

    s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }

    s->fleet = f;
    s->callbacks = callbacks;
    s->data = data;
    s->is_last = hop->last == f->want.layers - 1;

    do {
        s->id = ++f->last_session;
    } while (s->id == 0);

    shard = fleet_shard_of(f, hop->key);

    if (shard == NULL) {
        link_lose(s, SHARD_FAILED, "the shard's process is gone");
        return s;
    }

    s->shard = shard;
    fleet_count(shard, 1);
    reason = peer_call(f, shard, s, &s->line);

    if (reason != SHARD_OK) {
        link_lose(s, reason, "no stream to the shard");
        return s;
    }

    s->peer = s->line->peer;
    link_send_open(s, hop, rows);

    return s;
}


static int
link_send_step(link_session_t *s, const link_wanted_t *wanted,
    const float *values)
{
    uint32_t                    chunk, chunks;
    uint64_t                    bytes;
    fleet_t                    *f;
    Llmgateway__Shard__Step     step = LLMGATEWAY__SHARD__STEP__INIT;
    Llmgateway__Shard__Request  request = LLMGATEWAY__SHARD__REQUEST__INIT;

    f = s->fleet;
    bytes = tensor_bytes(wanted->rows, f->want.width, f->options.dtype);
    chunks = tensor_chunks(bytes);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_STEP;
    request.step = &step;
    step.session = s->id;
    step.position = wanted->position;
    step.rows = wanted->rows;
    step.logits_rows = wanted->logits_rows;
    step.chunks = chunks;
    step.data.data = f->chunk;

    for (chunk = 0; chunk < chunks; chunk++) {
        tensor_write(f->chunk, values, bytes, chunk, f->options.dtype);
        step.chunk = chunk;
        step.data.len = tensor_chunk_bytes(bytes, chunk);

        if (link_send(s, &request) != 0) {
            return -1;
        }
    }

    return 0;
}


void
link_step(link_session_t *s, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const float *values)
{
    link_wanted_t  *wanted;

    if (s->state == LINK_LOST) {
        return;
    }

    assert(s->state == LINK_OPEN && s->nsteps < SHARD_STEPS_MAX
           && rows >= 1 && rows <= s->max_rows
           && logits_rows <= (s->is_last ? rows : 0));

    wanted = &s->steps[(s->oldest + s->nsteps) % SHARD_STEPS_MAX];
    wanted->position = position;
    wanted->rows = rows;
    wanted->logits_rows = logits_rows;
    wanted->is_started = 0;

    if (link_send_step(s, wanted, values) == 0) {
        s->nsteps++;
    }
}


static void
link_send_close(link_session_t *s)
{
    line_t                      *line;
    Llmgateway__Shard__Close     close = LLMGATEWAY__SHARD__CLOSE__INIT;
    Llmgateway__Shard__Request   request = LLMGATEWAY__SHARD__REQUEST__INIT;

    close.session = s->id;
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE;
    request.close = &close;
    line = s->line;

    if (link_send(s, &request) == 0) {
        line_leave(line);
    }
}


void
link_close(link_session_t *s)
{
    if (s->line != NULL) {
        link_send_close(s);
    }

    if (s->state == LINK_LOST) {
        TAILQ_REMOVE(&s->fleet->lost, s, entry);

    } else if (s->peer != NULL) {
        TAILQ_REMOVE(&s->peer->sessions, s, entry);
    }

    link_uncount(s);
    s->state = LINK_CLOSED;

    if (!s->is_calling) {
        link_free(s);
    }
}
