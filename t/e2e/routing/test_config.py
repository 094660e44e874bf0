"""nginx -t: configurations that are refused, with file and line."""

import pytest

from llmgw.fleet.nginx import version

MEMBERS = "llmgw_members @dir@/members;"
GOOD = f"{MEMBERS} llmgw_hash;"


@pytest.fixture
def check(cluster):
    """check(upstream, ...): runs nginx -t on a configuration."""
    cluster.allowed.append(r"\[emerg\]")

    def run(upstream=GOOD, **options):
        nginx = cluster.nginx(upstream, start=False, **options)
        return nginx, nginx.command("-t")
    return run


@pytest.fixture
def accepted(check):
    """accepted(upstream, ...): nginx -t passes and warns of nothing."""
    def run(*upstream, **options):
        nginx, out = check(*upstream, **options)
        assert out.returncode == 0, (upstream, options, out.stderr)
        assert "[warn]" not in out.stderr, (upstream, options, out.stderr)
        return nginx
    return run


@pytest.fixture
def refused(check):
    """refused(word, mention, ...): nginx -t fails; its only message has the
    place of `word`, and `mention`."""
    def run(word, mention, **options):
        nginx, out = check(**options)
        assert out.returncode != 0, (options, out.stderr)
        lines = nginx.conf.read_text().splitlines()
        at = [i + 1 for i, line in enumerate(lines) if word in line]
        errors = [x for x in out.stderr.splitlines() if "[emerg]" in x]
        assert len(errors) == 1, (options, out.stderr)
        assert any(f"{nginx.conf}:{n}" in errors[0] for n in at), \
            (options, errors[0])
        assert mention in errors[0], (options, errors[0])
    return run


def directive(line):
    return line.split()[0].rstrip(";")


# --- the lines of an upstream

POLICIES = [
    "affinity", "round_robin", "round-robin", "least_loaded", "weighted",
    "weighted default", "weighted blis", "weighted llm_d",
    "weighted no_hit_lru:1", "weighted effective_load:1",
    "weighted prefix-affinity:3,precise-prefix-cache:.5,no-hit-lru:1e3,"
    "queue_depth:1,kv-utilization:2,load-balance:1,active-requests:1,"
    "running-requests:1",
    "weighted 'queue-depth:1, load-balance:2'",
]
UPSTREAMS = [
    GOOD, "llmgw_hash; server 127.0.0.1:1;", "llmgw_members @dir@/members;",
    GOOD + " server 127.0.0.1:1 weight=2 max_conns=5;",
    GOOD + " server 127.0.0.1:1 down;",
    "llmgw_members members model=llama-8b;",
    "llmgw_members members; llmgw_zone other:2m;"
    " llmgw_hash prefix=1 vnodes=1 load_factor=0 min_load=0;",
    "llmgw_hash load_factor=1.5 prefix=100000; server 127.0.0.1:1;",
    GOOD + " llmgw_queue; llmgw_breaker; llmgw_hedge;",
    GOOD + " llmgw_breaker probes=1000 max_cooldown=2s cooldown=1s"
    " error_rate=12.5% min_requests=1000000 window=1ms;"
    " llmgw_hedge budget=0.1% delay=1s;",
    GOOD + " llmgw_breaker off; llmgw_hedge off;",
    GOOD + " llmgw_hedge on;",
    GOOD + " llmgw_slo critical; llmgw_slo gold priority=-100 ttft=1s itl=2ms;"
    " llmgw_slo a.b-c_1 priority=100;",
    GOOD + " ".join(f" llmgw_slo c{i};" for i in range(27)),
    GOOD + " llmgw_admission always;",
    GOOD + " llmgw_admission token-bucket capacity=0.5 rate=1000000;",
    GOOD + " llmgw_admission reject_all; llmgw_tenant_budget a=0 b=1.0;"
    " llmgw_tenant_budget c=0.333;",
    GOOD + " llmgw_tenant_budget "
    + " ".join(f"t{i}=0.5" for i in range(64)) + ";",
    GOOD + " llmgw_queue off;",
    GOOD + " llmgw_policy weighted; llmgw_prefix_index;",
    GOOD + " llmgw_policy weighted; llmgw_prefix_index blocks=1;",
    "llmgw_prefix_index block=16 blocks=4096 match=4096 size=1m;"
    " llmgw_policy weighted no-hit-lru:1; server 127.0.0.1:1;",
    GOOD + " llmgw_queue 5 order=fifo fairness=global saturation=capacity"
    " usage_limit=100% shedding=off;",
    GOOD + " llmgw_queue hold=0;", GOOD + " llmgw_queue timeout=10m hold=10m;",
    GOOD + " llmgw_queue size=5 timeout=1s order=priority ttl=500ms"
    " fairness=round_robin saturation=utilization usage_limit=80%"
    " shedding=on;",
    GOOD + " llmgw_trace_decisions log;",
    GOOD + " llmgw_trace_decisions @dir@/log sample=0.0001% top=4096"
    " buffer=4k flush=1s;",
    GOOD + " llmgw_trace_decisions log buffer=64m top=all sample=100%;",
    GOOD + " llmgw_queue order=slo_deadline saturation=concurrency;",
    GOOD + " llmgw_queue order=slo-deadline saturation=concurrency=8;",
]


