
/*
 * Facts about files that agent and nginx were given, and the places where they
 * write.
 */

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "common/os/memory.h"
#include "ctl/doctor/gather_inner.h"
#include "proto/keys/keys.h"
#include "proto/members/members.h"


#define GATHER_KEY_SOON_MS   (7 * 86400000ull)

typedef struct {
    const json_t  *conf;
    json_t        *list;                /* list of the facts */
    const char    *kind;
} gather_list_t;


/* Adds an entry; NULL: there is one already. */
static json_t *
gather_add(json_t *list, const char *name, const char *path)
{
    size_t   i;
    json_t  *one;

    json_array_foreach(list, i, one) {
        if (strcmp(ctl_text(one, name), path) == 0) {
            return NULL;
        }
    }

    one = json_pack("{s:s}", name, path);
    json_array_append_new(list, one);

    return one;
}


static void
gather_error(json_t *one, int error)
{
    json_object_set_new(one, "error", json_string(strerror(error)));

    if (error == EACCES || error == EPERM) {
        json_object_set_new(one, "is_denied", json_true());
    }
}


/* The list, or if it is empty, a missing fact. */
static json_t *
gather_or_why(json_t *list, const char *why)
{
    if (json_array_size(list) > 0) {
        return list;
    }

    json_decref(list);

    return gather_why("%s", why);
}


static json_int_t
gather_asn1_ms(const ASN1_TIME *time)
{
    struct tm  tm;

    return ASN1_TIME_to_tm(time, &tm) == 1 ? (json_int_t) timegm(&tm) * 1000
                                           : 0;
}


/* Times of the first certificate; of a file of CAs those of the one that lasts
   longest, since a replaced CA stays in the file for a while. */
static void
gather_cert_times(json_t *cert, FILE *f, int is_ca)
{
    X509        *x509;
    json_int_t   until_ms;

    while ((x509 = PEM_read_X509(f, NULL, NULL, NULL)) != NULL) {
        until_ms = gather_asn1_ms(X509_get0_notAfter(x509));

        if (until_ms > ctl_number(cert, "until_ms")) {
            json_object_set_new(cert, "until_ms", json_integer(until_ms));
            json_object_set_new(cert, "from_ms", json_integer(
                gather_asn1_ms(X509_get0_notBefore(x509))));
        }

        X509_free(x509);

        if (!is_ca) {
            return;
        }
    }
}


/* kind: of the option or directive, which tells what the file holds. */
static void
gather_cert(json_t *list, const char *kind, const char *path)
{
    FILE         *f;
    json_t       *cert;
    struct stat   st;

    cert = gather_add(list, "file", path);

    if (cert == NULL) {
        return;
    }

    if (stat(path, &st) == -1) {
        gather_error(cert, errno);
        return;
    }

    if (strstr(kind, "key") != NULL) {
        json_object_set_new(cert, "is_key", json_true());
        json_object_set_new(cert, "mode", json_integer(st.st_mode & 07777));
        return;
    }

    f = fopen(path, "re");

    if (f == NULL) {
        gather_error(cert, errno);
        return;
    }

    gather_cert_times(cert, f, strstr(kind, "trusted") != NULL
                               || strstr(kind, "-ca") != NULL);
    fclose(f);

    if (json_object_get(cert, "until_ms") == NULL) {
        json_object_set_new(cert, "error",
                            json_string("there is no certificate in it"));
    }
}


static void
gather_cert_of_conf(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    char            path[GATHER_PATH_BYTES];
    gather_list_t  *list = data;

    (void) scope;

    if (gather_path(list->conf, conf_word(directive, 0), path) != NULL) {
        gather_cert(list->list, list->kind, path);
    }
}


json_t *
gather_certs(const json_t *facts)
{
    size_t          i;
    json_t         *value, *files;
    const char     *option;
    gather_list_t   list = { gather_had(facts, "conf"), json_array(), NULL };

    static const char  *directives[] = {
        "llmgw_ssl_certificate", "llmgw_ssl_certificate_key",
        "llmgw_ssl_trusted_certificate", "ssl_certificate",
        "ssl_certificate_key"
    };

    files = json_object_get(gather_had(facts, "agent"), "files");

    json_object_foreach(files, option, value) {
        if (strncmp(option, "tls-", 4) == 0) {
            gather_cert(list.list, option, json_string_value(value));
        }
    }

    for (i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
        list.kind = directives[i];
        conf_walk(list.conf, list.kind, gather_cert_of_conf, &list);
    }

    return gather_or_why(list.list, "neither agent nor nginx was given a "
                         "certificate");
}


