
/*
 * Accounts: how much each key may use and has used, in plain memory that all
 * workers share, one for each key file.
 *
 *   llmgw_accounts_t | accounts[n] | slots[n] | buckets[]
 *
 *   account  of one name: its limits, how full its buckets are, what it used in
 *            this day and month, and its totals.  Found by a hash of the name.
 *   slot     one request's, from its admission until its record is written.
 *
 * A slot's life:
 *
 *            take()             settle()              written()
 *   FREE --------------> RUNNING ---------> SETTLED -------------> FREE
 *                           |                  ^ |
 *                           +- settle_dead() --+ +- settle_dead(): once more
 *
 *   take()         all limits of the request are taken, or none; "streams" is
 *                  the number of the account's RUNNING slots
 *   settle()       the account pays what was used, the slot has its final
 *                  figures and the next record number n, and the caller gets
 *                  the record: unlock, write(2), lock, written()
 *   settle_dead()  the same for a slot whose process has died: a RUNNING one is
 *                  settled by what it had delivered.  For a SETTLED one it is
 *                  not known whether the record is in the log, so the caller
 *                  gets it once more, with its old n.  Readers drop duplicates
 *                  by n (proto/usage/record.h)
 *
 * A slot stays SETTLED until its record is written: when the disk is full, the
 * caller tries again.  When no slot is free, take() drops a record that is not
 * written yet, counts it as lost, and continues; its account has been charged
 * already.
 *
 * LOCK.  The caller holds the lock of this memory, and no other lock, in all
 * functions but those marked "no lock".  None makes a system call, and each
 * takes some microseconds: even if all accounts or slots are used, it looks at
 * no more than 256 of them for one that can be given up.
 *
 * KILL.  A process may be killed at any instruction.  Each change is made
 * between two stores of `dirty`, and touches at most one account, one slot, one
 * link of a list, and the words.  They are copied first (undo), and the next
 * holder of the lock puts the copies back: llmgw_accounts_mend(), before
 * anything else.  So a change has happened or it has not; a process killed in
 * settle() is settled by the sweep.  Only estimates are not copied
 * (estimate.h).
 *
 * A slot's owner stores `delivered`, `wasted`, `usage.served` and
 * `usage.replicas` while it is RUNNING, without the lock.  No other process
 * touches a slot as long as its owner lives.
 *
 * LIMITS.  For t since the account was added, in any order of requests,
 *
 *   rpm      admitted <= rpm + rpm / 60 x t
 *   tpm      prompt and answer are taken as estimated, and settled when known;
 *            the answer counts as min(max_tokens, the estimate, tpm / 4).  A
 *            request that needs more than all of the bucket is admitted when it
 *            is full.  What is missing then is a debt, which refilling pays off
 *   streams  RUNNING slots <= streams
 *   budget   refused when used + reserved >= budget; a request counts in the
 *            period in which it ends.  A clock that was set back opens no new
 *            period: the account stays in its last one until the clock is there
 *            again
 *
 * in integers: a bucket counts in 1/60000 of a request or token, so that a
 * minute's limit is exact in each ms.
 *
 * An account is given up for another name only when that changes nothing: it
 * has no slot, its buckets are full, and its budget's period is over or nothing
 * was used in it.  So a name that is removed and added again within its period
 * finds its account.
 *
 * MEMORY.  An account takes 296 bytes, a slot 1,048, and both together 8 of
 * buckets at most: 10,000 accounts and 10,000 slots take 13.5 MB.  All else
 * takes 36 kB, so that a zone of 16 MB is enough.  The memory has the same
 * address in all processes, so it holds pointers.  Zeroed memory is not ready:
 * llmgw_accounts_init().
 */

#ifndef LLMGW_ACCOUNTS_H
#define LLMGW_ACCOUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/accounts/estimate.h"
#include "proto/limits.h"
#include "proto/usage/record.h"
#include "proto/usage/sums.h"


