
/*
 * An engine for benchmarks: OpenAI's API over HTTP/1.1, in vLLM's dialect, with
 * the simulated engine's words at an even pace, always as a stream.  It costs
 * little, so that the proxies before it can be compared, and trusts its
 * requests.
 *
 *   engine LISTEN_PORT TOKEN_DELAY_MS
 *
 * Each stream's next token is due one delay after its last one, so streams
 * stand in a queue: the first is due first, and one timerfd waits for it.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/sim_token.h"


#define ENGINE_EVENTS     512
#define ENGINE_READ       65536
#define ENGINE_HEAD       1024      /* room for an event around its text */
#define ENGINE_BODY_MAX   (64 << 20)

typedef struct conn_s  conn_t;

struct conn_s {
    int        fd;
    conn_t    *next;            /* next in the queue of streams */
    conn_t    *prev;
    char      *in;
    size_t     in_len;
    size_t     in_size;
    char      *out;             /* output that the socket did not accept */
    size_t     out_len;
    size_t     out_size;
    uint64_t   due_ns;
    uint64_t   hash;            /* of the prompt */
    unsigned   id;
    int        tokens;          /* tokens sent */
    int        max_tokens;
    int        is_running;
    int        is_chat;
    int        has_ids;         /* return_token_ids */
    int        has_usage;       /* include_usage */
    int        is_dead;
};

typedef struct {
    int        epoll;
    int        listener;
    int        timer;
    uint64_t   delay_ns;
    unsigned   requests;
    unsigned   running;
    uint64_t   tokens;
    conn_t    *first;
    conn_t    *last;
} engine_t;


static uint64_t
now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static void *
must(void *p)
{
    if (p == NULL) {
        perror("engine");
        exit(1);
    }

    return p;
}


/* --- the queue of streams */

static void
queue_push(engine_t *e, conn_t *c)
{
    c->next = NULL;
    c->prev = e->last;
    *(e->last != NULL ? &e->last->next : &e->first) = c;
    e->last = c;
}


static void
queue_remove(engine_t *e, conn_t *c)
{
    *(c->prev != NULL ? &c->prev->next : &e->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &e->last) = c->prev;
}


static void
queue_arm(engine_t *e)
{
    uint64_t           at;
    struct itimerspec  when = { .it_value = { 0, 0 } };

    at = e->first != NULL ? e->first->due_ns : 0;
    when.it_value.tv_sec = (time_t) (at / 1000000000);
    when.it_value.tv_nsec = (long) (at % 1000000000);

    (void) timerfd_settime(e->timer, TFD_TIMER_ABSTIME, &when, NULL);
}


/* --- output */

static void
conn_send(conn_t *c, const char *data, size_t len)
{
    ssize_t  n;

    n = 0;

    if (c->out_len == 0) {
        n = send(c->fd, data, len, MSG_NOSIGNAL);

        if (n < 0) {
            c->is_dead |= (errno != EAGAIN);
            n = 0;
        }
    }

    len -= (size_t) n;

    if (len == 0 || c->is_dead) {
        return;
    }

    if (c->out_len + len > c->out_size) {
        c->out_size = 2 * (c->out_len + len);
        c->out = must(realloc(c->out, c->out_size));
    }

    memcpy(c->out + c->out_len, data + n, len);
    c->out_len += len;
}


static void
conn_flush(conn_t *c)
{
    ssize_t  n;

    n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);

    if (n < 0) {
        c->is_dead |= (errno != EAGAIN);
        return;
    }

    c->out_len -= (size_t) n;
    memmove(c->out, c->out + n, c->out_len);
}


/* Sends a complete answer. */
static void
conn_answer(conn_t *c, const char *type, const char *body)
{
    int   n;
    char  text[4096];

    n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
                 "Content-Length: %zu\r\n\r\n%s", type, strlen(body), body);
    conn_send(c, text, (size_t) n);
}


/*
 * Formats an event as an HTTP chunk; the caller sends several with one write.
 */
static size_t
event_write(char *out, const char *format, ...)
{
    int      n;
    char     event[ENGINE_HEAD];
    va_list  args;

    va_start(args, format);
    n = vsnprintf(event, sizeof(event), format, args);
    va_end(args);

    return (size_t) sprintf(out, "%x\r\ndata: %s\n\n\r\n", n + 8, event);
}


static size_t
event_token(const conn_t *c, char *out)
{
    int   is_last;
    char  token[SIM_TOKEN_BYTES], ids[32];

    (void) sim_token(c->hash, c->tokens, token);
    is_last = (c->tokens + 1 == c->max_tokens);
    ids[0] = '\0';

    if (c->has_ids) {
        snprintf(ids, sizeof(ids), ",\"token_ids\":[%d]", c->tokens + 1000);
    }

    return event_write(out, "{\"id\":\"%s-%u\",\"object\":\"%s\",\"created\":"
        "1763650000,\"model\":\"sim\",\"choices\":[{\"index\":0,%s\"%s\"%s,"
        "\"logprobs\":null,\"finish_reason\":%s%s}]}",
        c->is_chat ? "chatcmpl" : "cmpl", c->id,
        c->is_chat ? "chat.completion.chunk" : "text_completion",
        c->is_chat ? "\"delta\":{\"content\":" : "\"text\":", token,
        c->is_chat ? "}" : "", is_last ? "\"length\"" : "null", ids);
}


