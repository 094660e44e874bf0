
/*
 * The facts that the doctor judges, as one JSON object.  Everything that takes
 * time or may fail is done here, with a limit for each wait; all questions to
 * other processes wait at the same time.
 *
 *     ctl       version, now_ms
 *     socket    path, error ("": its agent answered)
 *     agent     what it answers to "status"
 *     members   what it answers to "members"
 *     conf      nginx's configuration as a tree (conf.h)
 *     gateway   url of the status page, error
 *     page      what that answers
 *     workers   nginx's: pid, nofile, module, is_other_module, module_why
 *     segment   of each that is used here: path, age_ms, error
 *     ports     of members: id, of ("gossip", "gRPC"), address, error
 *     replicas  to be asked for their health: id, address, error, was_asked
 *     certs     files of TLS: file, is_key, mode, from_ms, until_ms, error
 *     keys      files of keys: file, mode, expired, expiring, error
 *     disks     that are written to: path, free_permille, error
 *     memory    of processes: of, limit, available
 *     engines   url, status, model, context, metrics_status, error, is_silent
 *
 * A fact that is missing is {"why": TEXT}.  is_denied beside an error: only
 * root may see it.
 */

#ifndef DOCTOR_GATHER_H
#define DOCTOR_GATHER_H

#include "ctl/main.h"


/* Gathers all facts; returns a new object. */
json_t *doctor_gather(const ctl_t *ctl);

#endif /* DOCTOR_GATHER_H */
