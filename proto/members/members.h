/*
 * The members segment: the agent's data for nginx, in shared memory.
 *
 * IDEA
 *
 * One writer (the agent) keeps a table of the cluster's members in a file on
 * tmpfs; any number of readers (nginx workers, tools) copy it.  Neither side
 * waits for the other: the table exists twice, the writer fills the copy that
 * is not in use and then flips, by one small write of the head.  A writer that
 * dies anywhere leaves the table that was in use before, whole.
 *
 * Readers do not map the file.  A process that may truncate a mapped file can
 * kill every process that maps it (SIGBUS), and nginx must outlive its agent,
 * an operator's "> segment" and a full tmpfs.  Readers pread() instead: from
 * tmpfs that never blocks and costs 0.35 us for the head (measured in
 * docs/adr/0001).  What a pread copies while the writer writes may be torn;
 * checksums and sequence numbers find that, and the reader tries again.
 *
 * FORMAT
 *
 * Integers are in the machine's own byte order: the file never leaves it.
 * Spare and reserved bytes are written as 0 and not looked at.  "Check" is
 * XXH3, 64 bits, seed 0 where nothing else is said.  C is the capacity in
 * records, R the bytes of a record: 512 are written, and up to 1024 read, in
 * steps of 64.
 *
 *   offset          bytes    what
 *   0               64       head
 *   64              4032     reserved
 *   4096            S        buffer 0
 *   4096 + S        S        buffer 1
 *                            S = 64 + C * (R + 64), rounded up to 4096
 *   4096 + 2 * S    4096     directory of the names area
 *   8192 + 2 * S    1 MiB    256 places of 4096 bytes for names
 *
 *   head                     rewritten whole by one aligned pwrite
 *   0               8        magic "LLMGWMBR"
 *   8               4        layout, 2
 *   12              4        capacity C, 1 .. LLMGW_MEMBERS_MAX
 *   16              8        generation, never 0
 *   24              8        sequence; buffer (sequence mod 2) is in use
 *   32              8        heartbeat, CLOCK_MONOTONIC ms; 0: none yet
 *   40              4        bytes of a record, R
 *   44              12       reserved
 *   56              8        check of bytes 0 .. 55
 *
 *   buffer
 *   0               64       buffer's header
 *   64              C * R    records, of which the first `count` count,
 *                            strictly ascending by id (as strcmp orders)
 *   64 + C * R      C * 64   load records; number i is of record i
 *
 *   buffer's header
 *   0               8        sequence of the publish that wrote it
 *   8               8        generation
 *   16              4        count, 0 .. C
 *   20              4        flags: bit 0 isolated, others 0
 *   24              8        check of the records, count * R bytes
 *   32              24       reserved
 *   56              8        check of bytes 0 .. 55
 *
 *   record                   llmgw_member_t as it stands below; strings end
 *                            with a NUL and are filled up with NULs
 *   0               64       id
 *   64              64       model version, may be empty
 *   128             72       gossip address, HOST:PORT
 *   200             72       gRPC address; may be empty for a gateway
 *   272             72       owner of the drain, may be empty
 *   344             8        epoch
 *   352             8        incarnation
 *   360             8        start of the replica, wall clock ms
 *   368             4        weight, 1 .. LLMGW_MEMBERS_WEIGHT_MAX
 *   372             4        capacity in requests, 0: unlimited
 *   376             4 x 1    role, liveness, service, draining
 *   380             1        1: a shard; its role is that of a gateway, so that
 *                            a reader that knows no shards routes nothing to it
 *   381             3        reserved
 *   384             64       resume group, may be empty; of a shard
 *                            instead:
 *       384         32       zone, may be empty
 *       416         8        bytes of memory that it takes or would take
 *       424         3 x 2    its first layer, its last one, and how many its
 *                            model has; these 0: it says nothing of itself
 *       430         1        loaded
 *       431         17       reserved
 *   448             8        hash of the list of its models' names
 *                            in the names area, the base model first; 0: none;
 *                            of a shard the list of proto/members/shards.h
 *   456             4        how many further names the list lacks
 *   460             1        state in its standby group
 *   461             3        reserved
 *   464             8        epoch that its lock service granted
 *   472             32       standby group, may be empty: then the
 *                            state, the epoch and the next are 0, and else the
 *                            state is not 0
 *   504             8        which lock service that was
 *
 *   load record              rewritten whole by one aligned pwrite
 *   0               8        reported, CLOCK_MONOTONIC ms; 0: never
 *   8               4        active requests
 *   12              4        requests that its engine runs
 *   16              4        requests that wait in its engine
 *   20              2        its KV cache in use, permille
 *   22              2        which of its figures are reported, a sum of 1, 2,
 *                            4 (those above), 8, 16 (those below)
 *   24              4        free blocks of that cache
 *   28              2        prompt blocks found in it, permille
 *   30              30       spare
 *   60              4        low half of the check of the bytes before it,
 *                            whose seed is the check of the record's id
 *
 *   directory                256 entries; entry i is of place i
 *   0               8        the list's hash, 0: the place is free
 *   8               4        bytes, 1 .. 4096
 *   12              4        reserved
 *
 *   place                    a list: names of printable ASCII, none of them
 *                            empty, each ended by a NUL.  Its hash is its
 *                            check (1 where that is 0), so a list needs no
 *                            other check.
 *
 * The sequence moves with every publish, the generation only with those that
 * change what routes: membership, role, liveness, service, the start of the
 * replica's process, draining, gRPC address, weight, capacity, resume group,
 * models, standby group with state, epoch and lock service, isolated.  The
 * order of records follows from the ids, so two tables of one generation have
 * the same member at one index, and load figures may be refreshed in a view as
 * long as the generation stands.
 *
 * The names area holds what is too long for a record and common to many: a
 * record names a list by its hash.  Lists never change; a place is reused when
 * neither the table in use nor the next one needs its list.
 *
 * LATER VERSIONS
 *
 * Within layout 2 a later version may use spare bytes and bits of `reported`,
 * lengthen records, put lists of other kinds into the names area, and append to
 * the file.  A reader ignores all of that.  Whatever else changes is another
 * layout, which a reader refuses, as it does layout 1 (llmgw 0.1.0).
 *
 * WRITER
 *
 *   start      Take the lock on PATH.lock (flock; the file stays for ever and
 *              holds the pid).  If PATH is a valid segment with records of the
 *              length to be written, of at least the capacity asked for, and
 *              ours, continue in it.  Otherwise make one; a valid segment with
 *              other records, or a smaller one, gives its table, lists and
 *              generation.
 *   make       PATH.tmp: take the space (posix_fallocate, so that no later
 *              write can fail for want of it), write what is known so far,
 *              rename to PATH.  The generation is the last one known plus 1;
 *              where none is known the wall clock in us, which is past any
 *              generation of a lost segment unless it published a million
 *              changes a second.  A file is never truncated.
 *   list       Before the publish of a record that names it: the names into a
 *              free place, then its entry of the directory.
 *   publish    1. header and records into the buffer not in use,
 *              2. its load records,
 *              3. the head, with sequence + 1: the flip.
 *   load       One load record of the buffer in use.
 *   heartbeat  If PATH is not the file that is open, or does not have the size
 *              and the contents that were written: make.  Then write the head,
 *              with the new time.
 *
 * READER
 *
 *   1. pread the head; where its check fails, again, at most 16 times.
 *   2. pread the header of buffer (sequence mod 2).  Its check, sequence and
 *      generation must be right, or else go to 6.
 *   3. pread the records.  Their check must be right, or else go to 6.
 *   4. Check every field of every record that the last view does not have.
 *   5. pread the load records.  One whose check fails is read again, at most
 *      4 times, then it says "never".  Done.
 *   6. pread the head again.  If the sequence has moved, the writer was faster:
 *      go to 1, at most 8 times, then say BUSY.  If it has not, the segment is
 *      damaged: once more from 1, then refuse it.
 *
 *   A list: pread the directory, find the hash, pread the place.  Where its
 *   check is not its hash, again, at most 4 times, then say ABSENT: the list
 *   belongs to a table that is not in use any more.
 *
 * The copy is right by its checks, not by its timing: step 6 only tells a busy
 * writer from a damaged file.
 *
 * CRASH RULES
 *
 *   The writer dies in publish 1 or 2: the buffer not in use holds a mixture;
 *   no reader looks there, and the next publish begins it anew.
 *
 *   In publish 3, heartbeat or load: the write is of 64 bytes, aligned, within
 *   one page, from an aligned source.  The kernel copies that without
 *   looking at signals, so it is there or it is not.
 *
 *   In list: the place holds a mixture, which no hash fits, and no record of
 *   the table in use names it; the next writer finds the place free.
 *
 *   In make, before the rename: PATH is what it was; the next writer removes
 *   PATH.tmp.
 *
 *   The machine dies: tmpfs is lost with it.  On a disk, the checks detect
 *   damage.
 *
 *   Somebody truncates, overwrites or removes the file: readers keep the view
 *   they have; the next heartbeat puts the segment back with a greater
 *   generation.
 */