def test_upstreams_that_are_accepted(accepted):
    for upstream in UPSTREAMS:
        nginx = accepted(upstream)
        assert not (nginx.dir / "members").exists()
    for params in POLICIES:
        accepted(f"{GOOD} llmgw_policy {params};", policy=None)


BAD_HASH = [
    ("llmgw_hash prefix=0;", "prefix"), ("llmgw_hash prefix=-1;", "prefix"),
    ("llmgw_hash prefix=x;", "prefix"), ("llmgw_hash prefix=;", "prefix"),
    ("llmgw_hash vnodes=0;", "vnodes"),
    ("llmgw_hash vnodes=99999999;", "vnodes"),
    ("llmgw_hash load_factor=0.5;", "load_factor"),
    ("llmgw_hash load_factor=1001;", "0 (no bound) or 1 to 1000"),
    ("llmgw_hash load_factor=1.2.3;", "load_factor"),
    ("llmgw_hash min_load=x;", "min_load"),
    ("llmgw_hash colour=red;",
     "\"colour=red\", it must be prefix=, vnodes=, load_factor= or min_load="),
    ("llmgw_hash prefix;", "\"prefix\", it must be prefix=, "),
    ("llmgw_hash prefix=1 vnodes=2 prefix=1;", "it must be given once"),
    ("llmgw_hash; llmgw_hash;", "duplicate"),
]
BAD_ZONE = [
    ("llmgw_zone x:1;", "1"),
    ("llmgw_zone x;", "x"),
    ("llmgw_zone x:;", "x:"),
    ("llmgw_zone :1m;", ":1m"),
    ("llmgw_zone x:lots;", "lots"),
    ("llmgw_zone x:1m; llmgw_zone y:1m;", "duplicate"),
]
BAD_ADMISSION = [
    ("llmgw_slo;", "number of arguments"),
    ("llmgw_slo gold priority=101;", "-100 to 100"),
    ("llmgw_slo gold priority=-101;", "-100 to 100"),
    ("llmgw_slo gold priority=;", "priority="),
    ("llmgw_slo gold priority=--1;", "priority="),
    ("llmgw_slo gold ttft=0;", "\"ttft=0\", it must be a time above 0"),
    ("llmgw_slo gold ttft=soon;", "a time above 0"),
    ("llmgw_slo gold itl=-1ms;", "a time above 0"),
    ("llmgw_slo gold speed=1;", "speed=1"),
    ("llmgw_slo gold; llmgw_slo gold ttft=1s;", "duplicate"),
    ("llmgw_slo critical; llmgw_slo critical;", "duplicate"),
    ("llmgw_slo other;", "stands for all"),
    ("llmgw_slo g\u00f6ld;", "letters, digits"),
    ("llmgw_slo -gold;", "letters, digits"),
    ("llmgw_slo \"a b\";", "letters, digits"),
    (f"llmgw_slo {'x' * 64};", "at most 63"),
    (" ".join(f"llmgw_slo c{i};" for i in range(28)), "at most 32"),
    ("llmgw_admission;", "number of arguments"),
    ("llmgw_admission never;", "always, token_bucket or reject_all"),
    ("llmgw_admission tier_shed;", "always, token_bucket or reject_all"),
    ("llmgw_admission gaie-legacy;", "always, token_bucket or reject_all"),
    ("llmgw_admission always; llmgw_admission always;", "duplicate"),
    ("llmgw_admission always rate=1;", "only token_bucket"),
    ("llmgw_admission reject_all capacity=1;", "only token_bucket"),
    ("llmgw_admission token_bucket capacity=0;", "above 0"),
    ("llmgw_admission token_bucket capacity=-1;", "above 0"),
    ("llmgw_admission token_bucket capacity=nan;", "above 0"),
    ("llmgw_admission token_bucket rate=inf;", "above 0"),
    ("llmgw_admission token_bucket rate=1e3;", "above 0"),
    ("llmgw_admission token_bucket rate=.;", "above 0"),
    ("llmgw_admission token_bucket rate=9999999999999;", "above 0"),
    ("llmgw_admission token_bucket size=1;", "size=1"),
    ("llmgw_tenant_budget;", "number of arguments"),
    ("llmgw_tenant_budget acme;", "\"acme\", it must be tenant=fraction"),
    ("llmgw_tenant_budget acme=;", "0 to 1"),
    ("llmgw_tenant_budget acme=1.1;", "0 to 1"),
    ("llmgw_tenant_budget acme=.;", "0 to 1"),
    ("llmgw_tenant_budget acme=1.;", "0 to 1"),
    ("llmgw_tenant_budget acme=-0.1;", "0 to 1"),
    ("llmgw_tenant_budget acme=nan;", "0 to 1"),
    ("llmgw_tenant_budget acme=50%;", "0 to 1"),
    ("llmgw_tenant_budget =0.5;", "letters, digits"),
    ("llmgw_tenant_budget other=0.5;", "stands for all"),
    ("llmgw_tenant_budget a=0.5 b=0.5 a=1;", "has a budget already"),
    ("llmgw_tenant_budget a=1; llmgw_tenant_budget a=1;", "already"),
    ("llmgw_tenant_budget " + " ".join(f"t{i}=1" for i in range(65)) + ";",
     "at most 64"),
    ("llmgw_class $x;", "not allowed here"),
]
BAD_MEMBERS = [
    ("llmgw_members;", "number of arguments"),
    ("llmgw_members a b;", "invalid parameter \"b\""),
    ("llmgw_members a model=;", "invalid parameter \"model=\""),
    ("llmgw_members a model=b c;", "number of arguments"),
    ("llmgw_members a; llmgw_members b;", "duplicate"),
    ("llmgw_members \"\";", "llmgw_members"),
]
BAD_PREFIX_INDEX = [
    ("llmgw_prefix_index block=15;", "block"),
    ("llmgw_prefix_index block=4097;", "block"),
    ("llmgw_prefix_index blocks=0;", "blocks"),
    ("llmgw_prefix_index blocks=x;", "blocks"),
    ("llmgw_prefix_index match=0;", "match"),
    ("llmgw_prefix_index match=4097;", "match"),
    ("llmgw_prefix_index blocks=100 match=101;", "match"),
    ("llmgw_prefix_index size=63k;", "64k"),
    ("llmgw_prefix_index size=x;", "size"),
    ("llmgw_prefix_index size=1m blocks=100000;", "100000 blocks"),
    ("llmgw_prefix_index colour=red;", "colour"),
    ("llmgw_prefix_index; llmgw_prefix_index;", "duplicate"),
]
BAD_QUEUE = [
    ("0", "1 to 1000000"),
    ("off 5", "\"off\", it must be the only one"),
    ("off ttl=5s", "\"off\", it must be the only one"),
    ("ttl=5s off", "\"off\", it must be the only one"),
    ("5 size=6", "\"size=6\", it must be given once"),
    ("saturation=utilization saturation=concurrency=8", "more than one"),
    ("saturation=capacity saturation=concurrency=8", "more than one"),
    ("saturation=concurrency=8 saturation=capacity", "more than one"),
    ("timeout=x", "\"timeout=x\", it must be a time above 0"),
    ("ttl=", "\"ttl=\", it must be a time above 0"),
    ("order=lifo", "fifo, priority or slo_deadline"),
    ("order=", "fifo, priority or slo_deadline"),
    ("fairness=fair", "global or round_robin"),
    ("saturation=full", "capacity, utilization or concurrency"),
    ("saturation=concurrency=0", "1 to 1000000"),
    ("saturation=concurrency8", "capacity, utilization or concurrency"),
    ("usage_limit=0%", "0.1% to 100%"),
    ("usage_limit=101%", "0.1% to 100%"),
    ("usage_limit=0.5", "0.1% to 100%"),
    ("shedding=yes", "on or off"), ("hold=", "0 or a time above 0"),
    ("hold=off", "0 or a time above 0"),
    ("hold=31s", "has a \"hold\" longer than its \"timeout\""),
    ("colour=red", "colour"),
]
BAD_BREAKER = [
    ("on", "off, window=, min_requests=, error_rate=, cooldown=,"
     " max_cooldown= or probes="),
    ("off probes=1", "\"off\", it must be the only one"),
    ("window=0", "a time above 0"),
    ("min_requests=0", "1 to 1000000"),
    ("probes=1001", "1 to 1000"),
    ("error_rate=0%", "0.1% to 100%"),
    ("error_rate=%", "0.1% to 100%"),
    ("error_rate=12.55%", "0.1% to 100%"),
    ("error_rate=50", "0.1% to 100%"),
    ("cooldown=5s max_cooldown=1s", "has a max_cooldown below its cooldown"),
    ("probes=1 probes=2", "\"probes=2\", it must be given once"),
    ("off; llmgw_breaker off", "is duplicate"),
]
BAD_HEDGE = [
    ("sometimes", "\"sometimes\", it must be on, off, delay= or budget="),
    ("on delay=1s", "\"on\", it must be the only one"),
    ("delay=", "\"delay=\", it must be a time above 0"),
    ("delay=1s budget=101%", "0.1% to 100%"),
    ("budget=5% delay=0", "\"delay=0\", it must be a time above 0"),
    ("budget=5%", "has a \"budget\" without a \"delay\""),
    ("delay=1s delay=1s", "it must be given once"),
    ("on; llmgw_hedge on", "is duplicate"),
]
BAD_DECISION_LOG = [
    ("$host.log", "a path without variables"),
    ("off", "a path without variables"),
    ("syslog:server=127.0.0.1", "a path without variables"),
    ("", "number of arguments"),
    ("log x", 'invalid parameter "x"'),
    ("log sample=5", "0.0001% to 100%"), ("log sample=0%", "0.0001% to 100%"),
    ("log sample=%", "0.0001% to 100%"), ("log sample=", "0.0001% to 100%"),
    ("log sample=100.0001%", "0.0001% to 100%"),
    ("log top=0", "1 to 4096"), ("log top=4097", "1 to 4096"),
    ("log buffer=4095", "4k to 64m"), ("log buffer=65m", "4k to 64m"),
    ("log flush=1s", '"flush" without a "buffer"'),
    ("log buffer=4k flush=0", "a time above 0"),
    ("log; llmgw_trace_decisions log", "is duplicate"),
]
BAD_POLICY = [
    ("", "number of arguments"),
    ("weighted queue-depth:1 load-balance:1", "number of arguments"),
    ("fastest", "affinity, round_robin, least_loaded or weighted"),
    ("random", "invalid parameter \"random\""),
    ("always_busiest", "invalid parameter \"always_busiest\""),
    ("round_robin queue-depth:1", "only the policy \"weighted\""),
    ("affinity default", "only the policy \"weighted\""),
    ("weighted gentle", "\"gentle\" is not NAME:WEIGHT"),
    ("weighted queue:1", "unknown scorer \"queue\""),
    ("weighted queue-depth:1,,load-balance:1", "is not NAME:WEIGHT"),
    ("weighted queue-depth:1,queue_depth:2", "named twice"),
    ("weighted queue-depth:", "not a finite number above 0"),
    ("weighted queue-depth:0", "not a finite number above 0"),
    ("weighted queue-depth:-1", "not a finite number above 0"),
    ("weighted queue-depth:nan", "not a finite number above 0"),
    ("weighted queue-depth:inf", "not a finite number above 0"),
    ("weighted queue-depth:1e999", "not a finite number above 0"),
    ("weighted queue-depth:1x", "not a finite number above 0"),
    ("weighted queue-depth:1e308,load-balance:1e308", "sum of the weights"),
    ("weighted queue-depth:1,load_aware:1", "unknown scorer \"load_aware\""),
    ("weighted vllm-dp:1", "unknown scorer \"vllm-dp\""),
    ("weighted lora-affinity:1", "unknown scorer \"lora-affinity\""),
    ("weighted; llmgw_policy weighted", "duplicate"),
]


