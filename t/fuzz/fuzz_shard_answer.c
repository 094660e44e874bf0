
/*
 * Bytes as what a shard answers, raw or nearly right, to a session of the
 * orchestrator's side.  Results come in the shape and the order of the steps,
 * or not at all; a session is lost at most once, and nothing comes after that.
 *
 * Of the fleet only sessions are linked; connections are the functions below.
 */

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/fleet/peer.h"
#include "shard.pb-c.h"


#define FUZZ_WIDTH       16
#define FUZZ_VOCABULARY  40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

typedef struct {
    const uint8_t  *at;
    const uint8_t  *end;
} fuzz_input_t;

typedef struct {
    fleet_t           fleet;
    fleet_shard_t     shard;
    peer_t            peer;
    line_t            line;
    link_session_t   *session;
    uint32_t          rows[SHARD_STEPS_MAX];    /* of steps from `first` on */
    uint32_t          positions[SHARD_STEPS_MAX];
    uint32_t          first;
    uint32_t          n;
    uint32_t          started;                  /* how many of the n steps */
    uint32_t          position;
    int               is_opened;
    int               is_lost;
    int               is_last;
    int               closes;                   /* closes in a callback */
    uint8_t           sent[SHARD_MESSAGE_BYTES];
} fuzz_t;

static fuzz_t  fuzz;


/* --- in place of fleet.c and peer.c */

uint64_t
fleet_now_ms(void)
{
    return 1000;
}


fleet_shard_t *
fleet_shard_of(const fleet_t *fleet, uint64_t key)
{
    return key == fuzz.shard.key ? &fuzz.shard : NULL;
}


void
fleet_count(fleet_shard_t *shard, int more)
{
    assert(more > 0 || shard->sessions > 0);
    shard->sessions += (uint32_t) more;
}


shard_reason_t
peer_call(fleet_t *fleet, fleet_shard_t *shard, link_session_t *session,
    line_t **line)
{
    fuzz.line.peer = &fuzz.peer;
    fuzz.line.session = session;
    fuzz.line.reason[0] = '\0';
    TAILQ_INSERT_TAIL(&fuzz.peer.sessions, session, entry);
    *line = &fuzz.line;

    return SHARD_OK;
}


uint8_t *
line_reserve(line_t *line, size_t len)
{
    assert(len <= sizeof(fuzz.sent));

    return fuzz.sent;
}


void
line_leave(line_t *line)
{
    line->session->line = NULL;
    line->session = NULL;
}


void
line_reset(line_t *line)
{
    line_leave(line);
}


/* --- callbacks of a session */

static void
fuzz_close(void)
{
    link_close(fuzz.session);
    fuzz.session = NULL;
}


static void
fuzz_on_opened(void *data, uint32_t max_rows)
{
    assert(!fuzz.is_opened && !fuzz.is_lost);
    assert(max_rows > 0 && max_rows <= SHARD_ROWS_MAX);
    fuzz.is_opened = 1;

    if (fuzz.closes & 1) {
        fuzz_close();
    }
}


static void
fuzz_on_started(void *data, uint32_t position)
{
    assert(fuzz.is_opened && !fuzz.is_lost && fuzz.started < fuzz.n);
    assert(position == fuzz.positions[(fuzz.first + fuzz.started)
                                      % SHARD_STEPS_MAX]);
    fuzz.started++;

    if (fuzz.closes & 2) {
        fuzz_close();
    }
}


static void
fuzz_on_result(void *data, uint32_t position, uint32_t rows, int is_logits,
    const float *values)
{
    float     sum;
    uint32_t  i;

    assert(!fuzz.is_lost && fuzz.started > 0);
    assert(position == fuzz.positions[fuzz.first]);
    assert(rows == (fuzz.is_last ? 1 : fuzz.rows[fuzz.first]));
    assert(is_logits == fuzz.is_last);

    for (i = 0, sum = 0; i < rows * (is_logits ? FUZZ_VOCABULARY : FUZZ_WIDTH);
         i++)
    {
        sum += values[i];                       /* the values can be read */
    }

    (void) sum;
    fuzz.first = (fuzz.first + 1) % SHARD_STEPS_MAX;
    fuzz.n--;
    fuzz.started--;

    if (fuzz.closes & 4) {
        fuzz_close();
    }
}


