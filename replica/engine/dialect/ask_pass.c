
/*
 * Requests that are passed on: their paths, and bodies that are not JSON.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define ASK_MAX_PATH  1024      /* with its query */
#define ASK_MAX_TYPE  256


/* Whether the query is visible ASCII, as a line of a request must be. */
static int
ask_query_is_sound(const char *query)
{
    while (*query > ' ' && *query <= '~' && *query != '#') {
        query++;
    }

    return *query == '\0';
}


/* The path of another API, checked, since it comes from another process.  With
   a body there is no query. */
static const char *
ask_other_path(dialect_call_t *call)
{
    size_t       len, plain;
    const char  *path;

    path = call->request->openai->path;
    len = strlen(path);
    plain = strspn(path, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789/-_.~");

    if (*path != '/' || len > ASK_MAX_PATH || strstr(path, "/.") != NULL
        || (plain != len && !(call->is_bare && path[plain] == '?'
                              && ask_query_is_sound(path + plain))))
    {
        return NULL;
    }

    call->path.len = 0;
    buf_add(&call->path, path, len + 1);

    return call->path.failed ? NULL : call->path.data;
}


const char *
ask_path(dialect_call_t *call)
{
    static const char *const  paths[] = {
        [LLMGATEWAY__API__API_CHAT] = "/v1/chat/completions",
        [LLMGATEWAY__API__API_COMPLETIONS] = "/v1/completions",
        [LLMGATEWAY__API__API_EMBEDDINGS] = "/v1/embeddings",
        [LLMGATEWAY__API__API_RESPONSES] = "/v1/responses",
        [LLMGATEWAY__API__API_MESSAGES] = "/v1/messages"
    };

    if (call->api == LLMGATEWAY__API__API_PASS) {
        return ask_other_path(call);
    }

    return call->api < sizeof(paths) / sizeof(paths[0]) ? paths[call->api]
                                                        : NULL;
}


/* In a body that is not JSON, only the model's name may change. */
static int
ask_form_body(dialect_call_t *call)
{
    size_t                            len;
    const char                       *body;
    const Llmgateway__Member         *m;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;
    body = (const char *) openai->body.data;
    len = openai->body.len;

    if (*openai->engine_model == '\0') {
        buf_add(&call->body, body, len);
        return 0;
    }

    m = openai->n_members == 1 ? openai->members[0] : NULL;

    if (m == NULL || m->value > m->end || m->end > len) {
        return -1;
    }

    buf_add(&call->body, body, m->value);
    buf_text(&call->body, openai->engine_model);
    buf_add(&call->body, body + m->end, len - m->end);

    return 0;
}


/* Whether the type can be in a line of a request. */
static int
ask_type_is_sound(const char *type)
{
    size_t  len;

    for (len = 0; type[len] >= ' ' && type[len] <= '~'; len++) { /* void */ }

    return type[len] == '\0' && len <= ASK_MAX_TYPE;
}


dialect_do_t
ask_form(dialect_call_t *call)
{
    const char  *type, *path;

    type = call->request->openai->content_type;
    path = call->api == LLMGATEWAY__API__API_PASS ? ask_path(call) : NULL;

    if (path == NULL || !ask_type_is_sound(type)) {
        return call_fail(call, LLMGW_GRPC_UNIMPLEMENTED,
                         "the adapter does not know this API");
    }

    call_step(call, STEP_PASS, path);
    buf_add(&call->type, type, strlen(type) + 1);
    call->http.type = call->type.data;

    if (ask_form_body(call) != 0) {
        return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                         "the members of the body do not fit it");
    }

    call->body.failed |= call->type.failed;
    call->request = NULL;

    return ask_ready(call);
}


/* A request without a body, for something that the engine keeps. */
dialect_do_t
ask_bare(dialect_call_t *call)
{
    size_t       i;
    const char  *method, *path;

    static const char *const  methods[] = { "GET", "DELETE", "POST" };

    call->is_bare = 1;
    method = call->request->openai->method;
    path = call->api == LLMGATEWAY__API__API_PASS ? ask_path(call) : NULL;

    for (i = 0; path != NULL && i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i], method) == 0) {
            call_step(call, STEP_PASS, path);
            call->http.method = methods[i];
            call->request = NULL;
            return DIALECT_ASK;
        }
    }

    return call_fail(call, LLMGW_GRPC_UNIMPLEMENTED,
                     "the adapter does not know this API");
}