def test_lines_of_an_upstream_that_are_refused(refused):
    for line, mention in BAD_HASH + BAD_ZONE + BAD_ADMISSION:
        refused(directive(line), mention,
                upstream=f"{MEMBERS}\n        {line}")
    for line, mention in BAD_MEMBERS:
        refused("llmgw_members", mention, upstream=line)
    for line, mention in BAD_PREFIX_INDEX:
        refused("llmgw_prefix_index", mention,
                upstream=f"{MEMBERS}\n        {line}\n"
                         "        llmgw_policy weighted;")
    for name, lines in [("llmgw_queue", BAD_QUEUE),
                        ("llmgw_breaker", BAD_BREAKER),
                        ("llmgw_hedge", BAD_HEDGE),
                        ("llmgw_trace_decisions", BAD_DECISION_LOG)]:
        for params, mention in lines:
            refused(name, mention,
                    upstream=f"{GOOD}\n        {name} {params};")
    for params, mention in BAD_POLICY:
        refused("llmgw_policy", mention, policy=None,
                upstream=f"{GOOD}\n        llmgw_policy {params};")


def test_parameters_are_refused_in_one_form(check):
    """The directive, what was given, what is accepted; nginx adds the place."""
    for params, right in [
            ("ttl=0", "a time above 0"),
            ("size=x", "off or 1 to 1000000"),
            ("order=lifo", "fifo, priority or slo_deadline"),
            ("speed=1", "size=, timeout=, ttl=, hold=, order=, fairness=, "
             "saturation=concurrency=, saturation=, usage_limit= or "
             "shedding=")]:
        nginx, out = check(f"{GOOD}\n        llmgw_queue {params};")
        at = nginx.conf.read_text().splitlines().index(
            f"        llmgw_queue {params};") + 1
        assert (f'"llmgw_queue": invalid parameter "{params}", it must be'
                f' {right} in {nginx.conf}:{at}\n') in out.stderr


