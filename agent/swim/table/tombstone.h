
/*
 * How long the dead are remembered.
 *
 * A DEAD or LEFT member stays in the table as a tombstone: were it forgotten
 * at once, any older ALIVE still on its way would make it a member again.
 * Ten minutes outlast every rumour, and let a partition of that length heal
 * by itself (the dead are pinged now and then).
 *
 * Agents forget at slightly different times.  So that one who has forgotten
 * does not learn it again from one who has not, round and round for ever, a
 * tombstone tells its age, and one past half its time is not taken up by
 * those who lack it, nor counted when tables are compared.
 */

#ifndef TOMBSTONE_H
#define TOMBSTONE_H


#define TOMBSTONE_US       (600 * 1000000ULL)
#define TOMBSTONE_TOLD_US  (TOMBSTONE_US / 2)

#endif /* TOMBSTONE_H */
