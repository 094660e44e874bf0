
/*
 * What `infer` writes: text or JSON lines on stdout, names and errors on
 * stderr.
 */

#ifndef INFER_OUTPUT_H
#define INFER_OUTPUT_H

#include <stddef.h>
#include <stdio.h>


#define INFER_OUTPUT_ID_BYTES  128

typedef struct {
    int   is_json;
    int   is_tty;                               /* stderr is a terminal */
    int   ntokens;
    char  replica_id[INFER_OUTPUT_ID_BYTES];    /* of the last token */
} infer_output_t;

typedef struct {
    const char  *text;              /* texts are not NUL terminated */
    size_t       text_bytes;
    const char  *replica_id;
    size_t       replica_id_bytes;
    double       time_s;            /* since the beginning of the call */
    int          is_final;
} infer_token_t;

void infer_output_init(infer_output_t *output, int is_json);

/* 0, or -1: the token is not UTF-8, or stdout failed. */
int infer_output_token(infer_output_t *output, const infer_token_t *token);

/* Ends the text with a newline. */
void infer_output_end(infer_output_t *output);

/* Writes text from a peer without its control bytes. */
void infer_output_clean(FILE *file, const char *text);

/* Prints the error; reason: the llmgw-reason trailer, or "". */
void infer_output_error(int status, const char *message, const char *reason);

#endif /* INFER_OUTPUT_H */