#define LLMGW_NO_ACCOUNT      UINT32_MAX
#define LLMGW_NO_USAGE_SLOT   UINT32_MAX

/* One moment, given by the caller. */
typedef struct {
    uint64_t  ms;               /* monotonic: buckets, durations */
    uint64_t  unix_ms;          /* since 1970, UTC: periods, records */
} llmgw_moment_t;

/* A worker.  Its pid alone may belong to another process by now. */
typedef struct {
    pid_t     pid;
    uint64_t  started;          /* in clock ticks since boot */
} llmgw_process_t;

/* Sums since the zone was made. */
typedef struct {
    uint64_t  requests;         /* settled */
    uint64_t  refused;          /* by a limit */
    uint64_t  prompt;
    uint64_t  completion;
    uint64_t  cached;
    uint64_t  reasoning;
    uint64_t  wasted;
} llmgw_account_totals_t;

typedef struct {
    int64_t   level;            /* in 1/60000; below 0: a debt */
    uint64_t  filled_ms;
} llmgw_level_t;

typedef struct {
    char                    name[LLMGW_KEY_NAME_BYTES];     /* "": unused */
    uint32_t                next;       /* in its bucket, or of the free ones */
    uint32_t                running;    /* slots */
    uint32_t                settled;    /* slots */
    uint64_t                reserved;   /* sum over RUNNING slots */
    uint64_t                version;    /* of the limits */
    llmgw_limits_t          limits;
    llmgw_level_t           requests;
    llmgw_level_t           tokens;
    llmgw_sums_t            own;        /* settled in this zone */
    llmgw_sums_t            base;       /* brought by a start, see base() */
    llmgw_account_totals_t  totals;
} llmgw_account_t;

typedef enum {
    LLMGW_USAGE_FREE = 0,
    LLMGW_USAGE_RUNNING,
    LLMGW_USAGE_SETTLED
} llmgw_usage_state_t;

typedef struct {
    uint32_t         state;     /* llmgw_usage_state_t */
    uint32_t         account;
    uint32_t         next;      /* of the free ones */
    llmgw_process_t  owner;
    uint64_t         began_ms;  /* monotonic */
    uint64_t         bytes;     /* of the prompt */
    uint64_t         taken;     /* from the tokens bucket */
    uint64_t         reserved;  /* prompt and answer, as estimated */
    uint64_t         delivered; /* tokens so far; the owner sets it without the
                                   lock */
    uint64_t         wasted;    /* set like delivered */
    llmgw_usage_t    usage;     /* usage.prompt is estimated until settled */
} llmgw_usage_slot_t;

/* Words that change beside an account and a slot; pages show some of them. */
typedef struct {
    uint64_t                next_n;     /* of records; from 1 */
    uint64_t                lost;       /* records given up */
    uint32_t                accounts;   /* used so far are below this */
    uint32_t                slots;      /* used so far are below this */
    uint32_t                free_account;
    uint32_t                free_slot;
    uint32_t                running;    /* slots, of all accounts */
    uint32_t                settled;    /* slots, of all accounts */
    uint32_t                account_hand;   /* where to look for one that can
                                               be given up */
    uint32_t                slot_hand;
    llmgw_account_totals_t  gone;       /* of accounts given up */
} llmgw_accounts_words_t;

/* Copies of the words that a change may touch, from before the change. */
typedef struct {
    uint32_t                account;    /* LLMGW_NO_ACCOUNT: none */
    uint32_t                slot;       /* LLMGW_NO_USAGE_SLOT: none */
    uint32_t               *link;       /* NULL: none */
    uint32_t                linked;     /* its value */
    llmgw_accounts_words_t  words;
    llmgw_account_t         account_copy;
    llmgw_usage_slot_t      slot_copy;
} llmgw_accounts_undo_t;

