
/* Asks the gateway's status page, and engines. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/gather_net.h"


#define NET_BODY_BYTES   (32u << 20)    /* room for a status of thousands of
                                           replicas */
#define NET_KEY_BYTES    4096
#define NET_MAX_ENGINES  64

typedef struct net_get_s  net_get_t;

struct net_get_s {
    net_t    *net;
    json_t   *entry;                    /* of the facts; gets the result */
    void    (*take)(net_get_t *get, long status);
    char     *body;
    size_t    len;
    FILE     *stream;
};


static size_t
net_on_body(char *bytes, size_t size, size_t n, void *data)
{
    net_get_t  *get = data;

    if (get->len + n > NET_BODY_BYTES) {
        return 0;
    }

    get->len += n;

    return fwrite(bytes, size, n, get->stream);
}


/* 1: the peer accepted the connection, and then sent nothing. */
static int
net_is_silent(CURL *easy, CURLcode rc)
{
    curl_off_t  connect_us;

    return rc == CURLE_OPERATION_TIMEDOUT
           && curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect_us)
              == CURLE_OK
           && connect_us > 0;
}


void
net_on_got(void *data, CURL *easy, CURLcode rc)
{
    long        status;
    net_get_t  *get;

    (void) data;

    status = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **) &get);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    fclose(get->stream);

    if (rc == CURLE_OK) {
        get->take(get, status);

    } else if (ctl_text(get->entry, "error")[0] == '\0') {
        json_object_set_new(get->entry, "error",
                            json_string(curl_easy_strerror(rc)));
        json_object_set_new(get->entry, "is_silent",
                            json_boolean(net_is_silent(easy, rc)));
    }

    curl_easy_cleanup(easy);
    json_decref(get->entry);
    net_end(get->net);
    free(get->body);
    free(get);
}


/* Begins a request.  take is called with an answer, whatever its status; an
   error goes into the entry.  Returns the easy handle, for further options;
   NULL: no memory. */
static CURL *
net_get(net_t *net, const char *url, json_t *entry,
    void (*take)(net_get_t *get, long status))
{
    CURL       *easy;
    net_get_t  *get;

    easy = curl_easy_init();
    get = calloc(1, sizeof(net_get_t));

    if (easy == NULL || get == NULL
        || (get->stream = open_memstream(&get->body, &get->len)) == NULL)
    {
        abort();
    }

    get->net = net;
    get->entry = json_incref(entry);
    get->take = take;
    get->len = 0;

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) GATHER_LIMIT_MS);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, net_on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, get);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, get);

    return easy;
}


static void
net_start(net_t *net, CURL *easy)
{
    if (curl_loop_add(&net->curl, easy) != 0) {
        abort();
    }

    net->npending++;
}


/* --- the status page */

static void
net_take_page(net_get_t *get, long status)
{
    json_t  *page;

    page = status == 200 ? json_loadb(get->body, get->len, 0, NULL) : NULL;

    if (json_is_array(json_object_get(page, "pools"))) {
        json_object_set_new(get->net->facts, "page", page);
        return;
    }

    json_decref(page);
    json_object_set_new(get->entry, "error", json_sprintf(
        status == 200 ? "what answers (%ld) is no llmgw_status"
                      : "it answers with %ld", status));
    json_object_set_new(get->entry, "status", json_integer(status));
}


void
net_ask_page(net_t *net)
{
    int      is_h2;
    char    *url;
    CURL    *easy;
    json_t  *conf, *gateway;

    is_h2 = 0;
    conf = gather_had(net->facts, "conf");
    url = net->ctl->options.gateway != NULL
          ? strdup(net->ctl->options.gateway)
          : gather_page_url(conf, &is_h2);
    json_object_set_new(net->facts, "page",
                        gather_why("the status page did not answer"));

    if (url == NULL) {
        json_object_set_new(net->facts, "gateway", gather_why(
            conf != NULL ? "no location has llmgw_status"
            : "neither nginx's configuration nor --gateway says where the "
              "status page is"));
        json_object_set_new(net->facts, "page",
                            gather_why("there is no status page"));
        return;
    }

    gateway = json_pack("{s:s}", "url", url);
    json_object_set_new(net->facts, "gateway", gateway);
    easy = net_get(net, url, gateway, net_take_page);

    if (is_h2) {
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                         (long) CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    }

    /* the request has no secret, and the answer is about this gateway alone:
       its certificate need not have the address that the page is asked at */
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    net_start(net, easy);
    free(url);
}


/* --- engines */

/*
 * The base model of a list.  vLLM lists adapters, too, with their base model as
 * parent.
 */
static const json_t *
net_base_model(const json_t *list)
{
    size_t   i;
    json_t  *model, *parent;

    json_array_foreach(list, i, model) {
        parent = json_object_get(model, "parent");

        if (parent == NULL || json_is_null(parent)) {
            return model;
        }
    }

    return NULL;
}


