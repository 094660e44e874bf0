
#include <stdio.h>

#include "replica/shard/shard_tls.h"


int
shard_tls_check(const tls_files_t *files, char *error)
{
    static const char *const  names[TLS_NFILES] = {
        "--shard-tls-cert", "--shard-tls-key", "--shard-tls-ca"
    };

    return tls_files_check(files, names, 1, error);
}


int
shard_tls_check_address(const tls_files_t *files, const char *key_file,
    const address_t *address, char *error)
{
    char  text[ADDRESS_TEXT_BYTES];

    if (files->cert != NULL || key_file != NULL
        || address_is_loopback(address))
    {
        return 0;
    }

    address_format(address, text);
    snprintf(error, SHARD_TLS_ERROR_BYTES, "--listen: \"%s\" is not "
             "loopback, so a shard needs --shard-tls-cert, --shard-tls-key "
             "and --shard-tls-ca, or at least --shard-key FILE", text);

    return -1;
}


int
shard_tls_open(tls_endpoint_t *tls, const tls_files_t *files, const log_t *log,
    char *error)
{
    if (tls_endpoint_open(tls, files, log, error) != 0) {
        return -1;
    }

    tls->conn.ping_ms = SHARD_PING_MS;
    tls->conn.answer_ms = SHARD_PING_MS;

    return 0;
}
