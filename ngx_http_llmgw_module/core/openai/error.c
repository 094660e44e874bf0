
#include <stdarg.h>
#include <stdio.h>

#include "core/openai/error.h"


/* What a client or an engine has sent must not begin a line of the log. */
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
    const char *type, const char *code, const char *param,
    const char *format, ...)
{
    va_list  args;

    error->status = status;
    error->type = type;
    error->code = code;

    (void) snprintf(error->param, sizeof(error->param), "%s",
                    param ? param : "");

    va_start(args, format);
    (void) vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);

    error_clean(error->message);
}


void
llmgw_openai_error_no_memory(llmgw_openai_error_t *error)
{
    llmgw_openai_error_set(error, 500, LLMGW_OPENAI_SERVER_ERROR, NULL, NULL,
                           "The gateway is out of memory.");
}