def test_upstreams_that_cannot_be_as_a_whole(check, refused):
    nginx, out = check("llmgw_hash;")
    assert out.returncode != 0
    assert "no servers" in out.stderr or "llm" in out.stderr
    assert f"{nginx.conf}:" in out.stderr

    _, out = check(f"{GOOD} llmgw_zone z:2m; llmgw_queue 100000;")
    assert out.returncode != 0
    assert 'enlarge "llmgw_zone" of upstream "llm"' in out.stderr, out.stderr

    refused("llmgw_trace_decisions", "is another log's",
            http="access_log @dir@/log combined buffer=4k;",
            upstream=f"{GOOD} llmgw_trace_decisions @dir@/log;")

    for word in ("backup", "max_fails=3", "fail_timeout=5s"):
        refused(word, f'parameter "{word}"', upstream=(
            "llmgw_hash; server 127.0.0.1:2;\n"
            f"        server 127.0.0.1:1 {word};"))
    refused("upstream llm", '"zone" is not supported', upstream=(
        "llmgw_hash; server 127.0.0.1:2; zone z 1m;"))


def test_what_does_nothing_is_warned_of(cluster, check):
    for params in ("", "order=priority", "saturation=concurrency"):
        _, out = check(f"{GOOD} llmgw_queue usage_limit=50% {params};")
        assert out.returncode == 0
        assert '"usage_limit" of "llmgw_queue" does nothing' in out.stderr

    nginx, out = check(GOOD + " llmgw_prefix_index;")
    assert out.returncode == 0, out.stderr
    at = [i + 1 for i, line in enumerate(nginx.conf.read_text().splitlines())
          if "llmgw_prefix_index" in line]
    assert (f'"llmgw_prefix_index" is ignored, the policy of upstream "llm"'
            f' reads no prefixes, in {nginx.conf}:{at[0]}') in out.stderr

    cluster.allowed.append("load balancing method redefined")
    _, out = check("keepalive 8; llmgw_hash; server 127.0.0.1:1;")
    assert out.returncode == 0
    if version() < (1, 29, 7):      # where the order still matters
        assert "load balancing method redefined" in out.stderr


