
/*
 * Errors in OpenAI's words.  One table has the type of each status, and its
 * default message.  Clients of Anthropic's API, recognized by their path, get
 * other types.
 */

#ifndef LLMGW_OPENAI_ERROR_H
#define LLMGW_OPENAI_ERROR_H

#include <stddef.h>

#include "core/outcome.h"


/*
 * Whether a client should try again.  OpenAI's clients try 408, 409, 429 and
 * all 5xx again, twice, if no header says otherwise.
 */
typedef enum {
    LLMGW_OPENAI_RETRY_BY_STATUS = 0,   /* clients decide by the status */
    LLMGW_OPENAI_RETRY_SOON,            /* after the answer's Retry-After */
    LLMGW_OPENAI_RETRY_NEVER            /* the gateway has tried enough */
} llmgw_openai_retry_t;

typedef struct {
    unsigned               status;
    llmgw_outcome_t        outcome;     /* if the gateway itself refuses with
                                           it */
    llmgw_openai_retry_t   retry;
    const char            *type;
    const char            *code;        /* NULL: JSON's null */
    const char            *message;
} llmgw_openai_status_t;

typedef struct {
    unsigned      status;           /* HTTP; 0: there is no error */
    const char   *type;             /* the status's */
    const char   *code;             /* a constant; NULL: JSON's null */
    char          param[80];        /* "": JSON's null; ASCII */
    char          message[240];     /* without control characters */
} llmgw_openai_error_t;


/* For any error status; never NULL. */
const llmgw_openai_status_t *llmgw_openai_status(unsigned status);

/*
 * code must be a constant, and param may be NULL.  Texts that are too long are
 * cut, and control characters in the message become spaces. code must not
 * contain bytes from the client.
 */
void llmgw_openai_error_set(llmgw_openai_error_t *error, unsigned status,
    const char *code, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The error of that status, as the table has it. */
void llmgw_openai_error_of_status(llmgw_openai_error_t *error,
    unsigned status);

/*
 * 1: requests of that path, perhaps with /count_tokens, are of Anthropic's API.
 */
int llmgw_anthropic_has(const char *path, size_t len);

/* Anthropic's type of an error with that status. */
const char *llmgw_anthropic_type(unsigned status);

#endif /* LLMGW_OPENAI_ERROR_H */
