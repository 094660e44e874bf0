
/*
 * The key that the client sends to a gateway with llmgw_keys.  It is read from
 * a file, because a command line is visible in the list of processes.
 */

#ifndef CLIENT_KEY_H
#define CLIENT_KEY_H

#include <curl/curl.h>

#include "common/options.h"
#include "proto/grpc/session.h"


#define CLIENT_KEY_BYTES        512     /* of a file; llmgwctl's keys have 52 */
#define CLIENT_KEY_ERROR_BYTES  256

typedef struct {
    const char          *path;          /* NULL: no key is sent */
    char                 header[CLIENT_KEY_BYTES + 32];
    llmgw_grpc_field_t   field;         /* the key as a header of gRPC */
} client_key_t;

/* A row of an option table; FIELD(key.path) must be defined. */
#define CLIENT_KEY_OPTION                                                     \
    { "api-key-file", OPTION_STRING, FIELD(key.path), NULL, "FILE",           \
      "send the key that stands in this file", 0, 0, 0 }


/*
 * Reads the key file, if one is given.  0, or -1 and one line in error
 * (CLIENT_KEY_ERROR_BYTES).
 */
int client_key_read(client_key_t *key, char *error);

/* Sends the key with a call. */
void client_key_call(const client_key_t *key, llmgw_grpc_call_t *call);

/*
 * The headers of a JSON request, including the key; freed by
 * curl_slist_free_all().  NULL: no memory.
 */
struct curl_slist *client_key_headers(const client_key_t *key);

#endif /* CLIENT_KEY_H */