static size_t
event_end(const conn_t *c, char *out)
{
    size_t  n;

    n = 0;

    if (c->has_usage) {
        n = event_write(out, "{\"id\":\"%s-%u\",\"object\":\"%s\",\"created\":"
            "1763650000,\"model\":\"sim\",\"choices\":[],\"usage\":{"
            "\"prompt_tokens\":16,\"completion_tokens\":%d,\"total_tokens\":"
            "%d}}", c->is_chat ? "chatcmpl" : "cmpl", c->id,
            c->is_chat ? "chat.completion.chunk" : "text_completion",
            c->tokens, c->tokens + 16);
    }

    n += event_write(out + n, "[DONE]");

    return n + (size_t) sprintf(out + n, "0\r\n\r\n");
}


/* Writes the token that is due. */
static void
conn_token(engine_t *e, conn_t *c)
{
    size_t  n;
    char    out[4 * ENGINE_HEAD];

    queue_remove(e, c);
    n = event_token(c, out);
    c->tokens++;
    e->tokens++;

    if (c->tokens < c->max_tokens) {
        c->due_ns += e->delay_ns;
        queue_push(e, c);

    } else {
        c->is_running = 0;
        e->running--;

        n += event_end(c, out + n);
    }

    conn_send(c, out, n);
}


/* --- requests */

static int
body_number(const char *body, const char *key, int missing)
{
    const char  *p;

    p = strstr(body, key);

    return p != NULL ? atoi(p + strlen(key)) : missing;
}


/* The hash of the last string with that key, which must have no escapes. */
static uint64_t
body_hash(const char *body, const char *key)
{
    const char  *p, *found;

    found = NULL;

    for (p = body; (p = strstr(p, key)) != NULL; /* void */) {
        p += strlen(key);
        found = p;
    }

    return found == NULL ? 0
           : sim_token_hash((const uint8_t *) found,
                            strcspn(found, "\""));
}


static void
conn_generate(engine_t *e, conn_t *c, const char *body)
{
    size_t  n;
    char    out[4 * ENGINE_HEAD];

    c->hash = body_hash(body, c->is_chat ? "\"content\":\"" : "\"prompt\":\"");
    c->max_tokens = body_number(body, "\"max_tokens\":", 16);
    c->has_ids = strstr(body, "\"return_token_ids\":true") != NULL;
    c->has_usage = strstr(body, "\"include_usage\":true") != NULL;
    c->tokens = 0;
    c->id = ++e->requests;
    c->is_running = 1;
    c->due_ns = now_ns() + e->delay_ns;
    e->running++;
    queue_push(e, c);

    n = (size_t) sprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: "
                         "text/event-stream; charset=utf-8\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n");

    if (c->is_chat) {
        n += event_write(out + n, "{\"id\":\"chatcmpl-%u\",\"object\":"
            "\"chat.completion.chunk\",\"created\":1763650000,\"model\":"
            "\"sim\",%s\"choices\":[{\"index\":0,\"delta\":{\"role\":"
            "\"assistant\",\"content\":\"\"},\"logprobs\":null,"
            "\"finish_reason\":null}]}", c->id,
            c->has_ids ? "\"prompt_token_ids\":[1,2,3,4,5,6,7,8,9,10,11,12,"
                         "13,14,15,16]," : "");
    }

    conn_send(c, out, n);
}


static void
conn_metrics(const engine_t *e, conn_t *c)
{
    char  text[512];

    snprintf(text, sizeof(text),
             "vllm:num_requests_running{model_name=\"sim\"} %u\n"
             "vllm:num_requests_waiting{model_name=\"sim\"} 0\n"
             "vllm:kv_cache_usage_perc{model_name=\"sim\"} 0.1\n"
             "vllm:iteration_tokens_total_count{model_name=\"sim\"} %llu\n",
             e->running, (unsigned long long) e->tokens);
    conn_answer(c, "text/plain; version=0.0.4", text);
}


static void
conn_request(engine_t *e, conn_t *c, const char *head, const char *body)
{
    if (strncmp(head, "POST /v1/chat/completions ", 26) == 0) {
        c->is_chat = 1;
        conn_generate(e, c, body);

    } else if (strncmp(head, "POST /v1/completions ", 21) == 0) {
        c->is_chat = 0;
        conn_generate(e, c, body);

    } else if (strncmp(head, "GET /metrics ", 13) == 0) {
        conn_metrics(e, c);

    } else if (strncmp(head, "GET /v1/models ", 15) == 0) {
        conn_answer(c, "application/json", "{\"object\":\"list\",\"data\":["
                    "{\"id\":\"sim\",\"object\":\"model\",\"created\":1,"
                    "\"owned_by\":\"vllm\",\"max_model_len\":1000000}]}");

    } else if (strncmp(head, "GET /version ", 13) == 0) {
        conn_answer(c, "application/json", "{\"version\":\"0.11.0\"}");

    } else {
        conn_answer(c, "application/json", "{}");       /* GET /health */
    }
}


