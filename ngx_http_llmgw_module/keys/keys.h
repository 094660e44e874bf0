
/*
 * Keys: the caller of a request, its limits, and its usage.
 *
 *   conf.c         llmgw_keys, llmgw_identity, llmgw_usage_log
 *   set.c          reads a key file; set_watch.c: reads it again
 *   zone.c         accounts in shared memory, for all workers
 *   credential.c   the key that a request brings
 *   caller.c       whose request it is, before its body is read
 *   account.c      what the caller takes and settles
 *   headers.c      x-ratelimit-... in each answer
 *   usage.c        records of what was used; usage_sweep.c: of dead workers
 *   state.c        who writes what was used, for restarts; state_write.c and
 *                  state_read.c: how
 *
 *   request --> caller.c --> enter() --> ... --> leave() --> record --> written
 *               refused      refused             exactly once
 *
 * A caller is found through the request's cleanup handlers, since an internal
 * redirect clears the contexts of modules; and the last of these handlers calls
 * leave().
 *
 * The zone's lock and that of an upstream's zone are never held together.
 */

#ifndef _NGX_HTTP_LLMGW_KEYS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_KEYS_H_INCLUDED_


#include "conf/conf.h"
#include "core/accounts/accounts.h"
#include "core/outcome.h"
#include "proto/keys/keys.h"


/* For the accounts of a few keys. */
#define NGX_HTTP_LLMGW_KEYS_ZONE_MIN  (128 * 1024)


/* Why a request has no caller: llmgw_auth_failures_total{reason}. */
typedef enum {
    NGX_HTTP_LLMGW_KEY_MISSING = 0,
    NGX_HTTP_LLMGW_KEY_MALFORMED,   /* of no known form */
    NGX_HTTP_LLMGW_KEY_UNKNOWN,
    NGX_HTTP_LLMGW_KEY_EXPIRED,     /* or revoked */
    NGX_HTTP_LLMGW_KEY_CONFLICT,    /* a header twice, or keys of two
                                       accounts */
    NGX_HTTP_LLMGW_KEY_NFAILURES
} ngx_http_llmgw_key_failure_t;


/* Identifies the content that a path had; all zero: none. */
typedef struct {
    uint64_t                      device;
    uint64_t                      inode;
    uint64_t                      size;
    uint64_t                      changed_ns;   /* its inode, and its bytes */
    uint64_t                      modified_ns;
} ngx_http_llmgw_key_file_t;


/* A key file as read.  It lives as long as it is used. */
typedef struct {
    llmgw_keys_t                 *keys;
    ngx_http_llmgw_key_file_t     file;
    uint64_t                      version;      /* of this content, in the
                                                   zone */
    ngx_uint_t                    refs;
} ngx_http_llmgw_key_set_t;


/* What all workers share, under the zone's lock unless marked otherwise. */
typedef struct {
    uint64_t                      magic;
    uint64_t                      layout;
    ngx_http_llmgw_key_file_t     file;         /* the file taken last, */
    uint64_t                      version;      /* with this version */
    ngx_http_llmgw_key_file_t     logged;       /* the content about which a
                                                   line was logged last */
    uint64_t                      swept_ms;     /* when slots were looked at */
    llmgw_accounts_t             *accounts;
    ngx_uint_t                    is_based;     /* state.h: earlier usage of
                                                   accounts is complete */
    ngx_atomic_t                  failures[NGX_HTTP_LLMGW_KEY_NFAILURES];
                                                /* no lock */
} ngx_http_llmgw_keys_shared_t;


typedef struct ngx_http_llmgw_key_watch_s  ngx_http_llmgw_key_watch_t;
typedef struct ngx_http_llmgw_books_file_s  ngx_http_llmgw_books_file_t;


/* llmgw_keys: a key file and its zone, in one configuration. */
struct ngx_http_llmgw_keys_s {
    ngx_str_t                     path;         /* NUL-terminated */
    ngx_str_t                     zone_name;
    size_t                        zone_size;
    ngx_uint_t                    gateways;
    ngx_str_t                     state;        /* NUL-terminated; or empty */
    u_char                       *file;         /* where the directive stands */
    ngx_uint_t                    line;

    ngx_shm_zone_t               *shm_zone;
    ngx_http_llmgw_main_conf_t   *main;
    ngx_http_llmgw_key_set_t     *set;          /* in force in this process */
    ngx_http_llmgw_key_watch_t   *watch;        /* in a worker, as all below */
    ngx_http_llmgw_books_file_t  *books;        /* for state=; also in the
                                                   master; NULL: none */
    llmgw_process_t               self;
    ngx_event_t                   tick;         /* once a second */
    ngx_uint_t                    failures[NGX_HTTP_LLMGW_KEY_NFAILURES];
                                                /* not logged yet */
    unsigned                      mended:1;     /* to be logged */
};


