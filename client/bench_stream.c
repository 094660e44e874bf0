
/*
 * One stream.
 *
 * Each token is compared with the one that the simulated engine generates at
 * this index, which shows tokens that are lost, repeated, or another stream's.
 * The first error is the stream's outcome.  It is counted once (`is_reported`),
 * and ends the stream.
 *
 *   start -> on_message: decode, check, record ... -> on_end -> on_close
 *                  |                                   |           |
 *                  '--> wrong: counted, reset          '-> counted '-> idle
 *
 * A token costs no allocation: protobuf-c takes its memory from an arena that
 * the next message overwrites.
 */

#include <stdio.h>
#include <string.h>

#include "client/bench_inner.h"
#include "common/grpc/asker.h"
#include "common/os/mono.h"
#include "common/sim_token.h"
#include "llmgateway.pb-c.h"


#define BENCH_STREAM_CANCEL  8      /* RFC 9113, CANCEL */


/* --- the arena */

static void *
bench_stream_alloc(void *data, size_t size)
{
    void           *p;
    bench_arena_t  *arena;

    arena = data;
    size = (size + 15) & ~(size_t) 15;

    if (size > sizeof(arena->bytes) - arena->used) {
        return NULL;
    }

    p = (char *) arena->bytes + arena->used;
    arena->used += size;

    return p;
}


static void
bench_stream_free(void *data, void *p)
{
}


void
bench_stream_init(bench_t *bench)
{
    bench->arena.allocator.alloc = bench_stream_alloc;
    bench->arena.allocator.free = bench_stream_free;
    bench->arena.allocator.allocator_data = &bench->arena;
    bench->is_generate = strcmp(bench->options.method, "generate") == 0;
}


/* --- outcomes */

static int
bench_stream_is_counted(const bench_t *bench)
{
    return bench->phase == BENCH_MEASURING;
}


void
bench_stream_fail(bench_slot_t *slot, bench_tally_class_t class,
    const char *code, const char *reason)
{
    bench_t  *bench;

    bench = slot->conn->bench;

    if (slot->is_reported) {
        return;
    }

    slot->is_reported = 1;
    bench->nfailed++;
    bench_tally_add(&bench->tally, class, code, reason);

    if (!bench_stream_is_counted(bench)) {
        return;
    }

    bench->counts.failed++;

    if (slot->tokens == 0) {
        histogram_record(&bench->counts.refusal,
                         mono_ns() - slot->due_ns);
    }
}


void
bench_stream_succeed(bench_slot_t *slot)
{
    bench_t  *bench;

    bench = slot->conn->bench;
    slot->is_reported = 1;

    if (bench_stream_is_counted(bench)) {
        bench->counts.ok++;
        histogram_record(&bench->counts.total, mono_ns() - slot->due_ns);
    }
}


void
bench_stream_idle(bench_slot_t *slot)
{
    bench_t  *bench;

    bench = slot->conn->bench;
    bench->nrunning--;
    bench_idle_push(&bench->idle, slot);
    bench_conn_unpark(slot->conn);
    pace_look(&bench->pace);
}


/* --- tokens */

static int
bench_stream_decode(bench_t *bench, const uint8_t *data, size_t len,
    bench_token_t *token)
{
    Llmgateway__InferResponse     *infer;
    Llmgateway__GenerateResponse  *generate;

    bench->arena.used = 0;

    if (bench->is_generate) {
        generate = llmgateway__generate_response__unpack(
                       &bench->arena.allocator, len, data);

        if (generate == NULL) {
            return -1;
        }

        token->text = generate->token;
        token->is_final = generate->is_final;
        token->replica.len = 0;
        token->replica.data = NULL;
        return 0;
    }

    infer = llmgateway__infer_response__unpack(&bench->arena.allocator, len,
                                               data);

    if (infer == NULL) {
        return -1;
    }

    token->text = infer->token;
    token->is_final = infer->is_final;
    token->replica = infer->replica_id;

    return 0;
}


static int
bench_stream_is_token(const bench_slot_t *slot, const bench_token_t *token,
    int32_t index)
{
    char    text[SIM_TOKEN_BYTES];
    size_t  len;

    if (index < 0) {
        return 0;
    }

    len = sim_token(slot->prompt_hash, index, text);

    return len == token->text.len && memcmp(text, token->text.data, len) == 0;
}


