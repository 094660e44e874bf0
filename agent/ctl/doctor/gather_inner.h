
/* Private to the gathering of facts. */

#ifndef DOCTOR_GATHER_INNER_H
#define DOCTOR_GATHER_INNER_H

#include "ctl/doctor/conf.h"
#include "ctl/doctor/gather.h"
#include "ctl/field.h"


/* So long a service may take to answer. */
#define GATHER_LIMIT_MS    3000

/* Ports and replicas of so many members are asked, all at once. */
#define GATHER_MAX_MEMBERS  256

/* {"why": TEXT} */
json_t *gather_why(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* A fact, or NULL where it could not be had. */
json_t *gather_had(const json_t *facts, const char *name);

/* The whole file, to be freed; NULL and errno. */
char *gather_read(const char *path, size_t max, size_t *len);

/* gather_nginx.c */
json_t *gather_conf(const ctl_t *ctl);
json_t *gather_workers(const json_t *facts);

/* The status page's address as the configuration has it; is_h2: without
   HTTP/1.1.  NULL: there is none.  To be freed. */
char *gather_page_url(const json_t *conf, int *is_h2);

/* A path of the configuration; full has GATHER_PATH_BYTES.  NULL: a value with
   variables, say. */
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
    char        *words;                 /* to be freed; the others are in it */
    const char  *url;
    const char  *key_file;              /* NULL: not given */
    const char  *ca_file;
} gather_adapter_t;

/* The one that reports at this socket.  1, or 0: none that has an engine's URL
   on its command line. */
int gather_adapter(const char *socket, gather_adapter_t *adapter);

/* gather_net.c: gateway, page, ports, replicas, engines. */
void gather_net(const ctl_t *ctl, json_t *facts);

#endif /* DOCTOR_GATHER_INNER_H */
