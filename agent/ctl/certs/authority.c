
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/certs/authority.h"


/* Validity begins this much earlier, for hosts whose clock is behind. */
#define AUTHORITY_BEFORE_S     300

#define AUTHORITY_SERIAL_BITS  127
#define AUTHORITY_NAMES_BYTES  4096

/* A pair of files that is written: names end in .key and .crt. */
typedef struct {
    char        key_path[PATH_MAX];
    char        cert_path[PATH_MAX];
    EVP_PKEY   *key;
    X509       *cert;
} authority_pair_t;

typedef struct {
    int          nid;
    const char  *value;
} authority_extension_t;


static int
authority_fail(char *error, const char *path, const char *what)
{
    snprintf(error, AUTHORITY_ERROR_BYTES, "\"%.300s\": %s", path, what);

    return -1;
}


static void
authority_pair_init(authority_pair_t *pair, const char *dir, const char *name)
{
    memset(pair, 0, sizeof(authority_pair_t));
    snprintf(pair->key_path, PATH_MAX, "%s/%s.key", dir, name);
    snprintf(pair->cert_path, PATH_MAX, "%s/%s.crt", dir, name);
}


static void
authority_pair_done(authority_pair_t *pair)
{
    EVP_PKEY_free(pair->key);
    X509_free(pair->cert);
}


static int
authority_pair_is_new(const authority_pair_t *pair, char *error)
{
    const char  *path;

    path = access(pair->cert_path, F_OK) == 0 ? pair->cert_path
           : access(pair->key_path, F_OK) == 0 ? pair->key_path : NULL;

    if (path == NULL) {
        return 0;
    }

    return authority_fail(error, path, "is there already, and --force would "
                          "replace it");
}


/* --- making a certificate */

static int
authority_extend(X509 *cert, X509 *issuer, const authority_extension_t *all,
    size_t n)
{
    int              rc;
    size_t           i;
    X509V3_CTX       context;
    X509_EXTENSION  *one;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);

    for (i = 0; i < n; i++) {
        one = X509V3_EXT_conf_nid(NULL, &context, all[i].nid, all[i].value);

        if (one == NULL) {
            return -1;
        }

        rc = X509_add_ext(cert, one, -1);
        X509_EXTENSION_free(one);

        if (rc != 1) {
            return -1;
        }
    }

    return 0;
}


static int
authority_number(X509 *cert)
{
    int      rc;
    BIGNUM  *serial;

    serial = BN_new();
    rc = serial != NULL
         && BN_rand(serial, AUTHORITY_SERIAL_BITS, BN_RAND_TOP_ANY,
                    BN_RAND_BOTTOM_ANY) == 1
         && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)) != NULL;
    BN_free(serial);

    return rc ? 0 : -1;
}


static int
authority_entitle(X509 *cert, const char *name)
{
    X509_NAME  *subject;

    subject = X509_get_subject_name(cert);

    return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                      (const uint8_t *) name, -1, -1, 0) == 1
           ? 0 : -1;
}


/* Makes a certificate with a new key; issuer NULL: it signs itself. */
static int
authority_make(authority_pair_t *pair, const authority_pair_t *issuer,
    const char *name, int days, const authority_extension_t *all, size_t n)
{
    X509              *cert;
    const ASN1_TIME   *end;

    if (issuer == NULL) {
        issuer = pair;
    }

    pair->key = EVP_EC_gen("P-256");
    pair->cert = cert = X509_new();

    if (pair->key == NULL || cert == NULL
        || X509_set_version(cert, X509_VERSION_3) != 1
        || authority_number(cert) != 0
        || authority_entitle(cert, name) != 0
        || X509_set_issuer_name(cert, X509_get_subject_name(issuer->cert))
           != 1
        || X509_set_pubkey(cert, pair->key) != 1
        || X509_gmtime_adj(X509_getm_notBefore(cert), -AUTHORITY_BEFORE_S)
           == NULL
        || X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) == NULL
        || authority_extend(cert, issuer->cert, all, n) != 0)
    {
        return -1;
    }

    /* it must not outlast the issuer's certificate */

    end = X509_get0_notAfter(issuer->cert);

    if (ASN1_TIME_compare(X509_get0_notAfter(cert), end) > 0
        && X509_set1_notAfter(cert, end) != 1)
    {
        return -1;
    }

    return X509_sign(cert, issuer->key, EVP_sha256()) > 0 ? 0 : -1;
}


/* --- files */

static int
authority_put(const char *path, mode_t mode, BIO *text, char *error)
{
    int    fd, fault, is_whole;
    char   temporary[PATH_MAX + 16], *data;
    long   len;

    len = BIO_get_mem_data(text, &data);
    snprintf(temporary, sizeof(temporary), "%s.new%d", path, (int) getpid());
    fd = open(temporary, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC|O_NOFOLLOW, mode);

    if (fd == -1) {
        return authority_fail(error, path, strerror(errno));
    }

    is_whole = write(fd, data, (size_t) len) == len && fsync(fd) == 0;
    fault = errno;
    close(fd);

    if (is_whole) {

        if (rename(temporary, path) == 0) {
            return 0;
        }

        fault = errno;
    }

    unlink(temporary);

    return authority_fail(error, path, strerror(fault));
}


/* The key is written first, so that a reader that finds the new certificate
   finds its key, too. */