const char *
bench_stream_check_text(const bench_slot_t *slot, const bench_token_t *token)
{
    const bench_options_t  *o;

    o = &slot->conn->bench->options;

    if (slot->is_final || slot->tokens >= o->max_tokens) {
        return "extra";
    }

    if (!o->is_any_text && !bench_stream_is_token(slot, token, slot->tokens)) {
        return bench_stream_is_token(slot, token, slot->tokens - 1)
                   ? "doubled"
               : bench_stream_is_token(slot, token, slot->tokens + 1)
                   ? "lost" : "wrong";
    }

    return NULL;
}


static const char *
bench_stream_check(const bench_slot_t *slot, const bench_token_t *token)
{
    int64_t      left;
    const char  *wrong;

    wrong = bench_stream_check_text(slot, token);
    left = slot->conn->bench->options.max_tokens - 1 - slot->tokens;

    if (wrong == NULL && token->is_final != (left == 0)) {
        wrong = token->is_final ? "final too early" : "final missing";
    }

    return wrong;
}


/* Whether the token is from another replica than the token before it. */
static int
bench_stream_changes_replica(bench_slot_t *slot, const bench_token_t *token)
{
    size_t  len;

    len = token->replica.len;
    len = len < sizeof(slot->replica) ? len : sizeof(slot->replica);

    if (len == 0
        || (len == slot->replica_len
            && memcmp(slot->replica, token->replica.data, len) == 0))
    {
        return 0;
    }

    slot->replica_len = (uint8_t) len;
    memcpy(slot->replica, token->replica.data, len);

    return slot->tokens > 0;
}


/*
 * Records how late a token is, compared with a gateway and a replica that need
 * no time.
 */
static void
bench_stream_record_lag(bench_slot_t *slot, uint64_t now_ns)
{
    uint64_t                due_ns;
    bench_t                *bench;
    const bench_options_t  *o;

    bench = slot->conn->bench;
    o = &bench->options;

    if (o->token_delay_ms == 0) {
        return;
    }

    due_ns = slot->due_ns
             + (o->first_token_delay_ms > 0 ? o->first_token_delay_ms
                                            : o->token_delay_ms) * BENCH_NS_MS
             + o->token_delay_ms * BENCH_NS_MS * (uint64_t) slot->tokens;

    histogram_record(&bench->counts.lag,
                     now_ns > due_ns ? now_ns - due_ns : 0);
}


void
bench_stream_record(bench_slot_t *slot, const bench_token_t *token)
{
    int              is_takeover;
    bench_t         *bench;
    uint64_t         now_ns;
    bench_counts_t  *counts;

    bench = slot->conn->bench;
    counts = &bench->counts;
    now_ns = mono_ns();
    is_takeover = bench_stream_changes_replica(slot, token);

    if (bench_stream_is_counted(bench)) {
        counts->tokens++;
        bench_stream_record_lag(slot, now_ns);

        if (slot->tokens == 0) {
            histogram_record(&counts->first_token, now_ns - slot->due_ns);

        } else {
            histogram_record(&counts->gap, now_ns - slot->last_ns);
        }

        if (is_takeover) {
            counts->takeovers++;
            histogram_record(&counts->takeover, now_ns - slot->last_ns);
        }
    }

    slot->last_ns = now_ns;
    slot->tokens++;
    slot->is_final = token->is_final != 0;
}


/* --- callbacks */

static void
bench_stream_on_field(llmgw_grpc_stream_t *stream, const char *name,
    size_t name_len, const char *value, size_t value_len, int is_trailer)
{
    bench_slot_t  *slot;

    static const char  reason[] = "llmgw-reason";

    if (name_len == sizeof(reason) - 1 && memcmp(name, reason, name_len) == 0)
    {
        slot = llmgw_grpc_stream_data(stream);
        snprintf(slot->reason, sizeof(slot->reason), "%.*s", (int) value_len,
                 value);
    }
}


static void
bench_stream_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    const char     *wrong;
    bench_slot_t   *slot;
    bench_token_t   token;

    slot = llmgw_grpc_stream_data(stream);
    (void) llmgw_grpc_stream_consume(stream, wire_bytes);

    wrong = "malformed";

    if (bench_stream_decode(slot->conn->bench, data, len, &token) == 0) {
        wrong = bench_stream_check(slot, &token);
    }

    if (wrong != NULL) {
        bench_stream_fail(slot, BENCH_TALLY_TOKENS, wrong, "");
        llmgw_grpc_stream_reset(stream, BENCH_STREAM_CANCEL);
        return;
    }

    bench_stream_record(slot, &token);
}


static void
bench_stream_on_end(llmgw_grpc_stream_t *stream, int status,
    const char *message)
{
    bench_slot_t  *slot;

    slot = llmgw_grpc_stream_data(stream);

    if (status != LLMGW_GRPC_OK) {
        bench_stream_fail(slot, BENCH_TALLY_STATUS,
                          llmgw_grpc_status_name(status), slot->reason);

    } else if (!slot->is_final) {
        bench_stream_fail(slot, BENCH_TALLY_TOKENS, "final missing", "");

    } else if (!slot->is_reported) {
        bench_stream_succeed(slot);
    }
}