#ifndef LLMGW_MEMBERS_H
#define LLMGW_MEMBERS_H

#include "proto/members/member.h"


#define LLMGW_MEMBERS_MAX    65536      /* records a segment can hold */
#define LLMGW_MEMBERS_LISTS  256        /* and lists of names */

typedef enum {
    LLMGW_MEMBERS_DONE = 0,
    LLMGW_MEMBERS_UNCHANGED,        /* reader: nothing new */
    LLMGW_MEMBERS_ABSENT,           /* reader: no such file */
    LLMGW_MEMBERS_REFUSED,          /* no segment, or not one of this layout;
                                       the error text says why */
    LLMGW_MEMBERS_BUSY,             /* reader: the writer was faster than
                                       several tries; ask again */
    LLMGW_MEMBERS_EFULL,            /* writer: more members than records, or
                                       lists than places */
    LLMGW_MEMBERS_ESYSTEM           /* errno is set, the text names the call */
} llmgw_members_rc_t;

#define LLMGW_MEMBERS_ERROR_BYTES  256


/* Writer (the agent; one a path, held by a lock on "PATH.lock"). */

typedef struct llmgw_members_writer_s  llmgw_members_writer_t;

/*
 * Opens a valid segment of at least this capacity and continues from its
 * generation; otherwise makes a new one, whole, and renames it into place (the
 * space is taken by posix_fallocate, mode 0644).  error holds
 * LLMGW_MEMBERS_ERROR_BYTES.
 *
 * A disk that refuses the file (llmgw_disk_refuses()) is left to the heartbeat:
 * the writer is created, error says why, and publishing fails meanwhile.
 * Otherwise error is "".
 *
 * path NULL: only a table in memory, for an agent that has no nginx beside it;
 * everything below works on it but the names area.
 */
