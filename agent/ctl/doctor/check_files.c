
/*
 * Checks the files that the processes are given, and the places where they
 * write.
 */

#include <stdlib.h>

#include "ctl/doctor/check_inner.h"


#define CHECK_DAY_MS          86400000LL

/* Certificates of 90 days are usually renewed when a third of that is left. */
#define CHECK_CERT_SOON_MS    (14 * CHECK_DAY_MS)

#define CHECK_DISK_FULL       10        /* permille of the disk that is free */
#define CHECK_DISK_LITTLE     50
#define CHECK_MEMORY_LITTLE   50

/* Permission bits of a mode. */
#define CHECK_OTHERS_READ     04
#define CHECK_OTHERS_WRITE    02
#define CHECK_GROUP_WRITE     020


static json_int_t
check_now_ms(const json_t *facts)
{
    return ctl_number(json_object_get(facts, "ctl"), "now_ms");
}


static void
check_cert_time(const json_t *cert, json_int_t now_ms, doctor_report_t *report)
{
    json_int_t   left_ms;
    const char  *file;

    file = ctl_text(cert, "file");
    left_ms = ctl_number(cert, "until_ms") - now_ms;

    if (left_ms <= 0) {
        doctor_say(report, DOCTOR_WRONG, "issue it again",
                   "%s expired %.1f days ago", file,
                   -left_ms / (double) CHECK_DAY_MS);

    } else if (ctl_number(cert, "from_ms") > now_ms) {
        doctor_say(report, DOCTOR_WRONG, "set the clock of this host",
                   "%s is not valid yet", file);

    } else if (left_ms < CHECK_CERT_SOON_MS) {
        doctor_say(report, DOCTOR_WARNING, "issue it again",
                   "%s expires in %.1f days", file,
                   left_ms / (double) CHECK_DAY_MS);
    }
}


void
doctor_check_certs(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *cert;
    json_int_t   mode;
    const char  *error;

    json_array_foreach(json_object_get(facts, "certs"), i, cert) {
        error = ctl_text(cert, "error");
        mode = ctl_number(cert, "mode");

        if (json_is_true(json_object_get(cert, "is_denied"))) {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "%s: %s",
                       ctl_text(cert, "file"), error);

        } else if (error[0] != '\0') {
            doctor_say(report, DOCTOR_WRONG,
                       "put a certificate in PEM there",
                       "%s: %s", ctl_text(cert, "file"), error);

        } else if (json_is_true(json_object_get(cert, "is_key"))) {
            if (mode & CHECK_OTHERS_READ) {
                doctor_say(report, DOCTOR_WRONG,
                           "chmod 0600, and issue it again if the host has "
                           "other users",
                           "the private key %s is readable by all",
                           ctl_text(cert, "file"));
            }

        } else {
            check_cert_time(cert, check_now_ms(facts), report);
        }
    }
}


static void
check_keys_mode(const json_t *keys, doctor_report_t *report)
{
    json_int_t   mode;
    const char  *file;

    mode = ctl_number(keys, "mode");
    file = ctl_text(keys, "file");

    if (mode & (CHECK_OTHERS_WRITE|CHECK_GROUP_WRITE)) {
        doctor_say(report, DOCTOR_WRONG, "chmod 0640",
                   "%s has mode 0%03o: others may add keys", file,
                   (unsigned) mode);

    } else if (mode & CHECK_OTHERS_READ) {
        doctor_say(report, DOCTOR_WARNING,
                   "chmod 0640, with the group of nginx's workers",
                   "%s has mode 0%03o: all users may read the names of "
                   "keys", file, (unsigned) mode);
    }
}


void
doctor_check_keys(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *keys;
    const char  *file;

    json_array_foreach(json_object_get(facts, "keys"), i, keys) {
        file = ctl_text(keys, "file");

        if (json_is_true(json_object_get(keys, "is_denied"))) {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "%s: %s", file,
                       ctl_text(keys, "error"));
            continue;
        }

        if (ctl_text(keys, "error")[0] != '\0') {
            doctor_say(report, DOCTOR_WRONG,
                       "mend it: the keys that were read before stay in force "
                       "(llmgwctl keys check --file shows all errors)",
                       "%s: %s", file, ctl_text(keys, "error"));
            continue;
        }

        check_keys_mode(keys, report);

        if (ctl_number(keys, "expired") > 0) {
            doctor_say(report, DOCTOR_WARNING,
                       "remove their lines, or make new ones (llmgwctl keys "
                       "list shows which)",
                       "%s has %" JSON_INTEGER_FORMAT " expired keys", file,
                       ctl_number(keys, "expired"));
        }

        if (ctl_number(keys, "expiring") > 0) {
            doctor_say(report, DOCTOR_WARNING,
                       "make new ones (llmgwctl keys list shows which)",
                       "%" JSON_INTEGER_FORMAT " keys of %s end within a week",
                       ctl_number(keys, "expiring"), file);
        }
    }
}


static void
check_troubles(const json_t *facts, doctor_report_t *report)
{
    void        *at;
    json_t      *troubles;

    troubles = json_object_get(json_object_get(facts, "agent"), "troubles");

    for (at = json_object_iter(troubles); at != NULL;
         at = json_object_iter_next(troubles, at))
    {
        doctor_say(report, DOCTOR_WRONG,
                   "make room, or let the agent's user write there: it tries "
                   "again each second",
                   "the agent cannot write its %s: %s",
                   json_object_iter_key(at),
                   json_string_value(json_object_iter_value(at)));
    }
}


void
doctor_check_disk(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *disk;
    json_int_t   free_permille;

    check_troubles(facts, report);

    json_array_foreach(json_object_get(facts, "disks"), i, disk) {
        free_permille = ctl_number(disk, "free_permille");

        if (ctl_text(disk, "error")[0] != '\0') {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "%s: %s",
                       ctl_text(disk, "path"), ctl_text(disk, "error"));

        } else if (free_permille < CHECK_DISK_LITTLE) {
            doctor_say(report, free_permille < CHECK_DISK_FULL
                       ? DOCTOR_WRONG : DOCTOR_WARNING, "make room",
                       "the disk of %s has %.1f %% left",
                       ctl_text(disk, "path"), free_permille / 10.);
        }
    }
}


void
doctor_check_memory(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *memory;
    json_int_t   limit, available;

    json_array_foreach(json_object_get(facts, "memory"), i, memory) {
        limit = ctl_number(memory, "limit");
        available = ctl_number(memory, "available");

        if (available / CHECK_MEMORY_LITTLE < limit / 1000) {
            doctor_say(report, DOCTOR_WARNING,
                       "raise the limit of its control group (MemoryMax=), or "
                       "use less: llmgw_body_memory, llmgw_zone",
                       "%s has %.1f of %.1f GiB left; at 0 the kernel kills "
                       "it",
                       ctl_text(memory, "of"), available / 1073741824.,
                       limit / 1073741824.);
        }
    }
}
