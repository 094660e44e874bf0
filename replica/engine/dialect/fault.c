
/*
 * Errors of an engine, in OpenAI's shape, and what follows from them.
 *
 *   4xx                the request's own fault: passed on; of a stream that is
 *                      resumed here: it cannot continue
 *   404 of a model     the same, and marked as of a model: the gateway knows
 *                      whether this replica reports that name
 *   401                our key is wrong: another replica may do better
 *   429, 503           full: another replica, and no try is used up
 *   5xx else           a failure; but 501 is the request's
 *
 * An engine may answer 200 at once and report an error as an event.  After the
 * first token every error is a failure.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define FAULT_MESSAGE_BYTES  4096
#define FAULT_TYPE_BYTES     64


/* The members of an engine's error; "" and 0: absent. */
typedef struct {
    char      message[FAULT_MESSAGE_BYTES];
    char      type[FAULT_TYPE_BYTES];
    char      code[FAULT_TYPE_BYTES];
    char      param[FAULT_TYPE_BYTES];
    uint64_t  status;
} fault_t;


int
fault_is_event(llmgw_json_t event)
{
    llmgw_json_t        error = { 0 };
    llmgw_json_t        object = { 0 };
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    for (items = llmgw_json_members(event); llmgw_json_next(&items, &item); ) {
        if (llmgw_json_is(item.key, "error")) {
            error = item.value;

        } else if (llmgw_json_is(item.key, "object")) {
            object = item.value;
        }
    }

    return !llmgw_json_is_null(error) || llmgw_json_is(object, "error");
}


/* The first thing that FastAPI found wrong. */
static llmgw_json_t
fault_detail(llmgw_json_t detail)
{
    return detail.kind == LLMGW_JSON_ARRAY
           ? llmgw_json_member(llmgw_json_first(detail), "msg") : detail;
}


static void
fault_read(llmgw_json_t said, fault_t *fault)
{
    llmgw_json_t  error, message, code;

    memset(fault, 0, sizeof(fault_t));
    error = llmgw_json_member(said, "error");
    error = error.kind == LLMGW_JSON_OBJECT ? error : said;

    message = llmgw_json_member(error, "message");

    if (message.kind != LLMGW_JSON_STRING) {
        message = llmgw_json_member(said, "error");
    }

    if (message.kind != LLMGW_JSON_STRING) {
        message = fault_detail(llmgw_json_member(said, "detail"));
    }

    code = llmgw_json_member(error, "code");
    llmgw_json_copy(message, fault->message, sizeof(fault->message));
    llmgw_json_copy(llmgw_json_member(error, "type"), fault->type,
                    sizeof(fault->type));
    llmgw_json_copy(llmgw_json_member(error, "param"), fault->param,
                    sizeof(fault->param));
    llmgw_json_copy(code, fault->code, sizeof(fault->code));

    if (llmgw_json_uint(code, 599, &fault->status) != 0
        || fault->status < 400)
    {
        fault->status = 0;
    }
}


static const char *
fault_type(unsigned status)
{
    switch (status) {
    case 403:
        return "permission_error";

    case 404:
        return "not_found_error";

    case 501:
        return "not_supported_error";

    default:
        return "invalid_request_error";
    }
}


static void
fault_member(buf_t *to, const char *key, const char *text)
{
    buf_text(to, key);

    if (*text == '\0') {
        buf_text(to, "null");

    } else {
        buf_string(to, text, strlen(text));
    }
}


/* Whether a 404 means an unknown model, and not an unknown path. */
static int
fault_is_of_model(unsigned status, const fault_t *fault)
{
    return status == 404
           && (strcmp(fault->code, "model_not_found") == 0
               || (*fault->code == '\0'
                   && strstr(fault->message, "model") != NULL));
}


