"""The native passes over our upstream: locations, calls, servers."""

import concurrent.futures
import urllib.error
import urllib.request

GRPC = """
        location /llmgateway.LLMReplica/ {{
            grpc_pass grpc://llm;
            {lines}
        }}"""

HTTP = """
        location /http/ {{
            proxy_pass http://llm;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            {lines}
        }}"""

SESSION = "llmgw_key $http_x_session;"
QUEUED = "llmgw_key $http_x_session queue=llm;"


def grpc(lines, **options):
    return {"server": GRPC.format(lines=lines), **options}


def http(lines, **options):
    return {"server": HTTP.format(lines=lines), **options}


def generate(c, session, prompt="p", n=3, **kw):
    return c.generate(prompt, n, metadata=(("x-session", session),), **kw)


def get(nginx, session, path="/http/x", body=None, timeout=20):
    """(status, body)"""
    request = urllib.request.Request(
        f"http://127.0.0.1:{nginx.status_port}{path}", data=body,
        headers={"X-Session": session})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def at_once(n, act):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(act, range(n)))


def started(cluster):
    return {i: r.stats().started for i, r in cluster.replicas.items()}
