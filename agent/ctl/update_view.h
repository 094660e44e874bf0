
/*
 * A rolling update as people see it: on a terminal a table that is drawn
 * again in its place with each event, elsewhere a line for each step.
 */

#ifndef CTL_UPDATE_VIEW_H
#define CTL_UPDATE_VIEW_H

#include <jansson.h>


typedef struct {
    json_t  *update;        /* as in the first event, kept up to date */
    int      has_colours;
    int      is_live;       /* it is drawn in place */
    int      nlines;        /* lines of the last drawing */
} ctl_update_view_t;


void ctl_update_view_init(ctl_update_view_t *view, int has_colours);

/* Takes one event of the stream; data is the view. */
void ctl_update_view_event(void *data, const json_t *event);

/* Takes the last line; NULL: it did not come. */
void ctl_update_view_end(ctl_update_view_t *view, const json_t *answer);

void ctl_update_view_done(ctl_update_view_t *view);

#endif /* CTL_UPDATE_VIEW_H */
