
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/openai/error.h"


#define REQUEST      "invalid_request_error"
#define SERVER       "server_error"

#define AS_EVER      LLMGW_OPENAI_RETRY_BY_STATUS
#define SOON         LLMGW_OPENAI_RETRY_SOON
#define NEVER        LLMGW_OPENAI_RETRY_NEVER

#define O(outcome)   LLMGW_OUTCOME_ ## outcome


static const llmgw_openai_status_t  error_statuses[] = {
    { 400, O(BAD_REQUEST), AS_EVER, REQUEST, NULL,
      "The request is not valid." },
    { 401, O(BAD_REQUEST), AS_EVER, REQUEST, "invalid_api_key",
      "Incorrect API key provided." },
    { 403, O(BAD_REQUEST), AS_EVER, REQUEST, "permission_denied",
      "You are not allowed to do that." },
    { 404, O(NOT_FOUND), AS_EVER, REQUEST, "not_found",
      "There is nothing at this URL." },
    { 405, O(UNKNOWN_METHOD), AS_EVER, REQUEST, "method_not_supported",
      "This URL has no such method." },
    { 408, O(DEADLINE), AS_EVER, REQUEST, "request_timeout",
      "The request did not arrive in time." },
    { 413, O(TOO_LARGE), AS_EVER, REQUEST, "request_too_large",
      "The request is too large." },
    { 415, O(UNKNOWN_METHOD), AS_EVER, REQUEST, "unsupported_media_type",
      "The request must be application/json." },
    { 429, O(BAD_REQUEST), SOON, "rate_limit_error", "rate_limit_exceeded",
      "Too many requests." },
    { 431, O(BAD_REQUEST), AS_EVER, REQUEST, "header_too_large",
      "The request's header is too large." },
    { 500, O(INTERNAL), AS_EVER, SERVER, NULL, "The gateway had an error." },
    { 502, O(INTERNAL), NEVER, SERVER, NULL,
      "No replica could serve the request." },
    { 503, O(INTERNAL), SOON, SERVER, "service_unavailable",
      "The service is not available." },
    { 504, O(INTERNAL), NEVER, "timeout_error", "deadline_exceeded",
      "The request's deadline has passed." },
    { 0, O(BAD_REQUEST), AS_EVER, REQUEST, NULL, "The request was refused." }
};


/* The last row is the default. */
const llmgw_openai_status_t *
llmgw_openai_status(unsigned status)
{
    const llmgw_openai_status_t  *row;

    row = error_statuses;

    while (row->status && row->status != status) {
        row++;
    }

    return row->status == 0 && status > 500 ? llmgw_openai_status(500) : row;
}


/* Bytes of a client or an engine must not begin a line of the log. */
static void
error_clean(char *message)
{
    char  *p;

    for (p = message; *p != '\0'; p++) {
        if ((unsigned char) *p < ' ' || *p == 0x7f) {
            *p = ' ';
        }
    }
}


void
llmgw_openai_error_set(llmgw_openai_error_t *error, unsigned status,
    const char *code, const char *param, const char *format, ...)
{
    va_list  args;

    error->status = status;
    error->type = llmgw_openai_status(status)->type;
    error->code = code;

    (void) snprintf(error->param, sizeof(error->param), "%s",
                    param ? param : "");

    va_start(args, format);
    (void) vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);

    error_clean(error->message);
}


void
llmgw_openai_error_of_status(llmgw_openai_error_t *error, unsigned status)
{
    const llmgw_openai_status_t  *row;

    row = llmgw_openai_status(status);
    llmgw_openai_error_set(error, status, row->code, NULL, "%s",
                           row->message);
}


int
llmgw_anthropic_has(const char *path, size_t len)
{
    static const char  end[] = "/messages", counts[] = "/count_tokens";

    if (len >= sizeof(counts) - 1
        && memcmp(path + len - (sizeof(counts) - 1), counts,
                  sizeof(counts) - 1) == 0)
    {
        len -= sizeof(counts) - 1;
    }

    return len >= sizeof(end) - 1
           && memcmp(path + len - (sizeof(end) - 1), end, sizeof(end) - 1) == 0;
}


const char *
llmgw_anthropic_type(unsigned status)
{
    switch (status) {
    case 400:
        return "invalid_request_error";

    case 401:
        return "authentication_error";

    case 403:
        return "permission_error";

    case 404:
        return "not_found_error";

    case 413:
        return "request_too_large";

    case 429:
        return "rate_limit_error";

    case 503:
    case 529:
        return "overloaded_error";

    default:
        return "api_error";
    }
}