# --- those of a location, a server and of http

OPENAI = """
    location /a/ {{ llmgw_openai llm; {} }}"""
OPENAI_LINES = [
    "llmgw_openai_path /v1/a/b; llmgw_openai_path /a/b;", "llmgw_model m;",
    "llmgw_model m as org/m-8b;", "llmgw_model m pool=llm;",
    "llmgw_model m as e pool=llm; llmgw_model n;",
    "llmgw_model as; llmgw_model pool=x as y;",
    "llmgw_sse_keepalive off;", "llmgw_sse_keepalive 500ms;",
    "llmgw_sse_keepalive 500ms header=1s;",
    "llmgw_default_max_tokens 1; llmgw_timeout_header X-Stainless-Timeout;",
]


def test_lines_of_locations_that_are_accepted(accepted):
    lines = ("llmgw_tries 5; llmgw_connect_timeout 2s;"
             " llmgw_first_token_timeout 1m; llmgw_token_timeout 500ms;"
             " llmgw_resume text; llmgw_class request header=X-Prio_1;"
             " llmgw_tenant $remote_addr;")
    accepted(http=lines, server=lines, location=lines)
    for lines in OPENAI_LINES:
        accepted(server=OPENAI.format(lines))
    for value in ("off", "1ms", "100ms"):
        accepted(http=f"llmgw_coalesce {value};")
    for value in ("64m", "1g client=$http_x_api_key", "1m client=off"):
        accepted(http=f"llmgw_body_memory {value};")