static int
authority_pair_write(const authority_pair_t *pair, char *error)
{
    int   rc;
    BIO  *key, *cert;

    rc = -1;
    key = BIO_new(BIO_s_mem());
    cert = BIO_new(BIO_s_mem());

    if (key == NULL || cert == NULL
        || PEM_write_bio_PKCS8PrivateKey(key, pair->key, NULL, NULL, 0, NULL,
                                         NULL) != 1
        || PEM_write_bio_X509(cert, pair->cert) != 1)
    {
        snprintf(error, AUTHORITY_ERROR_BYTES, "out of memory");

    } else if (authority_put(pair->key_path, 0600, key, error) == 0) {
        rc = authority_put(pair->cert_path, 0644, cert, error);
    }

    BIO_free(key);
    BIO_free(cert);

    return rc;
}


/* Without this, OpenSSL would ask for a passphrase on the terminal. */
static int
authority_no_passphrase(char *buf, int size, int is_written, void *data)
{
    return -1;
}


static int
authority_pair_read(authority_pair_t *pair, char *error)
{
    FILE  *f;

    f = fopen(pair->cert_path, "re");

    if (f == NULL) {
        return authority_fail(error, pair->cert_path, errno == ENOENT
                              ? "there is no CA here: llmgwctl certs init DIR "
                                "makes one" : strerror(errno));
    }

    pair->cert = PEM_read_X509(f, NULL, authority_no_passphrase, NULL);
    fclose(f);

    if (pair->cert == NULL) {
        return authority_fail(error, pair->cert_path,
                              "there is no certificate in it, in PEM");
    }

    f = fopen(pair->key_path, "re");

    if (f == NULL) {
        return authority_fail(error, pair->key_path, strerror(errno));
    }

    pair->key = PEM_read_PrivateKey(f, NULL, authority_no_passphrase, NULL);
    fclose(f);

    if (pair->key == NULL) {
        return authority_fail(error, pair->key_path, "there is no private key "
                              "in it, in PEM and without a passphrase");
    }

    if (X509_check_private_key(pair->cert, pair->key) != 1) {
        return authority_fail(error, pair->key_path,
                              "this key is not the certificate's");
    }

    if (X509_cmp_current_time(X509_get0_notAfter(pair->cert)) < 0) {
        return authority_fail(error, pair->cert_path, "the CA has expired: "
                              "make another one, in another directory");
    }

    return 0;
}


/* --- the two operations */

int
authority_init(const authority_t *a, char *error)
{
    int               rc;
    char              name[32];
    uint8_t           random[4];
    authority_pair_t  pair;

    static const authority_extension_t  extensions[] = {
        { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
        { NID_key_usage, "critical,keyCertSign,cRLSign" },
        { NID_subject_key_identifier, "hash" }
    };

    if (mkdir(a->dir, 0755) != 0 && errno != EEXIST) {
        return authority_fail(error, a->dir, strerror(errno));
    }

    authority_pair_init(&pair, a->dir, "ca");

    if (!a->is_forced && authority_pair_is_new(&pair, error) != 0) {
        return -1;
    }

    /* so that people can tell two CAs apart */

    rc = -1;

    if (RAND_bytes(random, sizeof(random)) == 1) {
        snprintf(name, sizeof(name), "llmgw CA %02x%02x%02x%02x", random[0],
                 random[1], random[2], random[3]);
        rc = authority_make(&pair, NULL, name, a->days, extensions,
                            sizeof(extensions) / sizeof(extensions[0]));
    }

    if (rc != 0) {
        snprintf(error, AUTHORITY_ERROR_BYTES, "OpenSSL makes no certificate");

    } else {
        rc = authority_pair_write(&pair, error);
    }

    authority_pair_done(&pair);

    return rc;
}


/*
 * Appends KIND:NAME for each name of a list; all of them were checked before.
 */
static int
authority_alternatives(char *text, const char *kind, const char *list)
{
    size_t  n, at;

    for ( /* void */ ; list != NULL; list = list[n] ? list + n + 1 : NULL) {
        n = strcspn(list, ",");
        at = strlen(text);

        if (at + n + sizeof(",DNS:") > AUTHORITY_NAMES_BYTES) {
            return -1;
        }

        sprintf(text + at, "%s%s:%.*s", at > 0 ? "," : "", kind, (int) n,
                list);
    }

    return 0;
}


int
authority_issue(const authority_t *a, const char *name, const char *names,
    const char *ips, char *error)
{
    int               rc;
    char              alternatives[AUTHORITY_NAMES_BYTES];
    authority_pair_t  ca, pair;

    const authority_extension_t  extensions[] = {
        { NID_basic_constraints, "critical,CA:FALSE" },
        { NID_key_usage, "critical,digitalSignature" },
        { NID_ext_key_usage, "serverAuth,clientAuth" },
        { NID_subject_key_identifier, "hash" },
        { NID_authority_key_identifier, "keyid" },
        { NID_subject_alt_name, alternatives }
    };

    alternatives[0] = '\0';

    if (authority_alternatives(alternatives, "DNS", name) != 0
        || authority_alternatives(alternatives, "DNS", names) != 0
        || authority_alternatives(alternatives, "IP", ips) != 0)
    {
        snprintf(error, AUTHORITY_ERROR_BYTES, "too many names");
        return -1;
    }

    authority_pair_init(&ca, a->dir, "ca");
    authority_pair_init(&pair, a->dir, name);
    rc = a->is_forced ? 0 : authority_pair_is_new(&pair, error);

    if (rc == 0) {
        rc = authority_pair_read(&ca, error);
    }

    if (rc == 0) {
        rc = authority_make(&pair, &ca, name, a->days, extensions,
                            sizeof(extensions) / sizeof(extensions[0]));

        if (rc != 0) {
            snprintf(error, AUTHORITY_ERROR_BYTES,
                     "OpenSSL makes no certificate");

        } else {
            rc = authority_pair_write(&pair, error);
        }
    }

    authority_pair_done(&ca);
    authority_pair_done(&pair);

    return rc;
}
