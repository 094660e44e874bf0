
/*
 * Bytes as what happens to a shard: messages of four clients, raw or nearly
 * right, steps that begin and end, time that passes, and streams that end.
 * Whatever happens, the limits hold, and at the end nothing is left.
 */

#include <assert.h>
#include <stdint.h>

#include "t/unit/replica/shard/serve/serve_scene.h"


#define FUZZ_CLIENTS   4
#define FUZZ_SESSIONS  2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

typedef struct {
    const uint8_t  *at;
    const uint8_t  *end;
} fuzz_input_t;

typedef struct {
    scene_t          scene;
    scene_client_t   clients[FUZZ_CLIENTS];
    uint32_t         positions[FUZZ_CLIENTS];
} fuzz_t;

/* An action in the input: a number of this list, a client, its arguments. */
enum {
    FUZZ_RAW, FUZZ_OPEN, FUZZ_STEP, FUZZ_CLOSE, FUZZ_START, FUZZ_DONE,
    FUZZ_FAIL, FUZZ_TIME, FUZZ_FULL, FUZZ_DRAINED, FUZZ_END, FUZZ_STREAM,
    FUZZ_STATE, FUZZ_BROKEN, FUZZ_ACTS
};


static uint8_t
fuzz_byte(fuzz_input_t *in)
{
    return in->at < in->end ? *in->at++ : 0;
}


static void
fuzz_raw(fuzz_input_t *in, scene_client_t *c)
{
    size_t  n;

    n = fuzz_byte(in);
    n = n < (size_t) (in->end - in->at) ? n : (size_t) (in->end - in->at);
    session_message(c->session, in->at, n);
    in->at += n;
}


/* Mostly an Open that this shard accepts, so that later code is
   reached, too. */
static void
fuzz_open(fuzz_input_t *in, scene_client_t *c)
{
    uint8_t                  flags;
    Llmgateway__Shard__Open  open = client_request();

    flags = fuzz_byte(in);
    open.last_layer = flags & 1 ? 7 : 4 + (flags >> 6);
    open.session = flags & 2 ? 9 : fuzz_byte(in);
    open.first_layer = flags & 4 ? 4 : fuzz_byte(in);
    open.rows = flags & 8 ? 0 : fuzz_byte(in);
    open.weights_id.len = flags & 16 ? 32 : fuzz_byte(in) % 33;
    open.dtype = flags & 32 ? 0 : fuzz_byte(in) % 3;
    client_ask(c, &open);
}


static void
fuzz_step(fuzz_input_t *in, scene_client_t *c, uint32_t *position)
{
    uint8_t                   flags;
    Llmgateway__Shard__Step   step = LLMGATEWAY__SHARD__STEP__INIT;

    static uint8_t  values[SHARD_CHUNK_BYTES];

    flags = fuzz_byte(in);
    step.session = flags & 1 ? 9 : fuzz_byte(in);
    step.rows = flags & 2 ? 1 + fuzz_byte(in) % 32 : fuzz_byte(in) << 18;
    step.position = flags & 4 ? *position : fuzz_byte(in);
    step.logits_rows = flags & 8 ? 0 : fuzz_byte(in) % 34;
    step.chunks = flags & 16 ? 1 : fuzz_byte(in);
    step.chunk = flags & 32 ? 0 : fuzz_byte(in);
    step.data.data = values;
    step.data.len = flags & 64
                    ? tensor_chunk_bytes(tensor_bytes(step.rows, SCENE_WIDTH,
                                                      TENSOR_FP32), 0)
                    : (size_t) fuzz_byte(in) << 6;
    values[3] = flags & 128 ? 0 : fuzz_byte(in);
    client_chunk(c, &step);
    *position = step.position + step.rows;
}


static void
fuzz_close(fuzz_input_t *in, scene_client_t *c)
{
    Llmgateway__Shard__Close    close = LLMGATEWAY__SHARD__CLOSE__INIT;
    Llmgateway__Shard__Request  request = LLMGATEWAY__SHARD__REQUEST__INIT;

    close.session = fuzz_byte(in);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE;
    request.close = &close;
    client_say(c, &request);
}