llmgw_members_rc_t llmgw_members_writer_create(llmgw_members_writer_t **writer,
    const char *path, uint32_t capacity, char *error);

/*
 * 1: this errno is that of a full or broken disk, which may recover, and not
 * that of a wrong path.
 */
int llmgw_disk_refuses(int error);

/* Leaves the segment where it is: readers keep the last view. */
void llmgw_members_writer_destroy(llmgw_members_writer_t *writer);

/*
 * Publishes the whole table, in any order; readers see it ordered by id.  The
 * generation moves only when something that routes has changed: membership,
 * role, liveness, service, replica_start_ms, draining, grpc, weight, capacity,
 * resume group, models, group and its state, epoch and lock, isolated.
 * loads[i] belongs to members[i]; NULL: none of them ever reported.
 * A list of models that is not held for this publish is left out of the record.
 *
 * REFUSED: a member that readers would refuse, or an id twice.  With EFULL,
 * REFUSED and ESYSTEM nothing was published, and the last view stays valid.
 */
llmgw_members_rc_t llmgw_members_publish(llmgw_members_writer_t *writer,
    const llmgw_member_t *const *members,
    const llmgw_member_load_t *const *loads, size_t n, int isolated);

/*
 * Updates the load of a member in place.  A member that the last publish did
 * not have is ignored.
 */
void llmgw_members_set_load(llmgw_members_writer_t *writer, const char *id,
    const llmgw_member_load_t *load);

/*
 * Holds a list for the next publish: puts it into the names area, or finds it
 * there, and returns its hash.  names: each ended by a NUL.  A list stays until
 * the first publish for which it was not held.  REFUSED: it is no valid list;
 * EFULL: the lists held for the table in use and for the next one take all
 * places.
 */
llmgw_members_rc_t llmgw_members_hold_list(llmgw_members_writer_t *writer,
    const char *names, size_t bytes, uint64_t *list);