BAD_IDENTITY = [
    ("llmgw_class;", "number of arguments"),
    ("llmgw_class \"\";", "off, request or a string that is not empty"),
    ("llmgw_class request x;", "\"x\""),
    ("llmgw_class request header=;", "header="),
    ("llmgw_class request header=a:b;", "letters, digits"),
    ("llmgw_class off header=x;", "header=x"),
    ("llmgw_class $uri header=x;", "header=x"),
    ("llmgw_class off; llmgw_class off;", "duplicate"),
    ("llmgw_tenant request \"header=a b\";", "letters, digits"),
    ("llmgw_tenant request; llmgw_tenant $uri;", "duplicate"),
    ("llmgw_slo gold;", "not allowed here"),
]
BAD_LOCATION = [
    ("llmgw_tries 0;", "between 1 and"),
    ("llmgw_tries x;", "llmgw_tries"),
    ("llmgw_tries -1;", "llmgw_tries"),
    ("llmgw_tries 1; llmgw_tries 2;", "duplicate"),
    ("llmgw_resume maybe;", "invalid value"),
    ("llmgw_resume ids text;", "number of arguments"),
    ("llmgw_connect_timeout never;", "llmgw_connect_timeout"),
    ("llmgw_first_token_timeout 1x;", "llmgw_first_token_timeout"),
    ("llmgw_token_timeout;", "llmgw_token_timeout"),
    ("llmgw_token_timeout 1s 2s;", "llmgw_token_timeout"),
    ("llmgw_status on;", "llmgw_status"),
    ("llmgw_dashboard a b;", "llmgw_dashboard"),
    ("llmgw_dashboard '';", "not a path"),
    ("llmgw_dashboard //example.org/status;", "not a path"),
    ("llmgw_dashboard https://example.org/status;", "not a path"),
    ("llmgw_status; llmgw_dashboard;", "duplicate"),
    ("llmgw_hash;", "not allowed here"),
    ("llmgw_members x;", "not allowed here"),
]
BAD_PAGE = [
    ("llmgw_status access=none;", "\"access=none\", it must be local or any"),
    ("llmgw_metrics access=;", "local or any"),
    ("llmgw_metrics access=any all;", "number of arguments"),
    ("llmgw_dashboard access=any access=any;", "given once"),
    ("llmgw_dashboard status access=all;", "local or any"),
    ("llmgw_dashboard access=any status;", "\"status\", it must be access="),
    ("llmgw_ready llm llm;", "number of arguments"),
    ("llmgw_ready '';", "the name of an upstream"),
    ("llmgw_ready nowhere;", "\"nowhere\" is not defined"),
    ("llmgw_ready; llmgw_status;", "duplicate"),
]
BAD_OPENAI = [
    ("llmgw_openai llm;", "duplicate"), ("llmgw_pass llm;", "another front"),
    ("llmgw_openai_path a;", "needs a path"),
    ("llmgw_openai_path /a/../b;", "needs a path"),
    ("llmgw_openai_path /v1/models;", "is duplicate"),
    ("llmgw_openai_path /a; llmgw_openai_path /a;", "is duplicate"),
    ("llmgw_model;", "number of arguments"),
    ("llmgw_model '';", "needs a name"),
    ("llmgw_model a as;", "invalid parameter \"as\""),
    ("llmgw_model a as '';", "engine's name"),
    ("llmgw_model a b;", "invalid parameter \"b\""),
    ("llmgw_model a pool=;", "invalid parameter \"pool=\""),
    ("llmgw_model a pool=nowhere;", "\"nowhere\" is not defined"),
    ("llmgw_model a as b pool=llm c;", "number of arguments"),
    ("llmgw_model a; llmgw_model a as b;", "duplicate"),
    ("llmgw_sse_keepalive 0;", "above 0"),
    ("llmgw_sse_keepalive on;", "above 0"),
    ("llmgw_sse_keepalive 1s; llmgw_sse_keepalive off;", "duplicate"),
    ("llmgw_sse_keepalive off header=1s;", "\"off\", it must be the only one"),
    ("llmgw_sse_keepalive 1s header=0;", "\"header=0\", it must be a time"),
    ("llmgw_sse_keepalive 1s head=1s;", "invalid parameter \"head=1s\""),
    ("llmgw_default_max_tokens 0;", "between 1 and"),
    ("llmgw_default_max_tokens x;", "invalid number"),
    ("llmgw_timeout_header a; llmgw_timeout_header b;", "duplicate"),
]