static void
fuzz_shard(fuzz_input_t *in, fuzz_t *f, unsigned act)
{
    scene_t  *s;

    s = &f->scene;

    switch (act) {
    case FUZZ_START:
        scene_start(s);
        break;
    case FUZZ_DONE:
        scene_compute(s, SHARD_STEP_DONE);
        break;
    case FUZZ_FAIL:
        scene_compute(s, fuzz_byte(in) % (SHARD_STEP_FAILED + 1));
        break;
    case FUZZ_TIME:
        scene_tick(s, (uint64_t) fuzz_byte(in) << fuzz_byte(in) % 14);
        break;
    case FUZZ_STATE:
        if (s->core.nsteps == 0 && serve_sessions(s->serve) == 0) {
            scene_become(s, fuzz_byte(in) % (CORE_READY + 1));
        } else if (s->core.state == CORE_LOADING) {
            scene_become(s, CORE_READY);
        }
        break;
    default:
        serve_drain(s->serve, fuzz_byte(in) & 1);
    }
}


static void
fuzz_client(fuzz_input_t *in, fuzz_t *f, unsigned act)
{
    unsigned         which;
    scene_client_t  *c;

    which = fuzz_byte(in) % FUZZ_CLIENTS;
    c = &f->clients[which];

    switch (act) {
    case FUZZ_RAW:
        fuzz_raw(in, c);
        break;
    case FUZZ_OPEN:
        fuzz_open(in, c);
        f->positions[which] = 0;
        break;
    case FUZZ_STEP:
        fuzz_step(in, c, &f->positions[which]);
        break;
    case FUZZ_CLOSE:
        fuzz_close(in, c);
        break;
    case FUZZ_FULL:
        c->queued = (size_t) fuzz_byte(in) << 20;
        break;
    case FUZZ_DRAINED:
        c->queued = 0;
        session_drained(c->session);
        break;
    case FUZZ_END:
        session_closing(c->session, fuzz_byte(in) % 17, "wrong");
        break;
    case FUZZ_BROKEN:
        c->is_broken = 1;
        break;
    default:
        client_close(c);
        client_open(&f->scene, c);
    }
}


static void
fuzz_act(fuzz_input_t *in, fuzz_t *f)
{
    unsigned  act;

    act = fuzz_byte(in) % (FUZZ_ACTS + 1);

    if ((act >= FUZZ_START && act <= FUZZ_TIME) || act == FUZZ_STATE
        || act == FUZZ_ACTS)
    {
        fuzz_shard(in, f, act);

    } else {
        fuzz_client(in, f, act);
    }

    assert(serve_sessions(f->scene.serve) <= FUZZ_SESSIONS);
    assert(f->scene.core.nsteps <= SCENE_STEPS);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    int            i;
    fuzz_t         f;
    fuzz_input_t   in = { data, data + len };

    static const serve_options_t  options = {
        .id = "s1", .sessions = FUZZ_SESSIONS, .idle_ms = 600000,
        .load_timeout_ms = 60000, .max_memory = 1500000
    };

    memset(&f, 0, sizeof(f));
    scene_init(&f.scene, &options);

    if (fuzz_byte(&in) & 1) {
        scene_ready(&f.scene);
    }

    for (i = 0; i < FUZZ_CLIENTS; i++) {
        client_open(&f.scene, &f.clients[i]);
    }

    while (in.at < in.end && f.scene.core.nsteps < SCENE_STEPS / 2) {
        fuzz_act(&in, &f);
    }

    for (i = 0; i < FUZZ_CLIENTS; i++) {
        client_close(&f.clients[i]);
    }

    assert(serve_sessions(f.scene.serve) == 0);
    scene_compute(&f.scene, SHARD_STEP_DONE);
    assert(serve_tensor_bytes(f.scene.serve) == 0);
    scene_done(&f.scene);

    return 0;
}
