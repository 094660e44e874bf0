
/*
 * How long the dead are remembered.
 *
 * A DEAD or LEFT member stays in the table as a tombstone: if it were forgotten
 * at once, any older ALIVE on its way would make it a member again.  Ten
 * minutes are longer than any update travels, and let a cut of that length heal
 * by itself (reconnect.c).
 *
 * Agents forget at slightly different times.  One that has forgotten must not
 * learn it again from one that has not, and so on for ever.  So a tombstone
 * carries its age; past half its time it is not taken up by agents that lack
 * it, nor counted when tables are compared.
 */

#ifndef TOMBSTONE_H
#define TOMBSTONE_H


#define TOMBSTONE_US       (600 * 1000000ULL)
#define TOMBSTONE_TOLD_US  (TOMBSTONE_US / 2)

#endif /* TOMBSTONE_H */
