
/*
 * The command line of llmgw-agent: options as given, and values derived from
 * them.
 */

#ifndef SETTINGS_H
#define SETTINGS_H

#include <limits.h>

#include "common/address.h"
#include "common/options.h"
#include "common/tls/context.h"
#include "proto/members/members.h"


#define SETTINGS_RUN_DIR      "/run/llmgw"
#define SETTINGS_CLUSTER      "default"
/* In the state directory, ID.NAME: state/state_file.h. */
#define SETTINGS_DRAIN_FILE   "drain"
#define SETTINGS_VERSION_FILE "version"

#define SETTINGS_VERSION_ENV  "LLMGW_VERSION"
#define SETTINGS_ERROR_BYTES  512

typedef struct {
    /* options as given */
    const char    *id;
    const char    *role_name;
    const char    *gossip;
    const char    *advertise;
    const char    *join;
    const char    *grpc;
    const char    *control;
    const char    *members;
    const char    *cluster;
    const char    *keyring;         /* NULL: gossip is plain */
    const char    *state_dir;
    tls_files_t    tls;             /* all three, or none */
    int            is_insecure;
    int            is_check;
    const char    *resume_group;    /* NULL: the empty one */
    int64_t        weight;
    int64_t        indirect_probes;
    uint64_t       period_ms;
    uint64_t       ping_timeout_ms;
    uint64_t       suspect_timeout_ms;
    uint64_t       drain_timeout_ms;
    int64_t        test_loss;       /* percent of incoming datagrams */
    uint64_t       test_shard_expiry_ms;
    char *const   *command;         /* words of the replica's command; NULL:
                                       none */

    /* derived from the options */
    llmgw_role_t   role;
    address_t      bind_address;
    address_t      grpc_address;                /* of a replica or shard */
    char           advertised[ADDRESS_TEXT_BYTES];
    char           grpc_text[ADDRESS_TEXT_BYTES];   /* "" for a gateway */
    char           control_path[PATH_MAX];
    char           version[LLMGW_MEMBERS_NAME_BYTES];   /* of the command */
    int            is_version_kept;             /* version was ordered in an
                                                   earlier run */
} settings_t;

extern const options_spec_t  settings_spec;

/*
 * Takes the words from rest on, which are no options: after "--" they are the
 * replica's command, which must outlive the settings.  0, or -1 and one line in
 * error.
 */
int settings_set_command(settings_t *settings, int argc, char **argv,
    int rest, char *error);

/*
 * Computes the derived values; names are resolved.  0, or -1 and one line in
 * error.
 */
int settings_complete(settings_t *settings, char *error);

/* 1: gossip can be reached from other machines. */
int settings_is_exposed(const settings_t *settings);

/* 1: the cluster has the default name, so another cluster may have the same. */
int settings_has_default_cluster(const settings_t *settings);

#endif /* SETTINGS_H */