static void
gather_count_keys(json_t *one, const llmgw_keys_t *keys, uint64_t now_ms)
{
    size_t    i;
    uint64_t  until_ms;
    unsigned  nexpired, nexpiring;

    nexpired = 0;
    nexpiring = 0;

    for (i = 1; i < keys->nkeys; i++) {
        until_ms = keys->keys[i].until_ms;
        nexpired += until_ms <= now_ms;
        nexpiring += until_ms > now_ms
                     && until_ms - now_ms <= GATHER_KEY_SOON_MS;
    }

    json_object_set_new(one, "expired", json_integer(nexpired));
    json_object_set_new(one, "expiring", json_integer(nexpiring));
}


/* Parses a key file's text, which is taken over. */
static void
gather_parse_keys(json_t *one, char *text, size_t len, uint64_t now_ms)
{
    llmgw_keys_t        *keys;
    llmgw_keys_rc_t      rc;
    llmgw_keys_error_t   error;

    keys = llmgw_keys_create(text, len);

    if (keys == NULL) {
        free(text);
        gather_error(one, ENOMEM);
        return;
    }

    do {
        rc = llmgw_keys_step(keys, LLMGW_KEYS_STEP_LINES, &error);
    } while (rc == LLMGW_KEYS_MORE);

    if (rc == LLMGW_KEYS_ERROR) {
        json_object_set_new(one, "error", json_sprintf(
            "line %u: %s", (unsigned) error.line, error.text));

    } else if (rc == LLMGW_KEYS_ENOMEM) {
        gather_error(one, ENOMEM);
    }

    gather_count_keys(one, keys, now_ms);
    llmgw_keys_destroy(keys);
}


static void
gather_keys_of_conf(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    char           *text, path[GATHER_PATH_BYTES];
    size_t          len;
    json_t         *one;
    struct stat     st;
    gather_list_t  *list = data;

    (void) scope;

    if (strcmp(conf_word(directive, 0), "off") == 0
        || gather_path(list->conf, conf_word(directive, 0), path) == NULL)
    {
        return;
    }

    one = gather_add(list->list, "file", path);

    if (one == NULL) {
        return;
    }

    text = stat(path, &st) == 0
           ? gather_read(path, LLMGW_KEY_FILE_MAX, &len) : NULL;

    if (text == NULL) {
        gather_error(one, errno);
        return;
    }

    json_object_set_new(one, "mode", json_integer(st.st_mode & 07777));
    gather_parse_keys(one, text, len, (uint64_t) time(NULL) * 1000);
}


json_t *
gather_keys(const json_t *facts)
{
    gather_list_t  list = { gather_had(facts, "conf"), json_array(), NULL };

    if (list.conf == NULL) {
        json_decref(list.list);
        return gather_why("nginx's configuration is not known");
    }

    conf_walk(list.conf, "llmgw_keys", gather_keys_of_conf, &list);

    return gather_or_why(list.list, "there is no llmgw_keys");
}


static void
gather_disk(json_t *list, const char *path)
{
    json_t          *disk;
    struct statvfs   fs;

    disk = path[0] != '\0' ? gather_add(list, "path", path) : NULL;

    if (disk == NULL) {
        return;
    }

    if (statvfs(path, &fs) == -1) {
        gather_error(disk, errno);

    } else if (fs.f_blocks > 0) {
        json_object_set_new(disk, "free_permille", json_integer(
            (json_int_t) (fs.f_bavail * 1000 / fs.f_blocks)));

    } else {
        json_object_set_new(disk, "free_permille", json_integer(1000));
    }
}


/* Adds the disk of a file's directory; the file may not exist yet. */
static void
gather_disk_of(json_t *list, const char *file)
{
    char   dir[GATHER_PATH_BYTES];
    char  *slash;

    snprintf(dir, sizeof(dir), "%s", file);
    slash = strrchr(dir, '/');

    if (slash != NULL) {
        slash[slash == dir] = '\0';
        gather_disk(list, dir);
    }
}


