
/* llmgwctl certs: a small CA for a fleet that has none.  It asks no agent. */

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ctl/certs/authority.h"
#include "ctl/main.h"
#include "proto/members/members.h"


#define CERTS_CA_DAYS     3650
#define CERTS_DAYS        90
#define CERTS_NAME_BYTES  254       /* of a host, and a NUL */

static const option_t  certs_table[] = {
    { .name = "ip", .kind = OPTION_STRING, .metavar = "A[,A]",
      .offset = offsetof(ctl_options_t, ips),
      .help = "issue: addresses that it names too" },
    { .name = "dns", .kind = OPTION_STRING, .metavar = "N[,N]",
      .offset = offsetof(ctl_options_t, names),
      .help = "issue: further names" },
    { .name = "days", .kind = OPTION_INT,
      .offset = offsetof(ctl_options_t, days), .min = 1, .max = 36500,
      .help = "how long it is valid (90; a CA's: 3650)" },
    { .name = "force", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_forced),
      .help = "replace files that are there, to renew" },
    { .name = NULL }
};

const options_spec_t  ctl_certs_spec = {
    .program = "llmgwctl certs",
    .synopsis = "init DIR [options] | certs issue DIR NAME [options]",
    .summary = "Makes a CA in DIR, or a key and a certificate that it signs.",
    .table = certs_table
};


static int
certs_is_name(const char *name, size_t len)
{
    char  text[CERTS_NAME_BYTES];

    if (len == 0 || len >= sizeof(text)) {
        return 0;
    }

    snprintf(text, sizeof(text), "%.*s", (int) len, name);

    return text[0] != '-' && text[0] != '.'
           && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-")] == '\0';
}


static int
certs_is_ip(const char *name, size_t len)
{
    char     text[CERTS_NAME_BYTES];
    uint8_t  address[16];

    if (len >= sizeof(text)) {
        return 0;
    }

    snprintf(text, sizeof(text), "%.*s", (int) len, name);

    return inet_pton(AF_INET, text, address) == 1
           || inet_pton(AF_INET6, text, address) == 1;
}


/* The first item of the list that is invalid; NULL: all are valid. */
static const char *
certs_stray(const char *list, int (*is_one)(const char *name, size_t len))
{
    size_t  n;

    for ( /* void */ ; list != NULL; list = list[n] ? list + n + 1 : NULL) {
        n = strcspn(list, ",");

        if (!is_one(list, n)) {
            return list;
        }
    }

    return NULL;
}


static int
certs_say(const ctl_t *ctl, const char *name)
{
    json_t      *made;
    const char  *dir;

    dir = ctl->words[0];

    if (ctl->is_json) {
        made = json_pack("{s:s+++, s:s+++}", "cert", dir, "/", name, ".crt",
                         "key", dir, "/", name, ".key");
        ctl_print_json(made);
        json_decref(made);

    } else {
        printf("%s/%s.crt\n%s/%s.key\n", dir, name, dir, name);
    }

    return CTL_DONE;
}


static int
certs_fail(const char *error)
{
    fprintf(stderr, "llmgwctl: %s\n", error);

    return CTL_FAILED;
}


int
ctl_certs_init(const ctl_t *ctl)
{
    char         error[AUTHORITY_ERROR_BYTES];
    authority_t  authority;

    if (ctl->options.ips != NULL || ctl->options.names != NULL) {
        return ctl_usage("a CA has no --ip and no --dns", NULL);
    }

    authority.dir = ctl->words[0];
    authority.is_forced = ctl->options.is_forced;
    authority.days = ctl->options.days != 0 ? ctl->options.days
                                            : CERTS_CA_DAYS;

    return authority_init(&authority, error) == 0 ? certs_say(ctl, "ca")
                                                  : certs_fail(error);
}


int
ctl_certs_issue(const ctl_t *ctl)
{
    char         error[AUTHORITY_ERROR_BYTES];
    const char  *name, *stray;
    authority_t  authority;

    name = ctl->words[1];

    if (!llmgw_name_is_valid(name, strlen(name)) || strcmp(name, "ca") == 0) {
        return ctl_usage("NAME is a member's id (letters, digits, '.', '_', "
                         "'-'; 63 at most; not ca), not", name);
    }

    stray = certs_stray(ctl->options.names, certs_is_name);

    if (stray != NULL) {
        return ctl_usage("--dns takes names of hosts, no wildcards, not",
                         stray);
    }

    stray = certs_stray(ctl->options.ips, certs_is_ip);

    if (stray != NULL) {
        return ctl_usage("--ip takes numeric addresses, without ports, not",
                         stray);
    }

    authority.dir = ctl->words[0];
    authority.is_forced = ctl->options.is_forced;
    authority.days = ctl->options.days != 0 ? ctl->options.days : CERTS_DAYS;

    return authority_issue(&authority, name, ctl->options.names,
                           ctl->options.ips, error) == 0
           ? certs_say(ctl, name) : certs_fail(error);
}
