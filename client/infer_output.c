
/*
 * Text is written unchanged and flushed after each token, so that a stream
 * looks like one.  A peer's error messages and names are written without
 * their control bytes.
 */

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/grpc/session.h"
#include "client/infer_output.h"


#define INFER_OUTPUT_DIM     "\033[2m"
#define INFER_OUTPUT_NORMAL  "\033[0m"

/* Enough digits for microseconds in a stream of minutes. */
#define INFER_OUTPUT_JSON  (JSON_COMPACT|JSON_REAL_PRECISION(9))


void
infer_output_clean(FILE *file, const char *text)
{
    const char  *p;

    for (p = text; *p != '\0'; p++) {
        putc((unsigned char) *p < 0x20 || *p == 0x7f ? '?' : *p, file);
    }
}


void
infer_output_init(infer_output_t *o, int is_json)
{
    memset(o, 0, sizeof(*o));
    o->is_json = is_json;
    o->is_tty = isatty(STDERR_FILENO);
}


static int
infer_output_json(infer_output_t *o, const infer_token_t *token)
{
    char    *line;
    json_t  *object;

    object = json_pack("{s:i, s:s%, s:s%, s:f, s:b}",
                       "index", o->ntokens,
                       "token", token->text, token->text_bytes,
                       "replica", token->replica_id,
                       token->replica_id_bytes,
                       "time", round(token->time_s * 1e6) / 1e6,
                       "is_final", token->is_final);

    if (object == NULL) {
        return -1;
    }

    line = json_dumps(object, INFER_OUTPUT_JSON);
    json_decref(object);

    if (line == NULL) {
        return -1;
    }

    puts(line);
    free(line);

    return 0;
}


/* On a terminal, names the replica each time it changes. */
static void
infer_output_replica(infer_output_t *o, const infer_token_t *token)
{
    char  id[INFER_OUTPUT_ID_BYTES];

    snprintf(id, sizeof(id), "%.*s", (int) token->replica_id_bytes,
             token->replica_id);

    if (!o->is_tty || strcmp(o->replica_id, id) == 0) {
        return;
    }

    memcpy(o->replica_id, id, sizeof(id));

    fputs(INFER_OUTPUT_DIM "[", stderr);
    infer_output_clean(stderr, o->replica_id);
    fputs("]" INFER_OUTPUT_NORMAL, stderr);
    fflush(stderr);
}


int
infer_output_token(infer_output_t *o, const infer_token_t *token)
{
    if (o->is_json) {
        if (infer_output_json(o, token) != 0) {
            return -1;
        }

    } else {
        infer_output_replica(o, token);
        fwrite(token->text, 1, token->text_bytes, stdout);
    }

    o->ntokens++;

    return fflush(stdout) == 0 ? 0 : -1;
}


void
infer_output_end(infer_output_t *o)
{
    if (!o->is_json && o->ntokens > 0) {
        putchar('\n');
        fflush(stdout);
    }
}


void
infer_output_error(int status, const char *message, const char *reason)
{
    fprintf(stderr, "llmgw-client: %s: ", llmgw_grpc_status_name(status));
    infer_output_clean(stderr, message);

    if (*reason != '\0') {
        fputs(" (llmgw-reason: ", stderr);
        infer_output_clean(stderr, reason);
        fputs(")", stderr);
    }

    fputs("\n", stderr);
}
