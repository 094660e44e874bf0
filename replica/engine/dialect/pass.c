
/*
 * Counts the tokens of an answer that is passed on.
 *
 * Its bytes are passed on unchanged, and at once.  With them the gateway gets
 * what was found in them: the usage, the tokens of the prompt as soon as they
 * are known, and how many tokens came, one for each event that has text.  So it
 * knows what an answer cost, also if it breaks off.
 *
 *     whole            the answer is one JSON text
 *     event stream     the data of each event are one; a blank line ends it
 *
 * Nothing of a text is kept while it comes (proto/json/scan.h): an answer of
 * any length takes one pass_t.  A text's counts are used when it is complete.
 * Values that are no numbers, or that contradict each other, are left out.
 */

#include <string.h>
#include <strings.h>

#include "replica/engine/dialect/dialect_inner.h"


#define PASS_DATA        "data:"
#define PASS_DATA_BYTES  (sizeof(PASS_DATA) - 1)
#define PASS_NO_DATA     (PASS_DATA_BYTES + 1)     /* a column */

#define EMBEDDINGS  LLMGATEWAY__API__API_EMBEDDINGS
#define RESPONSES   LLMGATEWAY__API__API_RESPONSES
#define MESSAGES    LLMGATEWAY__API__API_MESSAGES
#define OTHER       LLMGATEWAY__API__API_PASS

/* Where a usage is found. */
typedef struct {
    Llmgateway__Api   api;
    const char       *event;    /* its type, "*": any; NULL: the answer is
                                   whole */
    const char       *object;   /* the usage's path */
    unsigned          begins;   /* its output count is not final */
} pass_place_t;

static const pass_place_t  pass_places[] = {
    { EMBEDDINGS, NULL, "usage", 0 },
    { RESPONSES, NULL, "usage", 0 },
    { RESPONSES, "response.completed", "response.usage", 0 },
    { RESPONSES, "response.incomplete", "response.usage", 0 },
    { RESPONSES, "response.failed", "response.usage", 0 },
    { MESSAGES, NULL, "usage", 0 },
    { MESSAGES, "message_start", "message.usage", 1 },
    { MESSAGES, "message_start", "usage", 1 },      /* vLLM 0.11 */
    { MESSAGES, "message_delta", "usage", 0 },
    { OTHER, NULL, "usage", 0 },
    { OTHER, "*", "usage", 0 }
};

/* The members of a usage. */
typedef struct {
    Llmgateway__Api   api;
    const char       *path;
    pass_unit_t       unit;
} pass_member_t;

static const pass_member_t  pass_members[] = {
    { EMBEDDINGS, "prompt_tokens", PASS_INPUT },
    { RESPONSES, "input_tokens", PASS_INPUT },
    { RESPONSES, "output_tokens", PASS_OUTPUT },
    { RESPONSES, "input_tokens_details.cached_tokens", PASS_CACHED },
    { RESPONSES, "output_tokens_details.reasoning_tokens", PASS_REASONING },
    { MESSAGES, "input_tokens", PASS_INPUT },
    { MESSAGES, "output_tokens", PASS_OUTPUT },
    { MESSAGES, "cache_read_input_tokens", PASS_CACHE_READ },
    { MESSAGES, "cache_creation_input_tokens", PASS_CACHE_WRITTEN },
    { OTHER, "prompt_tokens", PASS_INPUT },
    { OTHER, "input_tokens", PASS_INPUT },
    { OTHER, "completion_tokens", PASS_OUTPUT },
    { OTHER, "output_tokens", PASS_OUTPUT },
    { OTHER, "total_tokens", PASS_TOTAL },
    { OTHER, "prompt_tokens_details.cached_tokens", PASS_CACHED },
    { OTHER, "input_tokens_details.cached_tokens", PASS_CACHED }
};

/*
 * Text by which an event counts as a token: of content_block_delta, and of all
 * of response.*.delta and transcript.text.delta.  Another delta may be, for
 * example, a signature.
 */
static const struct {
    Llmgateway__Api   api;
    const char       *path;
} pass_texts[] = {
    { RESPONSES, "delta" },
    { OTHER, "delta" },
    { MESSAGES, "delta.text" },
    { MESSAGES, "delta.thinking" },
    { MESSAGES, "delta.partial_json" }
};

#define COUNT(all)  (sizeof(all) / sizeof((all)[0]))