static void
net_take_models(net_get_t *get, long status)
{
    json_t        *answer;
    const char    *name;
    json_int_t     context;
    const json_t  *model;

    json_object_set_new(get->entry, "status", json_integer(status));
    answer = status == 200 ? json_loadb(get->body, get->len, 0, NULL) : NULL;
    model = net_base_model(json_object_get(answer, "data"));
    name = ctl_text(model, "id");
    context = ctl_number(model, "max_model_len");

    if (name[0] != '\0') {
        json_object_set_new(get->entry, "model", json_string(name));
    }

    if (context > 0) {
        json_object_set_new(get->entry, "context", json_integer(context));
    }

    json_decref(answer);
}


static void
net_take_metrics(net_get_t *get, long status)
{
    size_t              i;
    int                 has_metrics;

    static const char  *prefixes[] = { "vllm:", "sglang:", "llamacpp:" };

    has_metrics = 0;

    for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        has_metrics |= get->len > 0 && memmem(get->body, get->len, prefixes[i],
                                              strlen(prefixes[i])) != NULL;
    }

    json_object_set_new(get->entry, "metrics_status", json_integer(status));
    json_object_set_new(get->entry, "has_metrics", json_boolean(has_metrics));
}


/*
 * Takes llama-server's properties: its list of models does not have the
 * context.
 */
static void
net_take_props(net_get_t *get, long status)
{
    json_t      *answer;
    json_int_t   context;

    answer = status == 200 ? json_loadb(get->body, get->len, 0, NULL) : NULL;
    context = ctl_number(json_object_get(answer,
                                         "default_generation_settings"),
                         "n_ctx");

    if (context > 0) {
        json_object_set_new(get->entry, "context", json_integer(context));
    }

    json_decref(answer);
}


static void
net_ask_engine(net_t *net, const char *base, json_t *engine)
{
    char    url[2048];
    CURL   *easy;
    size_t  i;

    static const struct {
        const char  *path;
        void       (*take)(net_get_t *get, long status);
    } questions[] = {
        { "/v1/models", net_take_models },
        { "/metrics", net_take_metrics },
        { "/props", net_take_props }
    };

    for (i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        snprintf(url, sizeof(url), "%s%s", base, questions[i].path);
        easy = net_get(net, url, engine, questions[i].take);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, net->headers);

        if (net->engines.ca_file != NULL) {
            curl_easy_setopt(easy, CURLOPT_CAINFO, net->engines.ca_file);
        }

        net_start(net, easy);
    }
}


/*
 * Reads the engines' key.  0; -1: its file cannot be read, which the fact says.
 */
static int
net_engine_key(net_t *net)
{
    char        *key, *header;
    size_t       len;
    const char  *path;

    path = net->engines.key_file;

    if (path == NULL) {
        return 0;
    }

    key = gather_read(path, NET_KEY_BYTES, &len);

    if (key == NULL) {
        json_object_set_new(net->facts, "engines", gather_why(
            "%s cannot be read", path));
        return -1;
    }

    key[strcspn(key, "\r\n")] = '\0';

    if (asprintf(&header, "Authorization: Bearer %s", key) != -1) {
        net->headers = curl_slist_append(NULL, header);
        free(header);
    }

    free(key);

    return 0;
}


/*
 * Finds the engines: of the options, or else of the adapter on this host.  0;
 * -1: there are none.
 */
static int
net_find_engines(net_t *net)
{
    const json_t         *agent;
    const ctl_options_t  *options;

    options = &net->ctl->options;
    agent = gather_had(net->facts, "agent");

    if (options->engine_urls != NULL) {
        net->engines.url = options->engine_urls;
        net->engines.key_file = options->engine_key_file;
        net->engines.ca_file = options->engine_ca_file;
        return 0;
    }

    if (strcmp(ctl_text(agent, "role"), "replica") == 0
        && gather_adapter(net->ctl->socket, &net->engines))
    {
        return 0;
    }

    json_object_set_new(net->facts, "engines", gather_why(
        "no adapter was found here, and --engine-url URL,... is not given"));

    return -1;
}


void
net_ask_engines(net_t *net)
{
    char    *urls, *url, *rest;
    json_t  *engines, *engine;

    if (net_find_engines(net) != 0 || net_engine_key(net) != 0) {
        return;
    }

    engines = json_array();
    json_object_set_new(net->facts, "engines", engines);
    urls = strdup(net->engines.url);
    rest = urls;

    while ((url = strsep(&rest, ",")) != NULL
           && json_array_size(engines) < NET_MAX_ENGINES)
    {
        while (url[0] != '\0' && url[strlen(url) - 1] == '/') {
            url[strlen(url) - 1] = '\0';
        }

        if (url[0] != '\0') {
            engine = json_pack("{s:s}", "url", url);
            json_array_append_new(engines, engine);
            net_ask_engine(net, url, engine);
        }
    }

    free(urls);
}
