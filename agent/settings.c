
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/child/words.h"
#include "agent/settings.h"
#include "state/state_file.h"
#include "swim/swim.h"


/* Without --grpc, a replica's gRPC port is its gossip port less this number. */
#define SETTINGS_PORT_DISTANCE  10000

#define settings_field(name)  offsetof(settings_t, name)


static const option_t  settings_table[] = {
    { .name = "id", .kind = OPTION_NAME, .offset = settings_field(id),
      .required = 1, .help = "this member's name in the cluster" },
    { .name = "role", .kind = OPTION_STRING, .metavar = "replica|gateway|shard",
      .offset = settings_field(role_name), .required = 1,
      .help = "what this agent runs beside" },
    { .name = "gossip", .kind = OPTION_ADDRESS, .required = 1,
      .offset = settings_field(gossip),
      .help = "where to listen for gossip (UDP, TCP)" },
    { .name = "advertise", .kind = OPTION_ADDRESS,
      .offset = settings_field(advertise),
      .help = "where others reach it, if at another address" },
    { .name = "join", .kind = OPTION_STRING,
      .metavar = "HOST:PORT,...", .offset = settings_field(join),
      .help = "gossip addresses of some members, to join through" },
    { .name = "grpc", .kind = OPTION_ADDRESS,
      .offset = settings_field(grpc),
      .help = "where the replica serves (gossip port - 10000)" },
    { .name = "control", .kind = OPTION_STRING, .metavar = "PATH",
      .offset = settings_field(control),
      .help = "control socket (" SETTINGS_RUN_DIR "/ID.sock)" },
    { .name = "members", .kind = OPTION_STRING, .metavar = "PATH",
      .offset = settings_field(members),
      .help = "the members segment to write for nginx" },
    { .name = "cluster", .kind = OPTION_NAME, .value = SETTINGS_CLUSTER,
      .offset = settings_field(cluster),
      .help = "members of other clusters are ignored" },
    { .name = "keyring", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = settings_field(keyring),
      .help = "file with the keys that encrypt gossip" },
    { .name = "tls-cert", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = settings_field(tls.cert),
      .help = "TLS to replicas: this agent's certificate" },
    { .name = "tls-key", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = settings_field(tls.key), .help = "and its key" },
    { .name = "tls-ca", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = settings_field(tls.ca),
      .help = "CA certificates of the replicas" },
    { .name = "insecure", .kind = OPTION_FLAG,
      .offset = settings_field(is_insecure),
      .help = "gossip with other hosts without a keyring" },
    { .name = "check", .kind = OPTION_FLAG,
      .offset = settings_field(is_check),
      .help = "check the options, and start nothing" },
    { .name = "state-dir", .kind = OPTION_STRING, .metavar = "DIR",
      .offset = settings_field(state_dir),
      .help = "keeps boot epoch, drain and version" },
    { .name = "weight", .kind = OPTION_INT, .value = "1",
      .offset = settings_field(weight), .min = 1, .max = 100,
      .help = "weight on the ring, 1 to 100" },
    { .name = "resume-group", .kind = OPTION_NAME, .metavar = "NAME",
      .offset = settings_field(resume_group),
      .help = "replicas of it continue each other's streams" },
    { .name = "protocol-period", .kind = OPTION_DURATION, .value = "500ms",
      .offset = settings_field(period_ms), .min = 20, .max = 60000,
      .help = "one member is pinged in each period" },
    { .name = "ping-timeout", .kind = OPTION_DURATION, .value = "200ms",
      .offset = settings_field(ping_timeout_ms), .min = 5, .max = 60000,
      .help = "then others are asked to ping it" },
    { .name = "suspect-timeout", .kind = OPTION_DURATION, .value = "2s",
      .offset = settings_field(suspect_timeout_ms), .min = 100,
      .max = 600000,
      .help = "time to refute, x max(1, log10(members))" },
    { .name = "indirect-probes", .kind = OPTION_INT, .value = "3",
      .offset = settings_field(indirect_probes), .min = 0,
      .max = SWIM_MAX_INDIRECT_PROBES,
      .help = "how many others are asked to ping" },
    { .name = "drain-timeout", .kind = OPTION_DURATION, .value = "25s",
      .offset = settings_field(drain_timeout_ms), .min = 0, .max = 86400000,
      .help = "time for running streams after SIGTERM" },
    { .name = "test-loss", .kind = OPTION_INT, .value = "0",
      .offset = settings_field(test_loss), .min = 0, .max = 99 },
    { .name = "test-shard-expiry", .kind = OPTION_DURATION, .value = "120s",
      .offset = settings_field(test_shard_expiry_ms), .min = 1,
      .max = 86400000 },
    { .name = NULL }
};