static void
gather_disk_of_conf(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    char            path[GATHER_PATH_BYTES];
    size_t          i;
    const char     *word;
    gather_list_t  *list = data;

    (void) scope;

    for (i = 0; (word = conf_word(directive, i))[0] != '\0'; i++) {

        if (strncmp(word, "state=", 6) == 0) {
            word += 6;

        } else if (strcmp(list->kind, "llmgw_usage_log") != 0 || i > 0) {
            continue;
        }

        if (strcmp(word, "off") != 0
            && gather_path(list->conf, word, path) != NULL)
        {
            gather_disk_of(list->list, path);
        }
    }
}


json_t *
gather_disks(const json_t *facts)
{
    json_t         *agent;
    gather_list_t   list = { gather_had(facts, "conf"), json_array(), NULL };

    agent = gather_had(facts, "agent");
    gather_disk(list.list, ctl_text(json_object_get(agent, "files"),
                                    "state-dir"));
    gather_disk_of(list.list, ctl_text(agent, "segment"));

    list.kind = "llmgw_keys";
    conf_walk(list.conf, list.kind, gather_disk_of_conf, &list);
    list.kind = "llmgw_usage_log";
    conf_walk(list.conf, list.kind, gather_disk_of_conf, &list);

    return list.list;
}


static void
gather_segment(json_t *list, const char *path)
{
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    json_t                  *segment;
    struct timespec          now;
    llmgw_members_rc_t       rc;
    llmgw_members_view_t     view;
    llmgw_members_reader_t  *reader;

    segment = path[0] != '\0' ? gather_add(list, "path", path) : NULL;
    reader = segment != NULL ? llmgw_members_reader_create(path) : NULL;

    if (reader == NULL) {
        return;
    }

    memset(&view, 0, sizeof(view));
    error[0] = '\0';
    rc = llmgw_members_read(reader, &view, error);
    clock_gettime(CLOCK_MONOTONIC, &now);

    if (rc == LLMGW_MEMBERS_DONE) {
        json_object_set_new(segment, "age_ms", json_integer(
            (json_int_t) now.tv_sec * 1000 + now.tv_nsec / 1000000
            - (json_int_t) view.heartbeat_ms));
    } else {
        json_object_set_new(segment, "error", json_string(
            error[0] != '\0' ? error : rc == LLMGW_MEMBERS_ABSENT
            ? "it is not there" : "it cannot be read"));
    }

    llmgw_members_view_done(&view);
    llmgw_members_reader_destroy(reader);
}


static void
gather_segment_of_conf(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    char            path[GATHER_PATH_BYTES];
    gather_list_t  *list = data;

    (void) scope;

    if (gather_path(list->conf, conf_word(directive, 0), path) != NULL) {
        gather_segment(list->list, path);
    }
}


json_t *
gather_segments(const json_t *facts)
{
    gather_list_t  list = { gather_had(facts, "conf"), json_array(), NULL };

    if (list.conf == NULL) {
        gather_segment(list.list, ctl_text(gather_had(facts, "agent"),
                                           "segment"));
    }

    conf_walk(list.conf, "llmgw_members", gather_segment_of_conf, &list);

    return gather_or_why(list.list, "neither nginx nor the agent here has one");
}


static void
gather_memory_of(json_t *list, const char *of, json_int_t pid)
{
    char      process[32];
    memory_t  memory;

    if (pid <= 0) {
        return;
    }

    snprintf(process, sizeof(process), "%" JSON_INTEGER_FORMAT, pid);
    memory_read_process(&memory, "", process);

    if (memory.limit_bytes != UINT64_MAX
        && memory.available_bytes != UINT64_MAX)
    {
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "of", of,
                                  "limit", (json_int_t) memory.limit_bytes,
                                  "available",
                                  (json_int_t) memory.available_bytes));
    }
}


json_t *
gather_memory(const json_t *facts)
{
    json_t  *list;

    list = json_array();
    gather_memory_of(list, "the agent", ctl_number(gather_had(facts, "agent"),
                                                   "pid"));
    gather_memory_of(list, "nginx", ctl_number(json_array_get(
                         gather_had(facts, "workers"), 0), "pid"));

    return gather_or_why(list, "neither an agent nor nginx was found here");
}