static dialect_do_t
fault_of_request(dialect_call_t *call, unsigned status, const fault_t *fault)
{
    int     denies;
    buf_t  *to;

    denies = fault_is_of_model(status, fault);

    to = &call->answer;
    to->len = 0;
    fault_member(to, "{\"error\":{\"message\":", fault->message);
    fault_member(to, ",\"type\":",
                 *fault->type != '\0' ? fault->type : fault_type(status));
    fault_member(to, ",\"param\":", fault->param);
    fault_member(to, ",\"code\":",
                 denies ? "model_not_found" : fault->code);
    buf_text(to, "}}");

    message_begin(call);

    if (!to->failed) {
        llmgateway__failure__init(&call->failure);
        call->failure.status = status;
        call->failure.denies_model = denies;
        call->failure.body.data = (uint8_t *) to->data;
        call->failure.body.len = to->len;
        call->message.failure = &call->failure;
        call->has_message = 1;
    }

    return call_fail(call, status == 404 ? LLMGW_GRPC_NOT_FOUND
                           : status == 403 ? LLMGW_GRPC_PERMISSION_DENIED
                           : LLMGW_GRPC_INVALID_ARGUMENT,
                     "the engine refused the request, %u: %s", status,
                     fault->message);
}


static dialect_do_t
fault_judge(dialect_call_t *call, unsigned status, fault_t *fault)
{
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    if (call->tokens > 0) {
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE,
                         "the engine answered %u behind tokens: %s", status,
                         fault->message);
    }

    if (status == 429 || status == 503) {
        return call_fail(call, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                         "the engine is full, %u: %s", status,
                         fault->message);
    }

    if (status == 401) {
        return call_fail(call, LLMGW_GRPC_UNAUTHENTICATED,
                         "the engine does not take our key: %s",
                         fault->message);
    }

    if (call->goes_on && (status / 100 == 4 || status == 501)) {
        return call_fail(call, LLMGW_GRPC_FAILED_PRECONDITION,
                         "the engine does not go on with the stream, %u: %s",
                         status, fault->message);
    }

    if (status / 100 == 4 || status == 501) {
        return fault_of_request(call, status, fault);
    }

    if (ops->is_fault != NULL && ops->is_fault(status, fault->message)) {
        *fault->type = '\0';
        return fault_of_request(call, 400, fault);
    }

    return call_fail(call, LLMGW_GRPC_UNAVAILABLE, "the engine answered"
                     " %u: %s", status, fault->message);
}


/* Takes the first line of an answer that is not JSON, if it is text. */
static void
fault_read_text(const buf_t *answer, fault_t *fault)
{
    size_t  i, len;

    len = answer->len < sizeof(fault->message) - 1
          ? answer->len : sizeof(fault->message) - 1;

    for (i = 0; i < len; i++) {
        if (answer->data[i] < 0x20 || answer->data[i] == 0x7f) {
            break;
        }

        fault->message[i] = answer->data[i];
    }

    fault->message[i] = '\0';
}


/*
 * An engine's own error is passed on as it is, unless it does not know the
 * model, which another replica may know.
 */
static dialect_do_t
fault_of_pass(dialect_call_t *call, const fault_t *fault)
{
    if (fault_is_of_model(call->status, fault)) {
        return fault_of_request(call, call->status, fault);
    }

    call->passes = 1;
    call->has_final = 1;
    call->raw_at = call->answer.data;
    call->raw_left = call->answer.len;

    return DIALECT_DONE;
}


dialect_do_t
fault_answer(dialect_call_t *call)
{
    fault_t       fault;
    llmgw_json_t  said;
    dialect_do_t  next;

    memset(&fault, 0, sizeof(fault));

    if (plan_without(call, call->status, &next) == 0) {
        return next;
    }

    if (llmgw_json_check(call->answer.data, call->answer.len, &said) == 0
        && said.kind == LLMGW_JSON_OBJECT)
    {
        fault_read(said, &fault);

    } else {
        fault_read_text(&call->answer, &fault);
    }

    if (call->step == STEP_PASS && call->status == 404) {
        return fault_of_pass(call, &fault);
    }

    if (*fault.message == '\0') {
        strcpy(fault.message, "no reason was given");
    }

    return fault_judge(call, call->status, &fault);
}


dialect_do_t
fault_event(dialect_call_t *call, llmgw_json_t event)
{
    fault_t  fault;

    message_begin(call);
    fault_read(event, &fault);

    return fault_judge(call, fault.status == 0 ? 500 : (unsigned) fault.status,
                       &fault);
}
