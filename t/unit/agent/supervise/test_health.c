
/* A replica that does not answer is silent after three seconds, also where the
   host's clock steps meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervise/health.h"
#include "t/unit/common/loopback.h"


#define PORT  21510
#define DAY   86400

typedef struct {
    struct ev_loop    *loop;
    health_t          *health;
    int                nverdicts;
    health_verdict_t   verdict;
    double             at;              /* monotonic */
} scene_t;

static int  days;                       /* by which the wall clock is ahead */


/* In place of the C library's, from which libev takes the wall clock. */
int
gettimeofday(struct timeval *now, void *zone)
{
    struct timespec  real;

    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + (time_t) days * DAY;
    now->tv_usec = real.tv_nsec / 1000;

    return 0;
}


static double
seconds(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return now.tv_sec + now.tv_nsec / 1e9;
}


static void
on_verdict(void *data, health_verdict_t verdict, const char *why)
{
    scene_t  *s = data;

    s->nverdicts++;
    s->verdict = verdict;
    s->at = seconds();
    ev_break(s->loop, EVBREAK_ALL);
}


static void
step(struct ev_loop *loop, ev_timer *timer, int events)
{
    days = 1;
}


/* A socket that connects, and is never read. */
static int
mute(address_t *address)
{
    int  fd;

    assert_int_equal(address_parse(loopback(PORT), address), 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &address->ss, address->len),
                     0);
    assert_int_equal(listen(fd, 1), 0);

    return fd;
}


static void
silence_is_counted_without_the_wall_clock(void **state)
{
    int                  fd;
    double               began;
    scene_t              s;
    ev_timer             clock;
    address_t            address;
    grpc_conn_options_t  options;

    memset(&s, 0, sizeof(s));
    memset(&options, 0, sizeof(options));
    fd = mute(&address);
    s.loop = ev_default_loop(0);
    ev_timer_init(&clock, step, 0.6, 0.);
    ev_timer_start(s.loop, &clock);

    began = seconds();
    s.health = health_create(s.loop, &address, &options, on_verdict, &s);
    assert_non_null(s.health);
    ev_run(s.loop, 0);

    assert_int_equal(s.nverdicts, 1);
    assert_int_equal(s.verdict, HEALTH_SILENT);
    assert_true(s.at - began >= 3.0);
    assert_int_equal(days, 1);

    health_destroy(s.health);
    close(fd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(silence_is_counted_without_the_wall_clock)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
