
/*
 * Doubles as text.
 *
 * report_number() is the shortest decimal that reads back as the same double,
 * laid out as Go's encoding/json and JavaScript do: plain from 1e-6 up to 1e21,
 * an exponent without padding outside.  Files that are compared with BLIS's
 * must have exactly its text.
 */

#ifndef REPORT_NUMBER_H
#define REPORT_NUMBER_H

#include <stddef.h>


#define REPORT_NUMBER_BYTES  40


/* Writes a finite value into buf and returns its length. */
size_t report_number(double value, char buf[REPORT_NUMBER_BYTES]);

#endif /* REPORT_NUMBER_H */