/* Code outside accounts/ reads it under the lock, and changes nothing in it. */
typedef struct {
    uint32_t                dirty;
    uint32_t                n;          /* accounts, and slots */
    uint32_t                nbuckets;   /* a power of two */
    char                    birth[LLMGW_USAGE_BIRTH_BYTES];
    llmgw_account_t        *accounts;
    llmgw_usage_slot_t     *slots;
    uint32_t               *buckets;
    llmgw_accounts_words_t  words;
    llmgw_accounts_undo_t   undo;
    llmgw_estimates_t       estimates;
} llmgw_accounts_t;


/* A request that asks to be admitted.  Texts are cut to their fields' size. */
typedef struct {
    const char            *text;
    size_t                 len;
} llmgw_accounts_text_t;

typedef struct {
    llmgw_accounts_text_t  name;        /* of the account:
                                           llmgw_usage_name_is_valid() */
    llmgw_limits_t         limits;      /* this gateway's share of them */
    uint64_t               version;     /* of the limits; the greatest one
                                           counts, as some workers may not have
                                           read a changed file yet.  It grows as
                                           long as the zone lives, also over
                                           reloads */
    llmgw_process_t        owner;       /* this worker */
    uint64_t               bytes;       /* of the prompt */
    uint64_t               max_tokens;  /* of the answer; 0: not given */
    llmgw_accounts_text_t  tenant;
    llmgw_accounts_text_t  slo_class;
    llmgw_accounts_text_t  model;
    llmgw_accounts_text_t  request_id;
} llmgw_accounts_ask_t;

typedef enum {
    LLMGW_ADMITTED = 0,
    LLMGW_OVER_REQUESTS,        /* rpm */
    LLMGW_OVER_TOKENS,          /* tpm */
    LLMGW_OVER_STREAMS,
    LLMGW_OVER_BUDGET,
    LLMGW_ACCOUNTS_FULL         /* no account or no slot is left: 503; or the
                                   name is not valid */
} llmgw_admittance_t;

/* For x-ratelimit-... */
typedef struct {
    uint64_t               limit;       /* 0: no limit; the others are 0, too */
    uint64_t               remaining;   /* whole units; 0 in a debt */
    uint64_t               reset_ms;    /* until all of it is available */
} llmgw_rate_t;

typedef struct {
    llmgw_admittance_t     admittance;
    uint32_t               slot;        /* with ADMITTED */
    uint64_t               retry_ms;    /* if refused: when it may be admitted,
                                           at least 1; for a budget, when its
                                           period ends.  Of the limits that
                                           refuse it, the one with the longest
                                           time is named, but a budget before
                                           all others */
    llmgw_rate_t           requests;    /* after this request, */
    llmgw_rate_t           tokens;      /* with what it has reserved; not set
                                           with ACCOUNTS_FULL */
} llmgw_accounts_answer_t;

/*
 * How a request ended.  LLMGW_USAGE_UNKNOWN: for `prompt`, as estimated; for
 * completion and wasted, as the slot counted.
 */
typedef struct {
    uint64_t               prompt;
    uint64_t               completion;
    uint64_t               cached;
    uint64_t               reasoning;
    uint64_t               wasted;
    const char            *outcome;
    llmgw_settled_by_t     settled_by;
} llmgw_accounts_end_t;

#define LLMGW_USAGE_UNKNOWN  UINT64_MAX

/* A copy of an account, for showing or saving it. */
typedef struct {
    char                    name[LLMGW_KEY_NAME_BYTES];
    uint32_t                streams;
    uint64_t                reserved;
    llmgw_limits_t          limits;
    llmgw_rate_t            requests;
    llmgw_rate_t            tokens;
    llmgw_sums_t            sums;       /* own and base */
    uint64_t                n;          /* sums cover records up to this n of
                                           this zone */
    llmgw_account_totals_t  totals;
} llmgw_account_look_t;


/*
 * How many accounts, with as many slots, fit into that many bytes. nginx itself
 * uses a part of a zone, so the caller passes the rest.
 */
uint32_t llmgw_accounts_fit(size_t bytes);