/*
 * Reads one request at a time; the next one waits until its answer is written.
 */
static void
conn_parse(engine_t *e, conn_t *c)
{
    char        *end, *length;
    size_t       head, body, rest;

    while (!c->is_running && c->in_len > 0) {
        c->in[c->in_len] = '\0';
        end = strstr(c->in, "\r\n\r\n");

        if (end == NULL) {
            return;
        }

        head = (size_t) (end - c->in) + 4;
        *end = '\0';
        length = strcasestr(c->in, "\r\ncontent-length:");
        body = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
        *end = '\r';

        if (c->in_len < head + body || body > ENGINE_BODY_MAX) {
            return;
        }

        rest = c->in_len - head - body;
        conn_request(e, c, c->in, c->in + head);
        memmove(c->in, c->in + head + body, rest);
        c->in_len = rest;
    }
}


/* 1: there may be more to read. */
static int
conn_read(engine_t *e, conn_t *c)
{
    ssize_t  n;

    if (c->in_len + ENGINE_READ + 1 > c->in_size) {
        c->in_size = 2 * (c->in_len + ENGINE_READ + 1);
        c->in = must(realloc(c->in, c->in_size));
    }

    n = recv(c->fd, c->in + c->in_len, ENGINE_READ, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        c->is_dead = 1;
        return 0;
    }

    c->in_len += n > 0 ? (size_t) n : 0;
    conn_parse(e, c);

    if (c->in_len == 0) {       /* an idle stream has no buffer */
        free(c->in);
        c->in = NULL;
        c->in_size = 0;
    }

    return n == ENGINE_READ;
}


static void
conn_close(engine_t *e, conn_t *c)
{
    if (c->is_running) {
        queue_remove(e, c);
        e->running--;
    }

    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}


/* --- the loop */

static void
engine_accept(engine_t *e)
{
    int                 fd, one = 1;
    conn_t             *c;
    struct epoll_event  event = { .events = EPOLLIN|EPOLLOUT|EPOLLET };

    while ((fd = accept4(e->listener, NULL, NULL, SOCK_NONBLOCK|SOCK_CLOEXEC))
           >= 0)
    {
        c = must(calloc(1, sizeof(conn_t)));
        c->fd = fd;
        event.data.ptr = c;
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        (void) epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event);
    }
}


static void
engine_due(engine_t *e)
{
    uint64_t  fired, now;

    (void) !read(e->timer, &fired, sizeof(fired));
    now = now_ns();

    while (e->first != NULL && e->first->due_ns <= now) {
        conn_token(e, e->first);
    }
}


static void
engine_ready(engine_t *e, conn_t *c, uint32_t events)
{
    if (c->out_len > 0) {
        conn_flush(c);
    }

    if (events & ~(uint32_t) EPOLLOUT) {
        while (!c->is_dead && conn_read(e, c)) { /* void */ }
    }

    if (c->is_dead) {
        conn_close(e, c);
    }
}


static void
engine_serve(engine_t *e)
{
    int                 i, n;
    struct epoll_event  events[ENGINE_EVENTS];

    for ( ;; ) {
        queue_arm(e);
        n = epoll_wait(e->epoll, events, ENGINE_EVENTS, -1);

        for (i = 0; i < n; i++) {
            if (events[i].data.ptr == e) {
                engine_accept(e);

            } else if (events[i].data.ptr != NULL) {
                engine_ready(e, events[i].data.ptr, events[i].events);
            }
        }

        engine_due(e);
    }
}


int
main(int argc, char **argv)
{
    int                 one = 1;
    engine_t            e = { .requests = 0 };
    struct rlimit       limit;
    struct sockaddr_in  sin = { .sin_family = AF_INET };
    struct epoll_event  event = { .events = EPOLLIN };

    if (argc != 3) {
        fprintf(stderr, "usage: engine LISTEN_PORT TOKEN_DELAY_MS\n");
        return 2;
    }

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }

    sin.sin_port = htons((uint16_t) atoi(argv[1]));
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    e.delay_ns = strtoull(argv[2], NULL, 10) * 1000000;
    e.epoll = epoll_create1(EPOLL_CLOEXEC);
    e.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK|TFD_CLOEXEC);
    e.listener = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
    (void) setsockopt(e.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));

    event.data.ptr = &e;

    if (bind(e.listener, (struct sockaddr *) &sin, sizeof(sin)) != 0
        || listen(e.listener, 16384) != 0
        || epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.listener, &event) != 0)
    {
        perror("engine");
        return 1;
    }

    event.data.ptr = NULL;
    (void) epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.timer, &event);
    printf("serving model\n");
    fflush(stdout);
    engine_serve(&e);

    return 0;
}
