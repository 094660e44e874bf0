
/* Those commands of llmgwctl keys that change the file, and its clock. */

#ifndef CTL_KEYS_CHANGE_H
#define CTL_KEYS_CHANGE_H

#include "ctl/main.h"


/* words: NAME and what follows.  Each returns an exit status. */
int ctl_keys_add(const ctl_t *ctl, char *const *words, int nwords);
int ctl_keys_revoke(const ctl_t *ctl, char *const *words, int nwords);
int ctl_keys_rotate(const ctl_t *ctl, char *const *words, int nwords);

/* Of whole seconds, as the file has them. */
uint64_t ctl_keys_now_ms(void);

#endif /* CTL_KEYS_CHANGE_H */