static int
pass_has(const pass_counts_t *counts, pass_unit_t unit)
{
    return counts->known >> unit & 1;
}


static void
pass_set(pass_counts_t *counts, pass_unit_t unit, llmgw_json_t value)
{
    uint64_t  n;

    counts->known &= ~(1u << unit);
    counts->n[unit] = 0;

    if (llmgw_json_uint(value, CALL_MAX_TOKENS, &n) == 0) {
        counts->known |= 1u << unit;
        counts->n[unit] = (uint32_t) n;
    }
}


/* The rest of a path after that of an object; NULL: the path is not within
   it. */
static const char *
pass_within(const char *path, const char *object)
{
    size_t  len;

    len = strlen(object);

    return strncmp(path, object, len) == 0 && path[len] == '.' ? path + len + 1
                                                               : NULL;
}


static int
pass_is_kind(const dialect_call_t *call, const pass_place_t *place)
{
    return place->api == call->api
           && (place->event != NULL) == call->pass.is_events;
}


static void
pass_on_count(dialect_call_t *call, const char *path, llmgw_json_t value)
{
    size_t               i;
    pass_t              *pass;
    const char          *name;
    const pass_place_t  *place;

    pass = &call->pass;
    name = NULL;

    for (i = 0; i < COUNT(pass_places) && name == NULL; i++) {
        place = &pass_places[i];
        name = pass_is_kind(call, place) ? pass_within(path, place->object)
                                         : NULL;
    }

    if (name != NULL && pass->object != place->object) {
        pass->object = place->object;
        pass->found.known = 0;
    }

    for (i = 0; i < COUNT(pass_members) && name != NULL; i++) {
        if (pass_members[i].api == call->api
            && strcmp(pass_members[i].path, name) == 0)
        {
            pass_set(&pass->found, pass_members[i].unit, value);
        }
    }
}


static void
pass_on_value(void *arg, const char *path, llmgw_json_t value)
{
    size_t           i;
    dialect_call_t  *call;

    call = arg;
    pass_on_count(call, path, value);

    if (strcmp(path, "type") == 0) {
        llmgw_json_copy(value, call->pass.type, sizeof(call->pass.type));
    }

    if (call->api == RESPONSES && *call->pass.id == '\0'
        && strcmp(path, call->pass.is_events ? "response.id" : "id") == 0)
    {
        llmgw_json_copy(value, call->pass.id, sizeof(call->pass.id));
        call->pass.has_id = 1;
    }

    for (i = 0; i < COUNT(pass_texts); i++) {
        call->pass.has_text |= pass_texts[i].api == call->api
                               && strcmp(pass_texts[i].path, path) == 0
                               && value.kind == LLMGW_JSON_STRING
                               && !llmgw_json_is_empty(value);
    }
}


/* To be called at the beginning of a whole answer, or of an event. */
static void
pass_text_begin(dialect_call_t *call)
{
    pass_t  *pass;

    pass = &call->pass;
    llmgw_json_scan_init(&pass->scan, pass_on_value, call);
    pass->type[0] = '\0';
    pass->has_ended = 0;
    pass->has_text = 0;
    pass->found.known = 0;
}


static uint32_t
pass_part(uint32_t part, uint32_t whole)
{
    return part <= whole ? part : 0;
}


/* Rerankers report only the number of tokens that they have read. */
static void
pass_total(pass_counts_t *counts)
{
    if (!pass_has(counts, PASS_INPUT) && pass_has(counts, PASS_TOTAL)
        && counts->n[PASS_TOTAL] >= counts->n[PASS_OUTPUT])
    {
        counts->known |= 1u << PASS_INPUT;
        counts->n[PASS_INPUT] = counts->n[PASS_TOTAL] - counts->n[PASS_OUTPUT];
    }
}


/* Sets what is known so far: a usage, or else the prompt. */
static void
pass_settle(dialect_call_t *call)
{
    pass_t             *pass;
    uint32_t            prompt;
    const uint32_t     *n;
    Llmgateway__Usage  *usage;

    pass = &call->pass;
    n = pass->counts.n;
    prompt = n[PASS_INPUT] + n[PASS_CACHE_READ] + n[PASS_CACHE_WRITTEN];

    /* SGLang's message_start has 0 for what it does not know yet */

    if (!pass_has(&pass->counts, PASS_INPUT) || prompt == 0
        || prompt > CALL_MAX_TOKENS)
    {
        return;
    }

    if (!pass_has(&pass->counts, PASS_OUTPUT)
        && (call->api == RESPONSES || call->api == MESSAGES))
    {
        message_prompt(call, prompt, 0);
        return;
    }

    usage = &call->usage;
    llmgateway__usage__init(usage);
    usage->prompt_tokens = prompt;
    usage->completion_tokens = n[PASS_OUTPUT];
    usage->cached_tokens = pass_part(n[PASS_CACHED] + n[PASS_CACHE_READ],
                                     prompt);
    usage->reasoning_tokens = pass_part(n[PASS_REASONING], n[PASS_OUTPUT]);
    pass->has_usage = 1;
}