/* llmgw_usage_log */
struct ngx_http_llmgw_usage_log_s {
    ngx_open_file_t              *file;         /* NULL: no log */
    ngx_str_t                     path;         /* NUL-terminated */
    ngx_str_t                     gateway;
    unsigned                      failed:1;     /* a write failed, which was
                                                   logged */
};


/* llmgw_identity: variables; NULL: not given */
struct ngx_http_llmgw_identity_conf_s {
    ngx_http_complex_value_t     *name;
    ngx_http_complex_value_t     *models;
    ngx_http_complex_value_t     *class;
    ngx_http_complex_value_t     *tenant;
};


/* Whose a request is.  Texts live as long as the request. */
typedef struct {
    ngx_http_request_t           *request;
    ngx_http_llmgw_keys_t        *keys;
    ngx_http_llmgw_key_set_t     *set;          /* the request holds it */
    const llmgw_key_account_t    *account;      /* NULL: the request was
                                                   refused */
    ngx_str_t                     name;
    ngx_str_t                     models;       /* of its identity; empty: all
                                                   of its account's */
    ngx_str_t                     class;        /* empty: as llmgw_class says */
    ngx_str_t                     tenant;       /* empty: as llmgw_tenant
                                                   says */
    uint32_t                      slot;         /* LLMGW_NO_USAGE_SLOT: none */
    llmgw_accounts_answer_t       answer;       /* of its limits, if
                                                   has_answer */
    unsigned                      has_answer:1;
} ngx_http_llmgw_caller_t;


/* What a request is counted with. */
typedef struct {
    ngx_str_t                     model;        /* as the client calls it */
    ngx_str_t                     served;       /* as engines call it; or
                                                   empty */
    ngx_str_t                     class;
    ngx_str_t                     tenant;
    ngx_str_t                     request_id;
    size_t                        bytes;        /* of its prompt */
    uint64_t                      max_tokens;   /* of the answer; 0: not
                                                   given */
} ngx_http_llmgw_charge_t;


/* conf.c: the directives */
char *ngx_http_llmgw_keys_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_usage_log_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_identity_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* caller.c: adds the phase handler */
ngx_int_t ngx_http_llmgw_keys_init(ngx_conf_t *cf);

/*
 * To be called when a worker begins: starts to watch and to sweep; NGX_ERROR:
 * no memory.
 */
