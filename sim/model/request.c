
#include <string.h>

#include "sim/model/request.h"


void
model_request_renew(model_request_t *request)
{
    model_request_t  old;

    old = *request;
    memset(request, 0, sizeof(model_request_t));

    request->id = old.id;
    request->hashes = old.hashes;
    request->nhashes = old.nhashes;
    request->input_tokens = old.input_tokens;
    request->output_tokens = old.output_tokens;
    request->max_output_tokens = old.max_output_tokens;
    request->priority = old.priority;
    request->arrival_us = old.arrival_us;
    request->deadline_us = old.deadline_us;
    request->data = old.data;
}