static void
fuzz_on_lost(void *data, shard_reason_t reason, const char *text)
{
    assert(!fuzz.is_lost);
    assert(reason > SHARD_OK && reason < SHARD_REASONS_COUNT);
    assert(strlen(text) < PEER_TEXT_BYTES);
    fuzz.is_lost = 1;

    if (fuzz.closes & 8) {
        fuzz_close();
    }
}


/* --- messages of a shard */

static uint8_t
fuzz_byte(fuzz_input_t *in)
{
    return in->at < in->end ? *in->at++ : 0;
}


static void
fuzz_hear(const Llmgateway__Shard__Reply *reply)
{
    size_t    len;
    uint8_t  *bytes;

    len = llmgateway__shard__reply__get_packed_size(reply);
    bytes = malloc(len + 1);
    llmgateway__shard__reply__pack(reply, bytes);
    answer_on_message(fuzz.session, bytes, len);
    free(bytes);
}


static void
fuzz_opened(fuzz_input_t *in, Llmgateway__Shard__Reply *reply)
{
    uint8_t                     flags;
    Llmgateway__Shard__Opened   opened = LLMGATEWAY__SHARD__OPENED__INIT;

    flags = fuzz_byte(in);
    opened.session = fuzz.session->id + (flags & 1);
    opened.context = flags & 2 ? fuzz_byte(in) : 100;
    opened.max_rows = flags & 4 ? fuzz_byte(in) : SHARD_ROWS_MAX;
    opened.width = flags & 8 ? fuzz_byte(in) : FUZZ_WIDTH;
    opened.vocabulary = flags & 16 ? fuzz_byte(in) : FUZZ_VOCABULARY;
    reply->kind_case = LLMGATEWAY__SHARD__REPLY__KIND_OPENED;
    reply->opened = &opened;
    fuzz_hear(reply);
}


static void
fuzz_started(fuzz_input_t *in, Llmgateway__Shard__Reply *reply)
{
    Llmgateway__Shard__Started  started = LLMGATEWAY__SHARD__STARTED__INIT;

    started.session = fuzz.session->id;
    started.position = fuzz.positions[(fuzz.first + fuzz.started)
                                      % SHARD_STEPS_MAX]
                       + fuzz_byte(in) / 128;
    reply->kind_case = LLMGATEWAY__SHARD__REPLY__KIND_STARTED;
    reply->started = &started;
    fuzz_hear(reply);
}


static void
fuzz_result(fuzz_input_t *in, Llmgateway__Shard__Reply *reply)
{
    uint8_t                    flags;
    Llmgateway__Shard__Result  result = LLMGATEWAY__SHARD__RESULT__INIT;

    static uint8_t  values[SHARD_CHUNK_BYTES];

    flags = fuzz_byte(in);
    result.session = fuzz.session->id;
    result.position = fuzz.positions[fuzz.first] + (flags & 1);
    result.rows = flags & 2 ? fuzz_byte(in)
                  : fuzz.is_last ? 1 : fuzz.rows[fuzz.first];
    result.is_logits = flags & 4 ? !fuzz.is_last : fuzz.is_last;
    result.chunk = flags & 8 ? fuzz_byte(in) : 0;
    result.chunks = flags & 16 ? fuzz_byte(in) : 1;
    result.data.data = values;
    result.data.len = flags & 32 ? (size_t) fuzz_byte(in) * 8
                      : result.rows * sizeof(float)
                        * (fuzz.is_last ? FUZZ_VOCABULARY : FUZZ_WIDTH);
    reply->kind_case = LLMGATEWAY__SHARD__REPLY__KIND_RESULT;
    reply->result = &result;
    fuzz_hear(reply);
}


static void
fuzz_refused(fuzz_input_t *in, Llmgateway__Shard__Reply *reply)
{
    char                        text[200];
    Llmgateway__Shard__Refused  refused = LLMGATEWAY__SHARD__REFUSED__INIT;

    memset(text, fuzz_byte(in), sizeof(text) - 1);
    text[fuzz_byte(in) % sizeof(text)] = '\0';
    text[sizeof(text) - 1] = '\0';
    refused.session = fuzz.session->id;
    refused.reason = (char *) shard_reason_name(fuzz_byte(in)
                                                % SHARD_REASONS_COUNT);
    refused.text = text;
    reply->kind_case = LLMGATEWAY__SHARD__REPLY__KIND_REFUSED;
    reply->refused = &refused;
    fuzz_hear(reply);
}