ngx_int_t ngx_http_llmgw_keys_worker(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_keys_worker_done(ngx_http_llmgw_main_conf_t *lmcf);

/* set.c: reads the file at once; NGX_ERROR: the reason was logged. */
ngx_int_t ngx_http_llmgw_key_set_load(ngx_conf_t *cf,
    ngx_http_llmgw_keys_t *keys);
ngx_http_llmgw_key_set_t *ngx_http_llmgw_key_set_create(llmgw_keys_t *keys,
    const ngx_http_llmgw_key_file_t *file);
void ngx_http_llmgw_key_set_release(ngx_http_llmgw_key_set_t *set);

/* Logs what is wrong with a file; EMERG: nginx does not start. */
void ngx_http_llmgw_key_error(const ngx_http_llmgw_keys_t *keys,
    const llmgw_keys_error_t *error, ngx_uint_t level, ngx_log_t *log);

/* Identifies the file at a path.  NGX_ERROR: errno has the reason. */
ngx_int_t ngx_http_llmgw_key_file_look(const char *path,
    ngx_http_llmgw_key_file_t *file);
ngx_uint_t ngx_http_llmgw_key_file_is(const ngx_http_llmgw_key_file_t *a,
    const ngx_http_llmgw_key_file_t *b);

/* set_watch.c: looks at the file each second */
ngx_int_t ngx_http_llmgw_key_watch_begin(ngx_http_llmgw_keys_t *keys,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_key_watch_end(ngx_http_llmgw_keys_t *keys);
void ngx_http_llmgw_key_watch_look(ngx_http_llmgw_keys_t *keys);

/* zone.c */
ngx_int_t ngx_http_llmgw_keys_zone_add(ngx_conf_t *cf,
    ngx_http_llmgw_keys_t *keys);

/*
 * Both return 1 if no worker has logged a line about this content of the file
 * yet, and note that this worker does.  publish also gives the set the version
 * of its content.
 */
ngx_uint_t ngx_http_llmgw_keys_logged(ngx_http_llmgw_keys_t *keys,
    const ngx_http_llmgw_key_file_t *file);
ngx_uint_t ngx_http_llmgw_keys_publish(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_key_set_t *set);

static ngx_inline ngx_http_llmgw_keys_shared_t *
ngx_http_llmgw_keys_shared(ngx_http_llmgw_keys_t *keys)
{
    return ((ngx_slab_pool_t *) keys->shm_zone->shm.addr)->data;
}

/*
 * Locks and returns the accounts, until unlock(): no system call and no logging
 * in between.
 */
llmgw_accounts_t *ngx_http_llmgw_keys_lock(ngx_http_llmgw_keys_t *keys);
void ngx_http_llmgw_keys_unlock(ngx_http_llmgw_keys_t *keys);
void ngx_http_llmgw_keys_now(llmgw_moment_t *now);

/*
 * credential.c: finds the key of the set that a request brings.  NGX_DECLINED:
 * no valid key; *failure has the reason.
 */
ngx_int_t ngx_http_llmgw_credential(ngx_http_request_t *r,
    ngx_http_llmgw_key_set_t *set, const llmgw_key_t **key,
    ngx_http_llmgw_key_failure_t *failure);

/* Empties the headers that may contain a key, before anything is passed on. */
void ngx_http_llmgw_credential_hide(ngx_http_request_t *r);

/* caller.c: counts a request without a valid key, also for the log. */
void ngx_http_llmgw_keys_failed(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_key_failure_t failure);

/* The request's caller; NULL: no keys are in force for it. */
ngx_http_llmgw_caller_t *ngx_http_llmgw_caller(ngx_http_request_t *r);

/* 1: the caller may use that model, or is NULL. */
ngx_uint_t ngx_http_llmgw_caller_may(const ngx_http_llmgw_caller_t *caller,
    const ngx_str_t *model);

/*
 * account.c: counts a request against all its limits and gives it a slot, or
 * does neither.  NGX_DECLINED: it is refused, and *end says why.
 */
ngx_int_t ngx_http_llmgw_caller_enter(ngx_http_llmgw_caller_t *caller,
    const ngx_http_llmgw_charge_t *charge, llmgw_end_t *end);

/* Settles the request, and writes its usage record; idempotent. */
void ngx_http_llmgw_caller_leave(ngx_http_llmgw_caller_t *caller,
    const llmgw_accounts_end_t *end);

/*
 * The caller's slot, in which its replicas and tokens are noted while the
 * request runs.  NULL: it has none.
 */
llmgw_usage_slot_t *ngx_http_llmgw_caller_slot(
    const ngx_http_llmgw_caller_t *caller);

/* headers.c: adds the filter */
ngx_int_t ngx_http_llmgw_keys_headers_init(ngx_conf_t *cf);

/* usage.c: writes a record; if that fails, its slot stays SETTLED. */
void ngx_http_llmgw_usage_write_record(ngx_http_llmgw_keys_t *keys,
    uint32_t slot, const llmgw_usage_t *record);

/*
 * usage_sweep.c, each second in each worker: writes this worker's records that
 * are not written yet; and, in one of the workers, settles requests and writes
 * records of workers that have died.
 */
void ngx_http_llmgw_usage_sweep(ngx_http_llmgw_keys_t *keys);

/*
 * To be called when a worker ends: settles its own requests, too, as if it had
 * died.
 */
void ngx_http_llmgw_usage_end(ngx_http_llmgw_keys_t *keys);

/*
 * state.c: loads earlier usage into the accounts of a new zone. NGX_ERROR: the
 * reason was logged.
 */
ngx_int_t ngx_http_llmgw_books_start(ngx_http_llmgw_keys_t *keys,
    llmgw_accounts_t *accounts, ngx_log_t *log);

/* The birth of a zone that is being made, above that of the state. */
ngx_int_t ngx_http_llmgw_books_birth(ngx_http_llmgw_keys_t *keys,
    char birth[LLMGW_USAGE_BIRTH_BYTES], ngx_log_t *log);

/*
 * To be called in the master for each configuration that has the zone: its
 * generation then counts as alive until the last process that has this
 * configuration has released it or ended.  NGX_ERROR: the reason was logged.
 */
ngx_int_t ngx_http_llmgw_books_hold(ngx_http_llmgw_keys_t *keys,
    ngx_log_t *log);
void ngx_http_llmgw_books_release(ngx_http_llmgw_keys_t *keys);

/* Each second in each worker: one of the workers writes the state. */
void ngx_http_llmgw_books_tick(ngx_http_llmgw_keys_t *keys);

/*
 * To be called when a worker ends, after usage_end(): writes the state once
 * more.
 */
void ngx_http_llmgw_books_end(ngx_http_llmgw_keys_t *keys);


#endif /* _NGX_HTTP_LLMGW_KEYS_H_INCLUDED_ */
