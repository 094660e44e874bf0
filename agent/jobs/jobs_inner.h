
/* Private to this room: what its files share. */

#ifndef JOBS_INNER_H
#define JOBS_INNER_H

#include "jobs/jobs.h"


uint64_t jobs_now_us(const jobs_t *jobs);
json_int_t jobs_wall_ms(const jobs_t *jobs);

/* The present members: the protocol's table, and one member; NULL: there is
   none with that id. */
const table_t *jobs_table(const jobs_t *jobs);
member_t *jobs_member(const jobs_t *jobs, const char *id);

/* The members as published last: an effect that nginx cannot know of does not
   count. */
llmgw_roster_t jobs_roster(const jobs_t *jobs);

/* Makes jobs_look() run ten times a second, until nothing is under way. */
void jobs_wake(jobs_t *jobs);

#endif /* JOBS_INNER_H */
