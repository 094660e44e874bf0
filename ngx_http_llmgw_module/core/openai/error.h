
/*
 * What is wrong with a request, in OpenAI's words.
 */

#ifndef LLMGW_OPENAI_ERROR_H
#define LLMGW_OPENAI_ERROR_H


#define LLMGW_OPENAI_INVALID_REQUEST  "invalid_request_error"
#define LLMGW_OPENAI_SERVER_ERROR     "server_error"

typedef struct {
    unsigned      status;           /* HTTP; 0: there is no error */
    const char   *type;             /* a constant */
    const char   *code;             /* a constant; NULL: JSON's null */
    char          param[80];        /* "": JSON's null; ASCII */
    char          message[240];     /* without control characters */
} llmgw_openai_error_t;


/*
 * type and code must be constants, param may be NULL.  What is too long is cut,
 * and a control character in the message becomes a space.  Nothing of what the
 * client sent belongs in type or code.
 */
void llmgw_openai_error_set(llmgw_openai_error_t *error, unsigned status,
    const char *type, const char *code, const char *param,
    const char *format, ...) __attribute__((format(printf, 6, 7)));

/* 500: ours. */
void llmgw_openai_error_no_memory(llmgw_openai_error_t *error);

#endif /* LLMGW_OPENAI_ERROR_H */
