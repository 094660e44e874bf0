
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "up/fleet/source.h"


#define SOURCE_DNS_PREFIX   "dns:"
#define SOURCE_EXEC_PREFIX  "exec:"
#define SOURCE_SIM_PREFIX   "sim:"

static int
source_refuse(const char *word, const char *why,
    char error[SOURCE_ERROR_BYTES])
{
    snprintf(error, SOURCE_ERROR_BYTES, "\"%.*s\": %s", URL_BYTES, word, why);

    return -1;
}


/* Reads what follows "dns:". */
static int
source_read_dns(source_t *s, const char *word, const char *name,
    char error[SOURCE_ERROR_BYTES])
{
    char        *end;
    size_t       len;
    const char  *colon;

    colon = strrchr(name, ':');
    s->port = colon != NULL ? (unsigned) strtoul(colon + 1, &end, 10) : 0;
    len = colon != NULL ? (size_t) (colon - name) : 0;

    if (len == 0 || len >= sizeof(s->host) || !isdigit((unsigned char)
        colon[1]) || *end != '\0' || s->port < 1 || s->port > 65535)
    {
        return source_refuse(word, "not like dns:NAME:PORT", error);
    }

    memcpy(s->host, name, len);
    s->host[len] = '\0';
    s->kind = SOURCE_DNS;

    return 0;
}


/*
 * Reads a command.  It must fit into a line of the adapter's file: one line,
 * without a comment.
 */
static int
source_read_exec(source_t *s, const char *word, const char *command,
    char error[SOURCE_ERROR_BYTES])
{
    if (command[0] == '\0') {
        return source_refuse(word, "a command is missing behind exec:", error);
    }

    if (strstr(command, "{port}") == NULL
        && strstr(command, "{socket}") == NULL)
    {
        return source_refuse(word, "write {port} where the command says the "
                             "port to listen on, or {socket} for a unix socket",
                             error);
    }

    if (strchr(command, '\n') != NULL || strstr(command, " #") != NULL) {
        return source_refuse(word, "a command has no line break and no \" #\";"
                             " write a script and name that", error);
    }

    s->kind = SOURCE_EXEC;
    strcpy(s->target, command);

    return 0;
}


static int
source_read_url(source_t *s, const char *word, char error[SOURCE_ERROR_BYTES])
{
    char  whole[URL_BYTES + 16], why[URL_ERROR_BYTES];

    snprintf(whole, sizeof(whole), "%s%s",
             strstr(word, "://") != NULL ? "" : "http://", word);

    if (url_read(whole, s->target, why) != 0) {
        return source_refuse(word, why, error);
    }

    s->kind = SOURCE_HTTP;
    strcpy(s->text, s->target);

    return 0;
}


int
source_read(source_t *source, const char *word,
    char error[SOURCE_ERROR_BYTES])
{
    if (strlen(word) >= sizeof(source->text)) {
        snprintf(error, SOURCE_ERROR_BYTES, "an engine's URL has less than %d "
                 "bytes", SOURCE_BYTES);
        return -1;
    }

    memset(source, 0, sizeof(source_t));
    strcpy(source->text, word);

    if (strncmp(word, SOURCE_DNS_PREFIX, strlen(SOURCE_DNS_PREFIX)) == 0) {
        return source_read_dns(source, word, word + strlen(SOURCE_DNS_PREFIX),
                               error);
    }

    if (strncmp(word, SOURCE_EXEC_PREFIX, strlen(SOURCE_EXEC_PREFIX)) == 0) {
        return source_read_exec(source, word,
                                word + strlen(SOURCE_EXEC_PREFIX), error);
    }

    if (strncmp(word, SOURCE_SIM_PREFIX, strlen(SOURCE_SIM_PREFIX)) == 0) {
        source->kind = SOURCE_SIM;
        strcpy(source->target, word);
        return 0;
    }

    return source_read_url(source, word, error);
}


/*
 * The part of a text that distinguishes engines: host and port, or the program.
 */
static const char *
source_essence(const char *text, size_t *len)
{
    const char  *p, *slash, *word;

    p = strstr(text, "://");

    if (p != NULL) {
        p += 3;
        *len = strcspn(p, "/");
        return p;
    }

    *len = strcspn(text, " ");
    word = text;

    while ((slash = memchr(word, '/', *len)) != NULL && *len > 1) {
        *len -= (size_t) (slash + 1 - word);
        word = slash + 1;
    }

    return word;
}


void
source_id(const char *text, char id[SOURCE_ID_BYTES])
{
    size_t       i, n, len;
    const char  *essence;

    essence = source_essence(text, &len);
    n = 0;

    for (i = 0; i < len && n < SOURCE_ID_BYTES - 1; i++) {

        if (isalnum((unsigned char) essence[i]) || (n > 0
            && (essence[i] == '.' || essence[i] == '_')))
        {
            id[n++] = essence[i];

        } else if (n > 0 && id[n - 1] != '-') {
            id[n++] = '-';
        }
    }

    while (n > 0 && !isalnum((unsigned char) id[n - 1])) {
        n--;
    }

    if (n == 0) {
        strcpy(id, "engine");
        return;
    }

    id[n] = '\0';
}