/*
 * The names of a list that a record of the last publish, or of the one before,
 * names by its hash.  They belong to the writer, and are valid until the next
 * list is held.  NULL: there is no such list.
 */
const char *llmgw_members_held_list(const llmgw_members_writer_t *writer,
    uint64_t list, size_t *bytes);

/*
 * To be called every second or so: marks the view as fresh for readers, and
 * restores the segment if it was removed, replaced or damaged.  After a
 * restoration the result is DONE, and error says what had happened; error is ""
 * if nothing was wrong.
 */
llmgw_members_rc_t llmgw_members_heartbeat(llmgw_members_writer_t *writer,
    uint64_t now_ms, char *error);

/*
 * The table as it was published last, ascending by id; it is the writer's own
 * and stands until the next publish.  loads may be NULL.  The previous table is
 * available directly after a publish that returned DONE.
 */
const llmgw_member_t *llmgw_members_published(
    const llmgw_members_writer_t *writer, const llmgw_member_load_t **loads,
    size_t *n);
const llmgw_member_t *llmgw_members_published_before(
    const llmgw_members_writer_t *writer, size_t *n);


/* Reader. */

/*
 * A reader belongs to one thread; error is always LLMGW_MEMBERS_ERROR_BYTES
 * and "" where there is none.
 */
typedef struct llmgw_members_reader_s  llmgw_members_reader_t;

/*
 * A whole, checked copy of the segment, owned by the caller; read again into
 * the same view reuses its memory.
 */
typedef struct {
    uint64_t              generation;
    uint64_t              heartbeat_ms;     /* CLOCK_MONOTONIC */
    llmgw_member_t       *members;
    llmgw_member_load_t  *loads;
    size_t                n;
    size_t                capacity;         /* of the two arrays */
    int                   isolated;
} llmgw_members_view_t;

/* Creates a reader; opens no file yet.  NULL: out of memory. */
llmgw_members_reader_t *llmgw_members_reader_create(const char *path);
void llmgw_members_reader_destroy(llmgw_members_reader_t *reader);

void llmgw_members_view_done(llmgw_members_view_t *view);

/*
 * Looks whether the path is (still) the file that is open, and opens it where
 * it is not: to be called now and then (a stat).  DONE: another file than
 * before is open, a read will bring its view; UNCHANGED; ABSENT; REFUSED:
 * the file that is open now or its replacement is no valid segment; BUSY.
 * Whatever it returns, a file that was open stays readable until another one
 * has taken its place.
 */
llmgw_members_rc_t llmgw_members_reader_check(llmgw_members_reader_t *reader,
    char *error);

/*
 * The generation as it is now; 0 if no segment was ever open; the last one seen
 * if the file has been damaged since.  Cheap (one small pread), for every pick.
 * If it differs from the view's, read again.
 */
uint64_t llmgw_members_reader_generation(llmgw_members_reader_t *reader);

/*
 * Copies a whole view; opens the file where none is open.  Records that the
 * view has from an earlier read are not checked again.  DONE; ABSENT, REFUSED,
 * BUSY, ESYSTEM leave the view as it was.  Members ascend by id, so the arrays
 * of two views of one generation run side by side.
 */
llmgw_members_rc_t llmgw_members_read(llmgw_members_reader_t *reader,
    llmgw_members_view_t *view, char *error);

/*
 * Refreshes only heartbeat_ms and loads[0..n) of a view.  UNCHANGED: the
 * segment has another generation than the view: read again.  ABSENT: no segment
 * is open.  REFUSED, ESYSTEM: the segment is damaged; some loads may be
 * refreshed.
 */
llmgw_members_rc_t llmgw_members_read_loads(llmgw_members_reader_t *reader,
    llmgw_members_view_t *view);

/*
 * A list of the names area, by the hash that a record of the last view names
 * it by; names holds LLMGW_MEMBERS_LIST_BYTES.  ABSENT: it is not there (any
 * more): read the view again.  REFUSED, ESYSTEM: damaged.
 */
llmgw_members_rc_t llmgw_members_read_list(llmgw_members_reader_t *reader,
    uint64_t list, char *names, size_t *bytes);

/* The hash of a list; never 0. */
uint64_t llmgw_members_list_hash(const char *names, size_t bytes);

#endif /* LLMGW_MEMBERS_H */