/* Takes a usage.  One with an input has all parts of the prompt, so earlier
   parts are dropped. */
static void
pass_take(dialect_call_t *call, const pass_place_t *place)
{
    int             i;
    pass_counts_t  *from, *to;

    from = &call->pass.found;
    to = &call->pass.counts;

    if (place->begins) {
        from->known &= ~(1u << PASS_OUTPUT);
    }

    if (pass_has(from, PASS_INPUT)) {
        memset(to, 0, sizeof(*to));
    }

    for (i = 0; i < PASS_NUNITS; i++) {
        if (pass_has(from, i)) {
            to->n[i] = from->n[i];
        }
    }

    to->known |= from->known;
    pass_total(to);
    pass_settle(call);
}


static void
pass_text_end(dialect_call_t *call)
{
    size_t               i;
    pass_t              *pass;
    const pass_place_t  *place;

    pass = &call->pass;
    pass->tokens += pass->is_events && pass->has_text;

    for (i = 0; i < COUNT(pass_places) && pass->found.known != 0; i++) {
        place = &pass_places[i];

        if (pass_is_kind(call, place)
            && strcmp(place->object, pass->object) == 0
            && (place->event == NULL || *place->event == '*'
                || strcmp(place->event, pass->type) == 0))
        {
            pass_take(call, place);
            return;
        }
    }
}


static void
pass_text(dialect_call_t *call, const char *p, size_t len)
{
    if (!call->pass.has_ended
        && llmgw_json_scan(&call->pass.scan, p, len) == 1)
    {
        call->pass.has_ended = 1;
        pass_text_end(call);
    }
}


static const char *
pass_line_end(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r') {
        p++;
    }

    return p;
}


/* Reads lines of events (WHATWG HTML, 9.2): only their data. */
static void
pass_events(dialect_call_t *call, const char *p, const char *end)
{
    pass_t      *pass;
    const char  *stop;

    pass = &call->pass;

    for ( /* void */ ; p < end; p++) {

        if (pass->is_data) {
            stop = pass_line_end(p, end);
            pass_text(call, p, (size_t) (stop - p));
            p = stop;

            if (p == end) {
                return;
            }
        }

        if (*p != '\n' && *p != '\r') {
            pass->was_cr = 0;

            if (pass->column < PASS_DATA_BYTES) {
                pass->column = *p == PASS_DATA[pass->column] ? pass->column + 1
                                                             : PASS_NO_DATA;
                pass->is_data = pass->column == PASS_DATA_BYTES;
            }

            continue;
        }

        if (pass->column == 0 && !(pass->was_cr && *p == '\n')) {
            pass_text_begin(call);
        }

        pass->was_cr = *p == '\r';
        pass->column = 0;
        pass->is_data = 0;
    }
}


void
pass_begin(dialect_call_t *call)
{
    memset(&call->pass, 0, sizeof(call->pass));
    call->pass.is_events = strncasecmp(call->content_type, "text/event-stream",
                                       17) == 0;
    pass_text_begin(call);
}


void
pass_bytes(dialect_call_t *call, const char *data, size_t len)
{
    if (call->status / 100 != 2 || call->is_bare) {
        return;
    }

    if (call->pass.is_events) {
        pass_events(call, data, data + len);
    } else {
        pass_text(call, data, len);
    }
}


void
pass_fill(dialect_call_t *call, Llmgateway__GenerateResponse *message)
{
    message->raw_tokens = call->pass.tokens;
    call->pass.tokens = 0;

    if (call->pass.has_id) {
        message->response_id = call->pass.id;
        call->pass.has_id = 0;
    }

    if (call->pass.has_usage) {
        message->usage = &call->usage;
        call->pass.has_usage = 0;
    }

    if (call->has_prompt) {
        message->prompt = &call->message_prompt;
        call->has_prompt = 0;
    }
}
