
#include <grp.h>
#include <unistd.h>

#include "common/os/private_file.h"


int
private_file_is_closed(const struct stat *st)
{
    mode_t  others;

    others = st->st_mode & (S_IRWXG|S_IRWXO);

    return others == 0
           || (others == S_IRGRP && st->st_uid != geteuid()
               && (st->st_gid == getegid() || group_member(st->st_gid)));
}