def test_lines_of_a_location_that_are_refused(refused):
    for line, mention in BAD_IDENTITY:
        refused(directive(line), mention, location=line)
    for line, mention in BAD_LOCATION:
        refused(line, mention, location=line)
    for line, mention in BAD_PAGE:
        refused(line, mention, server=f"location /x {{ {line} }}")
    for line, mention in BAD_OPENAI:
        refused(line, mention, server=OPENAI.format(line))
    for line, mention in [("llmgw_pass;", "llmgw_pass"),
                          ("llmgw_pass a b;", "llmgw_pass"),
                          ("llmgw_pass llm; llmgw_pass llm;", "duplicate")]:
        refused(line, mention, server=f"location /x {{ {line} }}")
    for line in ("", "llmgw_pass llm;", "llmgw_key prompt;"):
        refused("llmgw_model a;", "needs \"llmgw_openai\"", server=f"""
        location /x/ {{
            {line}
            llmgw_model a;
        }}""")
    refused("llmgw_pass nowhere", "nowhere",
            server="location /x { llmgw_pass nowhere; }")
    refused("llmgw_pass stock", "stock",
            http="upstream stock { server 127.0.0.1:1; }",
            server="location /x { llmgw_pass stock; }")


BAD_KEY = [
    ("llmgw_key $arg_k queue=other;", "other"),
    ("llmgw_key $arg_k queue=plain;", "plain"),
    ("llmgw_key $arg_k queue=off;", "llmgw_queue off"),
    ("llmgw_key $arg_k queue=;", "queue="),
    ("llmgw_key $arg_k wait=llm;", "wait="),
    ("llmgw_key $arg_k; llmgw_key body;", "duplicate"),
]


