
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/client_key.h"


#define CLIENT_KEY_BLANKS  " \t\r\n"
#define CLIENT_KEY_NAME    "authorization: "


/* The only word in the text.  NULL: it has none, or several. */
static const char *
client_key_word(char *text)
{
    char    *word, *rest;
    size_t   i, len;

    word = text + strspn(text, CLIENT_KEY_BLANKS);
    len = strcspn(word, CLIENT_KEY_BLANKS);
    rest = word + len;

    if (len == 0 || rest[strspn(rest, CLIENT_KEY_BLANKS)] != '\0') {
        return NULL;
    }

    for (i = 0; i < len; i++) {
        if (word[i] < '!' || word[i] > '~') {
            return NULL;
        }
    }

    *rest = '\0';

    return word;
}


int
client_key_read(client_key_t *key, char *error)
{
    FILE        *file;
    char         text[CLIENT_KEY_BYTES + 1];
    size_t       n;
    const char  *word;

    if (key->path == NULL) {
        return 0;
    }

    file = fopen(key->path, "re");

    if (file == NULL) {
        snprintf(error, CLIENT_KEY_ERROR_BYTES, "--api-key-file: %s: %s",
                 key->path, strerror(errno));
        return -1;
    }

    n = fread(text, 1, CLIENT_KEY_BYTES, file);
    text[n] = '\0';
    word = n < CLIENT_KEY_BYTES && strlen(text) == n ? client_key_word(text)
                                                     : NULL;
    fclose(file);

    if (word == NULL) {
        snprintf(error, CLIENT_KEY_ERROR_BYTES, "--api-key-file: %s has to"
                 " hold one key, and nothing else", key->path);
        return -1;
    }

    snprintf(key->header, sizeof(key->header), CLIENT_KEY_NAME "Bearer %s",
             word);
    key->field.name = "authorization";
    key->field.value = key->header + sizeof(CLIENT_KEY_NAME) - 1;

    return 0;
}


void
client_key_call(const client_key_t *key, llmgw_grpc_call_t *call)
{
    call->fields = &key->field;
    call->nfields = key->path != NULL;
}


struct curl_slist *
client_key_headers(const client_key_t *key)
{
    struct curl_slist  *headers, *more;

    headers = curl_slist_append(NULL, "Content-Type: application/json");

    if (headers == NULL || key->path == NULL) {
        return headers;
    }

    more = curl_slist_append(headers, key->header);

    if (more == NULL) {
        curl_slist_free_all(headers);
    }

    return more;
}