static void
bench_stream_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    char           code[32];
    bench_t       *bench;
    bench_slot_t  *slot;

    slot = llmgw_grpc_stream_data(stream);
    bench = slot->conn->bench;

    slot->stream = NULL;

    if (bench->phase == BENCH_OVER) {
        bench->nrunning--;
        return;
    }

    if (grpc_conn_session(slot->conn->grpc) == NULL) {
        bench_stream_fail(slot, BENCH_TALLY_TRANSPORT, "connection lost", "");

    } else {
        snprintf(code, sizeof(code), "reset %u", http2_error);
        bench_stream_fail(slot, BENCH_TALLY_TRANSPORT, code,
                          is_refused ? "refused" : "");
    }

    bench_stream_idle(slot);
}


const llmgw_grpc_callbacks_t  bench_stream_callbacks = {
    .on_field = bench_stream_on_field,
    .on_message = bench_stream_on_message,
    .on_end = bench_stream_on_end,
    .on_close = bench_stream_on_close,
    .on_settings = bench_conn_on_settings
};


/* --- the request */

/*
 * Writes a prompt; prompts differ in their first bytes, which a gateway hashes.
 */
size_t
bench_stream_prompt(bench_t *bench)
{
    char    key[17];
    size_t  len;

    len = (size_t) bench->options.prompt_bytes;
    snprintf(key, sizeof(key), "prompt %09u",
             (unsigned) rnd_below(&bench->random,
                                  (uint64_t) bench->options.prompts));
    memcpy(bench->prompt, key, sizeof(key) - 1);

    return len;
}


static int
bench_stream_send_infer(bench_t *bench, llmgw_grpc_stream_t *stream,
    size_t prompt_len)
{
    Llmgateway__InferRequest  request = LLMGATEWAY__INFER_REQUEST__INIT;

    request.client_id = "bench";
    request.prompt.data = (uint8_t *) bench->prompt;
    request.prompt.len = prompt_len;
    request.max_tokens = (int32_t) bench->options.max_tokens;
    request.hedge = bench->options.is_hedged;

    return asker_send(stream, &request.base);
}


static int
bench_stream_send_generate(bench_t *bench, llmgw_grpc_stream_t *stream,
    size_t prompt_len)
{
    Llmgateway__GenerateRequest  request = LLMGATEWAY__GENERATE_REQUEST__INIT;

    request.prompt.data = (uint8_t *) bench->prompt;
    request.prompt.len = prompt_len;
    request.max_tokens = (int32_t) bench->options.max_tokens;

    return asker_send(stream, &request.base);
}


static int
bench_stream_send(bench_slot_t *slot)
{
    size_t    len;
    bench_t  *bench;

    bench = slot->conn->bench;
    len = bench_stream_prompt(bench);
    slot->prompt_hash = sim_token_hash((const uint8_t *) bench->prompt, len);

    return bench->is_generate
           ? bench_stream_send_generate(bench, slot->stream, len)
           : bench_stream_send_infer(bench, slot->stream, len);
}


int
bench_stream_call(bench_slot_t *slot)
{
    bench_t            *bench;
    llmgw_grpc_call_t   call;

    bench = slot->conn->bench;

    memset(&call, 0, sizeof(call));
    call.path = bench->is_generate ? "/llmgateway.LLMReplica/Generate"
                                   : "/llmgateway.InferenceGateway/Infer";
    call.authority = bench->options.gateway;
    call.timeout_ms = bench->options.timeout_ms;
    client_key_call(&bench->options.key, &call);
    call.data = slot;

    if (llmgw_grpc_call(grpc_conn_session(slot->conn->grpc), &call,
                        &slot->stream)
        != LLMGW_GRPC_DONE
        || bench_stream_send(slot) != 0)
    {
        return -1;
    }

    grpc_conn_wake(slot->conn->grpc);

    return 0;
}


int
bench_stream_start(bench_slot_t *slot, uint64_t due_ns)
{
    bench_t  *bench;

    bench = slot->conn->bench;

    slot->due_ns = due_ns;
    slot->last_ns = due_ns;
    slot->tokens = 0;
    slot->is_final = 0;
    slot->is_reported = 0;
    slot->replica_len = 0;
    slot->reason[0] = '\0';

    bench->nrunning++;
    bench->nstarted++;

    return bench->protocol->start(slot);
}
