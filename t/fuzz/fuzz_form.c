
/*
 * A client that sends any bytes as a form.  The first line is the content
 * type; if it is empty, a type with the boundary X is used.
 *
 * A form that is accepted has one `model`, whose bytes are at the reported
 * place, and is passed on unchanged; a copy of it is accepted, too.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/openai/affinity_key.h"
#include "core/openai/form.h"
#include "proto/utf8.h"


#define TYPE  "multipart/form-data; boundary=X"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static void *
resize(void *data, void *p, size_t bytes)
{
    if (bytes > 0) {
        return realloc(p, bytes);
    }

    free(p);

    return NULL;
}


static const llmgw_openai_memory_t  memory = { resize, NULL };


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char                  *type, *copy;
    size_t                 n;
    const uint8_t         *line;
    llmgw_openai_body_t    body;
    llmgw_openai_error_t   error;
    llmgw_openai_member_t *m;

    line = memchr(data, '\n', len);

    if (line == NULL) {
        return 0;
    }

    n = (size_t) (line - data);
    type = malloc(n == 0 ? sizeof(TYPE) : n);
    assert(type != NULL);
    memcpy(type, n == 0 ? (const void *) TYPE : data, n == 0 ? sizeof(TYPE) - 1
                                                             : n);
    len -= n + 1;
    copy = malloc(len == 0 ? 1 : len);
    assert(copy != NULL);
    memcpy(copy, line + 1, len);

    if (llmgw_openai_form_read(&body, type, n == 0 ? sizeof(TYPE) - 1 : n,
                               LLMGATEWAY__API__API_PASS, copy, len, &memory,
                               &error)
        == 0)
    {
        m = body.members;
        assert(body.nmembers == 1 && m->begin == m->value);
        assert(m->end - m->value == body.model_len && m->end <= len);
        assert(memcmp(copy + m->value, body.model, body.model_len) == 0);
        assert(llmgw_utf8_is_valid(body.model, body.model_len));
        assert(body.file.begin <= body.file.end && body.file.end <= len);
        (void) llmgw_openai_affinity_key(&body, 1024, LLMGW_OPENAI_BY_USER);
        llmgw_openai_body_done(&body);

    } else {
        assert(error.status == 400);
    }

    free(copy);
    free(type);

    return 0;
}