const options_spec_t  settings_spec = {
    .program = "llmgw-agent",
    .synopsis = "--id ID --role replica|gateway|shard --gossip HOST:PORT "
                "[options]\n                   [-- REPLICA COMMAND ...]",
    .summary = "Membership agent beside a replica, a shard or an nginx.",
    .table = settings_table
};


static int
settings_set_role(settings_t *settings, char *error)
{
    unsigned  role;

    for (role = 0; role <= LLMGW_ROLE_SHARD; role++) {
        if (strcmp(settings->role_name, llmgw_role_name(role)) == 0) {
            settings->role = (llmgw_role_t) role;
            return 0;
        }
    }

    snprintf(error, SETTINGS_ERROR_BYTES,
             "--role: \"%.64s\" is none of replica, gateway, shard",
             settings->role_name);

    return -1;
}


static int
settings_resolve(const char *option, const char *text, address_t *address,
    char *error)
{
    char  reason[128];

    if (address_resolve(text, address, reason) != 0) {
        snprintf(error, SETTINGS_ERROR_BYTES, "%s: %s", option, reason);
        return -1;
    }

    return 0;
}


static int
settings_set_gossip(settings_t *settings, address_t *advertised, char *error)
{
    if (settings_resolve("--gossip", settings->gossip,
                         &settings->bind_address, error) != 0)
    {
        return -1;
    }

    *advertised = settings->bind_address;

    if (settings->advertise != NULL
        && settings_resolve("--advertise", settings->advertise, advertised,
                            error) != 0)
    {
        return -1;
    }

    if (address_is_wildcard(advertised)) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "--advertise is required where --gossip is a wildcard "
                 "address, and is none itself");
        return -1;
    }

    address_format(advertised, settings->advertised);

    return 0;
}


static int
settings_set_grpc(settings_t *settings, const address_t *advertised,
    char *error)
{
    unsigned  port;

    if (settings->role == LLMGW_ROLE_GATEWAY) {
        return 0;
    }

    settings->grpc_address = *advertised;
    port = address_port(&settings->bind_address);

    if (settings->grpc != NULL) {
        if (settings_resolve("--grpc", settings->grpc,
                             &settings->grpc_address, error) != 0)
        {
            return -1;
        }

        if (address_is_wildcard(&settings->grpc_address)) {
            snprintf(error, SETTINGS_ERROR_BYTES,
                     "--grpc is where others reach the replica, "
                     "no wildcard address");
            return -1;
        }

    } else if (port <= SETTINGS_PORT_DISTANCE) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "--grpc is required where the gossip port is %u or less",
                 SETTINGS_PORT_DISTANCE);
        return -1;

    } else {
        address_set_port(&settings->grpc_address,
                         port - SETTINGS_PORT_DISTANCE);
    }

    address_format(&settings->grpc_address, settings->grpc_text);

    return 0;
}


static int
settings_set_control(settings_t *settings, char *error)
{
    int  n;

    if (settings->control != NULL) {
        n = snprintf(settings->control_path, PATH_MAX, "%s",
                     settings->control);

    } else {
        n = snprintf(settings->control_path, PATH_MAX, "%s/%s.sock",
                     SETTINGS_RUN_DIR, settings->id);
    }

    if (n >= PATH_MAX) {
        snprintf(error, SETTINGS_ERROR_BYTES, "--control: name too long");
        return -1;
    }

    return 0;
}


