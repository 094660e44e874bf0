
/* Private to the gathering of facts. */

#ifndef DOCTOR_GATHER_INNER_H
#define DOCTOR_GATHER_INNER_H

#include "ctl/doctor/conf.h"
#include "ctl/doctor/gather.h"
#include "ctl/field.h"


/* Time for a service to answer. */
#define GATHER_LIMIT_MS    3000

/* Most members whose ports and replicas are asked, all at once. */
#define GATHER_MAX_MEMBERS  256

/* Makes {"why": TEXT}. */
json_t *gather_why(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* A fact; NULL: it is missing. */
json_t *gather_had(const json_t *facts, const char *name);

/* Reads a whole file, to be freed; NULL and errno. */
char *gather_read(const char *path, size_t max, size_t *len);

/* gather_nginx.c */
json_t *gather_conf(const ctl_t *ctl);
json_t *gather_workers(const json_t *facts);

/* The status page's address by the configuration, to be freed; is_h2: the port
   has no HTTP/1.1.  NULL: there is none. */
char *gather_page_url(const json_t *conf, int *is_h2);

/* The full path for a path in the configuration; full has GATHER_PATH_BYTES.
   NULL: it cannot be known, for example because of variables. */
#define GATHER_PATH_BYTES  4096
const char *gather_path(const json_t *conf, const char *word, char *full);

/* gather_files.c */
json_t *gather_certs(const json_t *facts);
json_t *gather_keys(const json_t *facts);
json_t *gather_disks(const json_t *facts);
json_t *gather_segments(const json_t *facts);
json_t *gather_memory(const json_t *facts);

/* gather_adapter.c */
typedef struct {
    char        *words;                 /* to be freed; the other fields point
                                           into it */
    const char  *url;
    const char  *key_file;              /* NULL: not given */
    const char  *ca_file;
} gather_adapter_t;

/* Finds the adapter that reports at this socket.  1; 0: there is none with an
   engine's URL on its command line. */
int gather_adapter(const char *socket, gather_adapter_t *adapter);

/* gather_net.c: gateway, page, ports, replicas, engines. */
void gather_net(const ctl_t *ctl, json_t *facts);

#endif /* DOCTOR_GATHER_INNER_H */