static void
fuzz_raw(fuzz_input_t *in)
{
    size_t  n;

    n = fuzz_byte(in);
    n = n < (size_t) (in->end - in->at) ? n : (size_t) (in->end - in->at);
    answer_on_message(fuzz.session, in->at, n);
    in->at += n;
}


static void
fuzz_shard_says(fuzz_input_t *in, unsigned act)
{
    Llmgateway__Shard__Reply  reply = LLMGATEWAY__SHARD__REPLY__INIT;

    switch (act) {
    case 0:
        fuzz_raw(in);
        break;
    case 1:
        fuzz_opened(in, &reply);
        break;
    case 2:
        fuzz_started(in, &reply);
        break;
    case 3:
        fuzz_result(in, &reply);
        break;
    case 4:
        fuzz_refused(in, &reply);
        break;
    default:
        link_ended(fuzz.session, fuzz_byte(in) % 17, "wrong");
        line_leave(&fuzz.line);
    }
}


/* --- what the orchestrator does */

static void
fuzz_step(fuzz_input_t *in)
{
    uint32_t  at, rows;

    static float  values[SHARD_ROWS_MAX * FUZZ_WIDTH];

    if (fuzz.session->state != LINK_OPEN || fuzz.n == SHARD_STEPS_MAX) {
        return;
    }

    rows = 1 + fuzz_byte(in) % fuzz.session->max_rows;
    at = (fuzz.first + fuzz.n) % SHARD_STEPS_MAX;
    fuzz.rows[at] = rows;
    fuzz.positions[at] = fuzz.position;
    fuzz.n++;
    link_step(fuzz.session, fuzz.position, rows, (uint32_t) fuzz.is_last,
              values);
    fuzz.position += rows;
    assert(fuzz.session->nsteps == fuzz.n);
}


static void
fuzz_open(fuzz_input_t *in)
{
    fleet_hop_t  hop = { .id = "s1", .first = 2 };

    static const link_callbacks_t  callbacks = {
        fuzz_on_opened, fuzz_on_started, fuzz_on_result, fuzz_on_lost
    };

    hop.key = fuzz.shard.key;
    fuzz.is_last = fuzz_byte(in) & 1;
    fuzz.closes = fuzz_byte(in);
    fuzz.closes = fuzz.closes < 16 ? fuzz.closes : 0;
    hop.last = fuzz.is_last ? 7 : 5;
    fuzz.is_opened = 0;
    fuzz.is_lost = 0;
    fuzz.first = 0;
    fuzz.n = 0;
    fuzz.started = 0;
    fuzz.position = 0;
    fuzz.session = link_open(&fuzz.fleet, &hop, 0, &callbacks, NULL);
}


static void
fuzz_init(struct ev_loop *loop)
{
    memset(&fuzz, 0, sizeof(fuzz));
    fuzz.fleet.loop = loop;
    fuzz.fleet.want.model = "m";
    fuzz.fleet.want.numerics = "n1";
    fuzz.fleet.want.layers = 8;
    fuzz.fleet.want.width = FUZZ_WIDTH;
    fuzz.fleet.want.vocabulary = FUZZ_VOCABULARY;
    fuzz.fleet.options.id = "o1";
    fuzz.fleet.chunk = malloc(SHARD_CHUNK_BYTES);
    fuzz.shard.key = 5;
    TAILQ_INIT(&fuzz.fleet.lost);
    TAILQ_INIT(&fuzz.peer.sessions);
    link_init(&fuzz.fleet);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    unsigned       act;
    fuzz_input_t   in = { data, data + len };

    static struct ev_loop  *loop;

    loop = loop != NULL ? loop : ev_loop_new(EVFLAG_AUTO);
    fuzz_init(loop);

    while (in.at < in.end) {

        if (fuzz.session == NULL) {
            fuzz_open(&in);
        }

        act = fuzz_byte(&in) % 9;

        if (act < 6 && fuzz.session->line != NULL) {
            fuzz_shard_says(&in, act);

        } else if (act == 8) {
            fuzz_close();

        } else {
            fuzz_step(&in);
        }

        ev_invoke_pending(loop);
    }

    if (fuzz.session != NULL) {
        fuzz_close();
    }

    assert(fuzz.shard.sessions == 0);
    assert(TAILQ_EMPTY(&fuzz.fleet.lost) && TAILQ_EMPTY(&fuzz.peer.sessions));
    link_done(&fuzz.fleet);
    free(fuzz.fleet.chunk);

    return 0;
}