/*
 * The number of bytes for n accounts and n slots; makes them in such memory,
 * which has to be zeroed and aligned to 8. birth: llmgw_usage_birth().
 */
size_t llmgw_accounts_bytes(uint32_t n);
llmgw_accounts_t *llmgw_accounts_init(void *memory, uint32_t n,
    const char *birth);

/*
 * To be called first whenever the lock was taken.  1: a process was killed in a
 * change, which is undone now.  If this call is interrupted, too, it is made
 * again.
 */
int llmgw_accounts_mend(llmgw_accounts_t *accounts);

/* Admits a request, which then has a slot, or refuses it. */
void llmgw_accounts_take(llmgw_accounts_t *accounts,
    const llmgw_accounts_ask_t *ask, const llmgw_moment_t *now,
    llmgw_accounts_answer_t *answer);

/*
 * A request of this process has ended.  1: the caller writes *record, then
 * calls written().  0: the slot is not RUNNING, or belongs to another process;
 * nothing was changed.  Estimates learn from requests that are
 * SETTLED_BY_ENGINE.
 */
int llmgw_accounts_settle(llmgw_accounts_t *accounts, uint32_t slot,
    llmgw_process_t self, const llmgw_accounts_end_t *end,
    const llmgw_moment_t *now, llmgw_usage_t *record);

/*
 * As llmgw_accounts_settle(), for a dead process: counts what it had delivered,
 * and the prompt if a replica was asked.  If the process had SETTLED the slot
 * itself, *record is the same again.
 */
int llmgw_accounts_settle_dead(llmgw_accounts_t *accounts, uint32_t slot,
    llmgw_process_t dead, const llmgw_moment_t *now, llmgw_usage_t *record);

/*
 * 1: the slot is SETTLED and belongs to that process, which could not write its
 * record: the caller writes *record, then calls written().
 */
int llmgw_accounts_unwritten(const llmgw_accounts_t *accounts, uint32_t slot,
    llmgw_process_t owner, llmgw_usage_t *record);

/*
 * Record n of that slot is in the log.  No effect if the record was given up.
 */
void llmgw_accounts_written(llmgw_accounts_t *accounts, uint32_t slot,
    uint64_t n);

/*
 * No lock: the next slot from `from` on that is not FREE, with its state and
 * its process; LLMGW_NO_USAGE_SLOT: no more.  The slot may change at once, so
 * the functions above check state and process again, under the lock.
 */
uint32_t llmgw_accounts_next_slot(const llmgw_accounts_t *accounts,
    uint32_t from, llmgw_usage_state_t *state, llmgw_process_t *owner);

/*
 * An account's usage before this zone was made, or in other zones of this
 * gateway (proto/usage/books.h): it replaces the value of an earlier call, so a
 * start that was interrupted may repeat it, and it counts against the budget.
 * If all of it was in periods that have ended, no account is added.  Returns 0;
 * -1: there is no account left.
 */
int llmgw_accounts_base(llmgw_accounts_t *accounts,
    llmgw_accounts_text_t name, const llmgw_sums_t *base,
    const llmgw_moment_t *now);

/* Copies the i-th account, from 0.  0: it is unused; -1: there are no more. */
int llmgw_accounts_look(const llmgw_accounts_t *accounts, uint32_t i,
    const llmgw_moment_t *now, llmgw_account_look_t *look);

/*
 * To be called by the owner, without the lock: sets the tokens delivered, or
 * wasted, so far.
 */
static inline void
llmgw_usage_slot_delivered(llmgw_usage_slot_t *slot, uint64_t tokens)
{
    __atomic_store_n(&slot->delivered, tokens, __ATOMIC_RELAXED);
}


static inline void
llmgw_usage_slot_wasted(llmgw_usage_slot_t *slot, uint64_t tokens)
{
    __atomic_store_n(&slot->wasted, tokens, __ATOMIC_RELAXED);
}

#endif /* LLMGW_ACCOUNTS_H */
