
/*
 * Showing an answer once, or again each second.
 *
 * On a terminal a watched answer is drawn over the last one, in place: each
 * line clears its rest, and the last line everything below it, so that nothing
 * flickers; what does not fit is left out.  Into a pipe or a file one answer
 * follows the other, an empty line between them; with --json each is a line.
 *
 * If an agent stops answering, this waits for it, since the user may be
 * watching its restart; but the first answer has to come.  SIGINT and SIGTERM
 * are blocked except in the pause, so that no line is cut; they end the watch
 * without an error.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "ctl/link.h"


#define CTL_WATCH_ROWS  24      /* where a terminal does not report its size */

#define ESC_HOME        "\033[H"
#define ESC_CLEAR       "\033[2J"
#define ESC_LINE_END    "\033[K"
#define ESC_BELOW       "\033[J"
#define ESC_WRAP_OFF    "\033[?7l"
#define ESC_WRAP_ON     "\033[?7h"
#define ESC_SAVE        "\0337"        /* where the cursor is */
#define ESC_RESTORE     "\0338"


static const option_t  ctl_watch_table[] = {
    { .name = "watch", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_watched),
      .help = "show it again every second" },
    { .name = NULL }
};

const options_spec_t  ctl_members_spec = {
    .program = "llmgwctl members",
    .synopsis = "[options]",
    .summary = "Lists the members of the cluster and their state.",
    .table = ctl_watch_table
};

const options_spec_t  ctl_status_spec = {
    .program = "llmgwctl status",
    .synopsis = "[options]",
    .summary = "Shows the agent's own state and its counters.",
    .table = ctl_watch_table
};


static void
ctl_watch_ends(int signo)
{
    /* nothing to do: the pause was interrupted */
    (void) signo;
}


/* Blocks the signals.  *pause_mask is the mask to use in the pause. */
static void
ctl_watch_signals(sigset_t *pause_mask)
{
    sigset_t          ends;
    struct sigaction  action = { .sa_handler = ctl_watch_ends };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, pause_mask);

    sigdelset(pause_mask, SIGINT);
    sigdelset(pause_mask, SIGTERM);
}


static void
ctl_watch_print(const ctl_t *ctl, json_t *answer, ctl_show_pt show, FILE *out)
{
    if (ctl->is_json) {
        json_dumpf(answer, out, JSON_COMPACT);
        fputc('\n', out);

    } else {
        show(ctl, answer, out);
    }
}


static int
ctl_watch_rows(void)
{
    struct winsize  size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
           ? size.ws_row : CTL_WATCH_ROWS;
}


static int
ctl_watch_lines(const char *text)
{
    int  n;

    for (n = 0; (text = strchr(text, '\n')) != NULL; n++) {
        text++;
    }

    return n;
}


/*
 * Draws an answer.  The last row is left free for messages on standard error.
 */
static void
ctl_watch_draw(const char *text)
{
    int     left, room;
    size_t  len;

    left = ctl_watch_lines(text);
    room = ctl_watch_rows() - 1;

    printf(ESC_WRAP_OFF ESC_HOME);

    for ( /* void */ ; left && (room > 1 || left == 1); left--, room--) {
        len = strcspn(text, "\n");
        printf("%.*s" ESC_LINE_END "\n", (int) len, text);
        text += len + 1;
    }

    if (left) {
        printf("... %d more" ESC_LINE_END "\n", left);
    }

    printf(ESC_BELOW ESC_WRAP_ON ESC_SAVE);
}


static int
ctl_watch_frame(const ctl_t *ctl, json_t *answer, ctl_show_pt show)
{
    char    *text;
    FILE    *out;
    size_t   size;

    text = NULL;
    out = open_memstream(&text, &size);

    if (out == NULL) {
        fprintf(stderr, "llmgwctl: out of memory\n");
        return CTL_FAILED;
    }

    ctl_watch_print(ctl, answer, show, out);
    fclose(out);

    if (ctl->is_terminal && !ctl->is_json) {
        ctl_watch_draw(text);

    } else {
        printf("%s%s", text, ctl->is_json ? "" : "\n");
    }

    free(text);

    return fflush(stdout) == 0 ? CTL_DONE : CTL_FAILED;
}


static int
ctl_watch_ask(const ctl_t *ctl, const char *cmd, const char *part,
    json_t **answer)
{
    int  status;

    status = ctl_link_ask(ctl, json_pack("{s:s}", "cmd", cmd), answer);

    if (status == CTL_DONE && json_object_get(*answer, part) == NULL) {
        json_decref(*answer);
        fprintf(stderr, "llmgwctl: what listens at \"%s\" is something "
                "else: its answer has no \"%s\"\n", ctl->socket, part);
        status = CTL_FAILED;
    }

    return status;
}


static int
ctl_watch(const ctl_t *ctl, const char *cmd, const char *part,
    ctl_show_pt show)
{
    int                    status, is_first;
    json_t                *answer;
    sigset_t               mask;
    const struct timespec  second = { .tv_sec = 1 };

    ctl_watch_signals(&mask);

    for (is_first = 1; /* void */ ; is_first = 0) {
        if (!is_first && ctl->is_terminal && !ctl->is_json) {
            /* removes the message of a second ago */
            printf(ESC_RESTORE ESC_BELOW);
            fflush(stdout);
        }

        status = ctl_watch_ask(ctl, cmd, part, &answer);

        if (status == CTL_DONE) {
            if (is_first && ctl->is_terminal && !ctl->is_json) {
                printf(ESC_CLEAR);
            }

            status = ctl_watch_frame(ctl, answer, show);
            json_decref(answer);

            if (status != CTL_DONE) {
                return status;
            }

        } else if (is_first) {
            return status;
        }

        if (pselect(0, NULL, NULL, NULL, &second, &mask) == -1
            && errno == EINTR)
        {
            return CTL_DONE;
        }
    }
}


int
ctl_show(const ctl_t *ctl, const char *cmd, const char *part,
    ctl_show_pt show)
{
    int      status;
    json_t  *answer;

    if (ctl->options.is_watched) {
        return ctl_watch(ctl, cmd, part, show);
    }

    status = ctl_watch_ask(ctl, cmd, part, &answer);

    if (status == CTL_DONE) {
        ctl_watch_print(ctl, answer, show, stdout);
        json_decref(answer);
    }

    return status;
}