int
settings_set_command(settings_t *settings, int argc, char **argv, int rest,
    char *error)
{
    if (rest < argc && strcmp(argv[rest - 1], "--") != 0) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "unexpected \"%.64s\" (a replica's command follows \"--\")",
                 argv[rest]);
        return -1;
    }

    if (rest == argc && strcmp(argv[argc - 1], "--") == 0) {
        snprintf(error, SETTINGS_ERROR_BYTES, "no command after \"--\"");
        return -1;
    }

    settings->command = rest < argc ? &argv[rest] : NULL;

    return 0;
}


/*
 * Sets the value of "{version}": the version last ordered, if the state
 * directory has it; otherwise that of the environment.
 */
static int
settings_set_version(settings_t *settings, char *error)
{
    char  kept[STATE_FILE_BYTES], *version;

    if (settings->command == NULL) {
        return 0;
    }

    version = getenv(SETTINGS_VERSION_ENV);

    switch (state_file_read(settings->state_dir, settings->id,
                            SETTINGS_VERSION_FILE, kept))
    {
    case 1:
        settings->is_version_kept = 1;
        version = kept;
        break;

    case -1:
        snprintf(error, SETTINGS_ERROR_BYTES, "the version that is kept in "
                 "\"%.128s\" is not read: %s", settings->state_dir,
                 strerror(errno));
        return -1;
    }

    if (version == NULL) {

        if (words_have(settings->command, WORDS_VERSION)) {
            snprintf(error, SETTINGS_ERROR_BYTES,
                     "the command wants " WORDS_VERSION ": set "
                     SETTINGS_VERSION_ENV " to what it is at first");
            return -1;
        }

        return 0;
    }

    if (!llmgw_name_is_valid(version, strlen(version))) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "%s: \"%.64s\" is no version (letters, digits, '.', '_', "
                 "'-'; 63 at most)",
                 settings->is_version_kept ? "the version that is kept in "
                 "--state-dir" : SETTINGS_VERSION_ENV, version);
        return -1;
    }

    strcpy(settings->version, version);

    return 0;
}


/* Without a keyring each host that reaches the gossip port can speak for any
   member. */
static int
settings_check_doors(const settings_t *settings, char *error)
{
    static const char *const  names[TLS_NFILES] = {
        "--tls-cert", "--tls-key", "--tls-ca"
    };

    if (tls_files_check(&settings->tls, names, 1, error) != 0) {
        return -1;
    }

    if (settings_is_exposed(settings) && settings->keyring == NULL
        && !settings->is_insecure)
    {
        snprintf(error, SETTINGS_ERROR_BYTES, "--gossip: \"%.80s\" is not "
                 "loopback, so an agent needs --keyring FILE, with a line as "
                 "\"openssl rand -base64 32\" writes it, or --insecure where "
                 "everybody on the network may speak for any member",
                 settings->gossip);
        return -1;
    }

    return 0;
}


int
settings_complete(settings_t *settings, char *error)
{
    address_t  advertised;

    if (settings->ping_timeout_ms >= settings->period_ms) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "--ping-timeout must be below --protocol-period");
        return -1;
    }

    if (settings_set_role(settings, error) != 0
        || settings_set_gossip(settings, &advertised, error) != 0
        || settings_set_grpc(settings, &advertised, error) != 0
        || settings_set_control(settings, error) != 0
        || settings_check_doors(settings, error) != 0)
    {
        return -1;
    }

    if (settings->resume_group != NULL && settings->role == LLMGW_ROLE_SHARD) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "--resume-group is a replica's: a shard has no streams");
        return -1;
    }

    if (settings->command != NULL && settings->role == LLMGW_ROLE_GATEWAY) {
        snprintf(error, SETTINGS_ERROR_BYTES,
                 "a gateway's agent has no replica to run \"%.64s\" for",
                 settings->command[0]);
        return -1;
    }

    return settings_set_version(settings, error);
}


int
settings_is_exposed(const settings_t *settings)
{
    return !address_is_loopback(&settings->bind_address);
}


int
settings_has_default_cluster(const settings_t *settings)
{
    return strcmp(settings->cluster, SETTINGS_CLUSTER) == 0;
}
