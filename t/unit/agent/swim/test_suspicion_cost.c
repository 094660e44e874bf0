
/* What a suspicion costs while many others are suspected: the test counts
   calls of swim_log10(), which it defines itself. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "swim/swim_inner.h"


static unsigned  nlogs;


double
swim_log10(size_t n)
{
    nlogs++;

    return 4;
}


static void
a_suspicion_takes_one_logarithm_however_many_there_are(void **state)
{
    size_t     i;
    swim_t    *swim;
    member_t  *members;

    enum { N = 10000, SUSPECTS = 500, BASE_US = 1000 };

    swim = calloc(1, sizeof(swim_t));
    members = calloc(SUSPECTS, sizeof(member_t));
    swim->config.suspect_timeout_us = BASE_US;
    swim->table.npresent = N;

    for (i = 0; i < SUSPECTS; i++) {
        members[i].nconfirmers = 1;
        assert_int_equal(suspicion_start(swim, &members[i], 1), 0);
        assert_int_equal(nlogs, i + 1);
    }

    for (i = 0; i < SUSPECTS; i++) {
        assert_int_equal(members[i].suspect_until_us, 1 + 6 * 4 * BASE_US);
    }

    for (nlogs = 0, i = 0; i < SUSPECTS; i++) {
        suspicion_stop(swim, &members[i]);
        assert_int_equal(nlogs, i + 1);
    }

    suspicion_done(&swim->suspicion);
    free(members);
    free(swim);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(
            a_suspicion_takes_one_logarithm_however_many_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