def test_keys_of_a_native_pass_that_are_refused(check, refused):
    around = {"upstream": "llmgw_hash; server 127.0.0.1:1;", "http": (
        "upstream plain { server 127.0.0.1:2; } upstream off {"
        " server 127.0.0.1:3; llmgw_hash; llmgw_queue off; }")}
    place = "location /x {{ {} proxy_pass http://llm; }}"
    for line, mention in BAD_KEY:
        refused(line, mention, server=place.format(line), **around)

    line = "llmgw_key $no_such_variable;"       # nginx's own message
    _, out = check(server=place.format(line), **around)
    assert out.returncode != 0
    errors = [x for x in out.stderr.splitlines() if "[emerg]" in x]
    assert len(errors) == 1 and "no_such_variable" in errors[0], out.stderr


BAD_BODY_MEMORY = [
    ("llmgw_body_memory;", "number of arguments"),
    ("llmgw_body_memory lots;", "\"lots\", it must be a size"),
    ("llmgw_body_memory 1m; llmgw_body_memory 2m;", "duplicate"),
    ("llmgw_body_memory 1m client=;", "invalid parameter"),
    ("llmgw_body_memory 1m key=x;", "invalid parameter"),
    ("llmgw_body_memory 1m client=off off;", "number of arguments"),
]
BAD_COALESCE = [
    ("llmgw_coalesce 0;", "off or 1ms to 100ms"),
    ("llmgw_coalesce 0ms;", "off or 1ms to 100ms"),
    ("llmgw_coalesce 101ms;", "off or 1ms to 100ms"),
    ("llmgw_coalesce 1s;", "off or 1ms to 100ms"),
    ("llmgw_coalesce -1;", "off or 1ms to 100ms"),
    ("llmgw_coalesce 99999999999999999999ms;", "off or 1ms to 100ms"),
    ("llmgw_coalesce foo;", "off or 1ms to 100ms"),
    ("llmgw_coalesce '';", "off or 1ms to 100ms"),
    ("llmgw_coalesce;", "number of arguments"),
    ("llmgw_coalesce 1ms 2ms;", "number of arguments"),
    ("llmgw_coalesce off; llmgw_coalesce 1ms;", "duplicate"),
]


def test_lines_of_http_that_are_refused(refused):
    for line, mention in BAD_BODY_MEMORY + BAD_COALESCE:
        refused(line, mention, http=line)
    refused("llmgw_coalesce 1ms;", "not allowed here",
            server="llmgw_coalesce 1ms;")


# --- configurations that are run

def test_upstream_may_come_later_in_the_file(cluster):
    nginx = cluster.nginx(GOOD, start=False)
    text = nginx.conf.read_text()
    at, end = text.index("    upstream llm"), text.index("    server {")
    block = text[at:end]
    text = text.replace(block, "")
    nginx.conf.write_text(text.rstrip()[:-1] + block + "}\n")
    out = nginx.command("-t")
    assert out.returncode == 0, out.stderr


def test_two_pools_beside_stock_locations(cluster, client, expect):
    """Other upstreams and locations of the same nginx are left alone."""
    a, b = cluster.replica("a"), cluster.replica("b")
    nginx = cluster.nginx(
        f"llmgw_hash; server {a.target};",
        http=f"upstream second {{ llmgw_hash; server {b.target}; }}",
        server="location = /llmgateway.InferenceGateway/Infer"
               " { llmgw_pass second; }"
               " location = /plain { return 200 plain; }")
    got = client(nginx).stream("x", 3).check(expect("x", 3))
    assert got.replicas == [b.target]
    assert {p["name"] for p in nginx.status()["pools"]} == {"llm", "second"}
    assert nginx.get("/plain")[1] == b"plain"


def test_without_a_master(cluster, client, expect):
    a = cluster.replica("a")
    nginx = cluster.nginx(f"llmgw_hash; server {a.target};", start=False)
    text = nginx.conf.read_text().replace("master_process on",
                                          "master_process off")
    nginx.conf.write_text(text)
    cluster.launch(nginx)
    client(nginx).stream("x", 3).check(expect("x", 3))
