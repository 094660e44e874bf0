"""The lint finds each kind of violation: one of each is planted in a small,
otherwise clean tree, and must be reported with its file and line."""

import datetime
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lint  # noqa: E402

TABLE = """\
| room | may include |
|---|---|
| `proto/` | nothing |
| `common/` | `proto/` |
| `core/` | nothing |
| `zone/` | nginx, `core/` |
| `pages/` | nginx, `zone/` |
| `pages/snapshot.c` | `core/`, `zone/` |
| `ngx_http_llmgw_module/` | all |
| `swim/`, `net/` | `common/`, `proto/` |
| `agent/` | all |
| `t/` | all |
"""

WALK = """\

| file | function | what |
|---|---|---|
| `zone/rows.c` | `rows_claim()` | begins |
| `core/queue.c` | `queue_next()` | ends |
"""

SHOWN = """\
| threat | shown by |
|---|---|
| x | `t/test_log.py`: `test_log_has_ids`, `test_log_ends` |
"""

GLUE = "ngx_http_llmgw_module"

TODAY = datetime.date(2026, 3, 1)
UNSTABLE = "test\tcommit\tseed\tfirst seen\tcause\n"
SOAK = "slice\tcommit\tdate\tminutes\tpassed\tseed\n"


def unstable(*days):
    """t/unstable.tsv with a line for a test that was seen so long ago."""
    return UNSTABLE + "".join(
        f"t/e2e/x.py::test_{d}\tabc1234\t1\t"
        f"{TODAY - datetime.timedelta(d)}\t-\n" for d in days)


CLEAN = {
    "docs/ARCHITECTURE.md": TABLE + WALK,
    "CONTRIBUTING.md": "See `core/queue.c`, `t/unit/` and `proto/*.h`.\n",
    "docs/directives.md": "## llmgw_queue\n",
    "docs/variables.md": "## $llmgw_tries\n",
    "docs/metrics.md": "| `llmgw_requests_total` |\n| `llmgw_members` |\n"
                       "| `llmgw_agent_info` |\n"
                       "| `llmgw_agent_uptime_seconds` |\n"
                       "| `llmgw_agent_members` |\n"
                       "| `llmgw_agent_dropped_total` |\n",
    "proto/layout.h": "#include <stdint.h>\n",
    "common/log.c": '#include "proto/layout.h"\n',
    f"{GLUE}/module.c": '#include <ngx_core.h>\n#include "zone/rows.h"\n'
                        'ngx_string("llmgw_queue"), NGX_HTTP\n'
                        'ngx_string("llmgw_tries"), NULL\n',
    f"{GLUE}/core/queue.h": "#include <stddef.h>\n",
    f"{GLUE}/core/queue.c": '#include "core/queue.h"\n\n'
                            "int\nqueue_next(void)\n{\n    return 1;\n}\n",
    f"{GLUE}/zone/rows.h": '#include "core/queue.h"\n',
    f"{GLUE}/zone/rows.c": '#include <ngx_core.h>\n#include "zone/rows.h"\n\n'
                           "int\nrows_claim(void)\n{\n"
                           "    return queue_next();\n}\n",
    f"{GLUE}/pages/facts/pool.c": '    X(requests, COUNTER, ONE, "Ended")\n'
                                  '    METRIC_ROW(members, GAUGE, ONE, "")\n',
    f"{GLUE}/pages/page.c": '#include "zone/rows.h"\n'
                            '#include "dashboard.h"\n',
    f"{GLUE}/pages/snapshot.c": '#include "core/queue.h"\n',
    "agent/agent.c": '#include "swim/swim.h"\n#include "net/udp.h"\n',
    "agent/swim/swim.h": '#include "common/log.h"\n',
    "agent/swim/swim_inner.h": '#include "gossip.pb-c.h"\n',
    "agent/swim/probe.c": '#include "swim/swim_inner.h"\n',
    "agent/net/udp.h": "#include <stddef.h>\n",
    "common/log.h": "#include <stddef.h>\n",
    "t/unit/agent/swim/test_probe.c": '#include "swim/swim_inner.h"\n',
    "t/tool.py": "import os\n\nprint(os.sep)\n",
    "t/test_log.py": "def test_log_has_ids(log):\n    assert log\n\n\n"
                     "def test_log_ends():\n    pass\n",
    "docs/security.md": SHOWN,
}

# What is planted (path: further text), and the finding that must appear.
PLANTED = {
    "proto knows nothing": (
        {"proto/layout.h": '#include "common/log.h"\n'},
        "proto/layout.h:2: proto/ may not include common/log.h"),
    "common does not know core": (
        {"common/log.c": '#include "core/queue.h"\n'},
        "common/log.c:2: common/ may not include core/queue.h"),
    "core knows nothing": (
        {f"{GLUE}/core/queue.c": '#include "proto/layout.h"\n'},
        f"{GLUE}/core/queue.c:8: {GLUE}/core/ may not include"
        " proto/layout.h"),
    "core does not know nginx": (
        {f"{GLUE}/core/queue.c": "#include <ngx_core.h>\n"},
        f"{GLUE}/core/queue.c:8: {GLUE}/core/ does not know nginx"
        " (ngx_core.h)"),
    "core does not know messages": (
        {f"{GLUE}/core/queue.c": '#include "gossip.pb-c.h"\n'},
        f"{GLUE}/core/queue.c:8: {GLUE}/core/ may not include gossip.pb-c.h"),
    "the page is for the pages": (
        {f"{GLUE}/zone/rows.c": '#include "dashboard.h"\n'},
        f"{GLUE}/zone/rows.c:9: {GLUE}/zone/ may not include dashboard.h"),
    "one room below another": (
        {f"{GLUE}/zone/rows.h": '#include "pages/page.h"\n',
         f"{GLUE}/pages/page.h": "#include <stddef.h>\n"},
        f"{GLUE}/zone/rows.h:2: {GLUE}/zone/ may not include pages/page.h"),
    "a file may do more than its folder": (
        {f"{GLUE}/pages/page.c": '#include "core/queue.h"\n'},
        f"{GLUE}/pages/page.c:3: {GLUE}/pages/ may not include core/queue.h"),
    "rooms of the agent": (
        {"agent/net/udp.c": '#include "swim/swim.h"\n'},
        "agent/net/udp.c:1: agent/net/ may not include swim/swim.h"),
    "the agent's root is above its rooms": (
        {"agent/swim/probe.c": '#include "agent/agent.h"\n',
         "agent/agent.h": "#include <stddef.h>\n"},
        "agent/swim/probe.c:2: agent/swim/ may not include agent/agent.h"),
    "a folder without a row": (
        {"agent/fresh/new.c": '#include "common/log.h"\n'},
        "agent/fresh/new.c:1: agent/fresh/ has no row in"
        " docs/ARCHITECTURE.md"),
    "a row without a folder": (
        {"docs/ARCHITECTURE.md":
         "\n| room | may include |\n|---|---|\n| `gone/` | nothing |\n"},
        "docs/ARCHITECTURE.md:21: gone/ is not there"),
    "an inner header": (
        {"agent/agent.c": '#include "swim/swim_inner.h"\n'},
        "agent/agent.c:3: swim/swim_inner.h stays in its folder"),
    "an inner header and a test of another room": (
        {"t/unit/agent/net/test_udp.c": '#include "swim/swim_inner.h"\n'},
        "t/unit/agent/net/test_udp.c:1: swim/swim_inner.h stays in its"
        " folder"),
    "a path from nowhere": (
        {"agent/net/udp.c": '#include "udp.h"\n'},
        "agent/net/udp.c:1: udp.h is not a path from a root"),
    "a path with two meanings": (
        {"agent/core/queue.h": "\n", "agent/net/udp.c":
         '#include "core/queue.h"\n'},
        "agent/net/udp.c:1: core/queue.h may be agent/core/queue.h or"
        f" {GLUE}/core/queue.h"),
    "a circle of files": (
        {"common/log.h": '#include "common/line.h"\n',
         "common/line.h": '#include "common/log.h"\n'},
        "common/line.h:1: include circle of files: common/line.h ->"
        " common/log.h -> common/line.h"),
    "a circle of folders": (
        {f"{GLUE}/core/ring/ring.h": '#include "core/queue.h"\n',
         f"{GLUE}/core/pick.h": '#include "core/ring/ring.h"\n'},
        f"{GLUE}/core/pick.h:1: include circle of folders: {GLUE}/core ->"
        f" {GLUE}/core/ring -> {GLUE}/core"),
    "one object's name twice": (
        {f"{GLUE}/zone/grpc/log.c": "\n", "proto/grpc/log.c": "\n"},
        f"proto/grpc/log.c:1: the same object as {GLUE}/zone/grpc/log.c in"
        " nginx's build: grpc/log.c"),
    "26 sources in a folder": (
        {f"common/f{i}.c": "\n" for i in range(10, 34)},
        "common/log.h:1: source file 26 of 26 in common/, the limit is 25"),
    "26 sources in a folder of tests": (
        {f"t/unit/f{i}.c": "\n" for i in range(10, 36)},
        "t/unit/f35.c:1: source file 26 of 26 in t/unit/, the limit is 25"),
    "a long file": (
        {"common/log.c": "\n" * 600},
        "common/log.c:601: 601 lines, the limit is 600"),
    "a long line": (
        {"common/log.c": "/* " + "-" * 75 + " */\n"},
        "common/log.c:2: 81 columns, the limit is 80"),
    "a space at the end": (
        {"common/log.c": "int x; \n"},
        "common/log.c:2: space at the end of the line"),
    "no newline at the end": (
        {"common/log.c": "int x;"},
        "common/log.c:2: no newline at the end"),
    "a tab": ({"common/log.c": "\tint x;\n"}, "common/log.c:2: a tab"),
    "unfinished work": (
        {"common/log.c": "/* TO" "DO */\n"},
        "common/log.c:2: unfinished work: /* TO" "DO */"),
    "a path of one machine": (
        {"common/log.c": "/* /wo" "rk/x */\n"},
        "common/log.c:2: a path of one machine"),
    "markup": (
        {"t/page.js": "e.innerHTML = x;\n"},
        "t/page.js:1: text that would be taken for markup or code"),
    "a long function": (
        {"common/log.c": "int\nlog_all(void)\n{\n" + "    x();\n" * 91
         + "}\n"},
        "common/log.c:4: log_all() has 91 lines, the limit is 90"),
    "a long function of the glue": (
        {f"{GLUE}/zone/rows.c": "int\nrows_all(void)\n{\n"
         + "    x();\n" * 121 + "}\n"},
        f"{GLUE}/zone/rows.c:11: rows_all() has 121 lines, the limit is 120"),
    "long functions by the median": (
        {f"common/f{i}.c": "int\nf(void)\n{\n" + "    x();\n" * 16 + "}\n"
         for i in range(3)},
        ".:0: median function of 16 lines, the limit is 15"),
    "long functions by the 90th percentile": (
        {f"common/f{i}.c": "int\nf(void)\n{\n" + "    x();\n" * (46 * (i < 3))
         + "}\n" for i in range(9)},
        ".:0: 90th percentile function of 46 lines, the limit is 45"),
    "a function's brace": (
        {"common/log.c": "int log_it(void) {\n}\n"},
        "common/log.c:2: the brace of a function stands alone"),
    "a clock in core": (
        {f"{GLUE}/core/queue.c": "int\nqueue_now(void)\n{\n"
         "    return time(NULL);\n}\n"},
        f"{GLUE}/core/queue.c:11: time( in what takes its surroundings as"
        " arguments"),
    "memory in core": (
        {f"{GLUE}/core/queue.c": "void *\nqueue_new(void)\n{\n"
         "    return malloc(1);\n}\n"},
        f"{GLUE}/core/queue.c:11: malloc( in what takes its surroundings as"
        " arguments"),
    "chance in swim": (
        {"agent/swim/probe.c": "int\nprobe_any(void)\n{\n"
         "    return random();\n}\n"},
        "agent/swim/probe.c:5: random( in what takes its surroundings as"
        " arguments"),
    "a log in swim": (
        {"agent/swim/probe.c": "void\nprobe_say(void)\n{\n"
         '    printf("x");\n}\n'},
        "agent/swim/probe.c:5: printf( in what takes its surroundings as"
        " arguments"),
    "a function of core that nginx does not call": (
        {f"{GLUE}/core/queue.h": "#define X  1\n\nint queue_dead(void);\n",
         f"{GLUE}/core/queue.c": "int\nqueue_dead(void)\n{\n"
         "    return queue_dead();\n}\n",
         f"{GLUE}/zone/rows.c": "/* queue_dead() */\n",
         "t/unit/test_queue.c": "int  dead = queue_dead();\n"},
        f"{GLUE}/core/queue.c:9: queue_dead() has no caller in another file"
        " of the module"),
    "a directive that is not documented": (
        {f"{GLUE}/module.c": 'ngx_string("llmgw_new"), NGX_HTTP\n'},
        "docs/directives.md:1: directive llmgw_new is not documented"),
    "a variable that is not in the code": (
        {"docs/variables.md": "## $llmgw_gone\n"},
        "docs/variables.md:2: variable llmgw_gone is not in the code"),
    "a metric that is not documented": (
        {f"{GLUE}/zone/metrics.h":
         "#define NGX_HTTP_LLMGW_COUNTERS(X) \\\n    X(new, 1)\n\n"},
        "docs/metrics.md:1: metric llmgw_new_total is not documented"),
    "a link to nothing": (
        {"docs/metrics.md": "[more](more.md)\n"},
        "docs/metrics.md:7: a link to more.md, which is not"),
    "a path that is not there": (
        {"CONTRIBUTING.md": "Then `core/gone.c`.\n"},
        "CONTRIBUTING.md:2: core/gone.c is not there"),
    "a name that its file does not have": (
        {"CONTRIBUTING.md": "`QUEUE_MAX` in `core/queue.c`.\n"},
        "CONTRIBUTING.md:2: QUEUE_MAX is in none of these files"),
    "a test that is not in its file": (
        {"docs/security.md": "| y | `t/test_log.py`: `test_gone` |\n"},
        "docs/security.md:4: test_gone is no test in that file"),
    "a test in a file that is not there": (
        {"docs/security.md": "| y | `t/test_gone.py`: `test_log_ends` |\n"},
        "docs/security.md:4: t/test_gone.py is not there"),
    "a test that another file has": (
        {"docs/security.md": "| y | `common/log.c`: `test_log_ends` |\n"},
        "docs/security.md:4: test_log_ends is no test in that file"),
    "a pattern that nothing fits": (
        {"CONTRIBUTING.md": "Then `t/gone/test_NAME.c`.\n"},
        "CONTRIBUTING.md:2: t/gone/test_NAME.c is not there"),
    "a step in a file that does not have it": (
        {"docs/ARCHITECTURE.md": WALK.replace("rows_claim", "rows_gone")},
        "docs/ARCHITECTURE.md:21: rows_gone() is not defined in zone/rows.c"),
    "a step that none before takes": (
        {"docs/ARCHITECTURE.md": WALK.replace(
            "| `core/queue.c` | `queue_next()`",
            "| `core/other.c` | `queue_other()`"),
         f"{GLUE}/core/other.c": "int\nqueue_other(void)\n{\n}\n"},
        "docs/ARCHITECTURE.md:22: no step before calls queue_other()"),
    "the same in the README of a room": (
        {"agent/README.md": WALK.replace("rows_claim", "rows_gone")},
        "agent/README.md:4: rows_gone() is not defined in zone/rows.c"),
    "Python that does not compile": (
        {"t/tool.py": "def f(:\n"}, "t/tool.py:4: syntax: invalid syntax"),
    "an import in vain": (
        {"t/tool.py": "import sys\n"}, "t/tool.py:4: imports sys in vain"),
    "a test that hides another": (
        {"t/tool.py": "def f():\n    pass\n\n\ndef f():\n    pass\n"},
        "t/tool.py:8: f hides the one of line 4"),
    "a test file without a test": (
        {"t/e2e/x/test_x.py": "x = 1\n"},
        "t/e2e/x/test_x.py:1: a test file without a test"),
    "a test that was unstable too long ago": (
        {"t/unstable.tsv": unstable(14, 15)},
        "t/unstable.tsv:3: unstable for 15 days, the limit is 14"),
    "a test that is unstable again": (
        {"t/unstable.tsv": unstable(3, 3)},
        "t/unstable.tsv:3: t/e2e/x.py::test_3 is unstable for the second"
        " time"),
    "an unstable test without a date": (
        {"t/unstable.tsv": UNSTABLE + "t/e2e/x.py::test\tabc1234\t1\t-\t-\n"},
        "t/unstable.tsv:2: '-' is no date"),
    "an unstable test in too few words": (
        {"t/unstable.tsv": UNSTABLE + "t/e2e/x.py::test\tabc1234\n"},
        "t/unstable.tsv:2: 2 fields, not 5"),
    "a slice that was green at no commit": (
        {"t/soak.tsv": SOAK + "agents\tHEAD\t2026-01-01\t9\t100\t1\n"},
        "t/soak.tsv:2: 'HEAD' is no commit"),
    "two functions of one name": (
        {"common/link.c": "int\nlink_end(void)\n{\n}\n",
         "proto/link.c": "int\nlink_end(void)\n{\n}\n"},
        "proto/link.c:2: link_end() stands in common/link.c, too"),
    "two test files of one name": (
        {"t/e2e/x/test_x.py": "def test():\n    pass\n",
         "t/e2e/y/test_x.py": "def test():\n    pass\n"},
        "t/e2e/y/test_x.py:1: the name of t/e2e/x/test_x.py"),
}


@pytest.fixture
def found(tmp_path, capsys, monkeypatch):
    """found(more): the findings, as lines."""
    monkeypatch.setattr(lint.unstable, "today", lambda: TODAY)

    def findings(more={}):
        for path in {**CLEAN, **more}:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(CLEAN.get(path, "")
                                         + more.get(path, ""))
        code = lint.main(tmp_path)
        *lines, summary = capsys.readouterr().out.splitlines()
        assert summary.startswith("lint: ")
        assert code == (1 if lines else 0)
        return [line for line in lines if not line.startswith(" ")]
    return findings


def test_clean_tree_passes(found):
    assert found() == []


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_violation_is_found(found, kind):
    more, said = PLANTED[kind]
    assert said in found(more)


def test_call_by_a_header_or_in_a_static_function_passes(found):
    more = {f"{GLUE}/core/queue.c": "static int\nqueue_own(void)\n{\n"
            "    return 1;\n}\n\n\nint\nqueue_at(int i)\n{\n"
            "    return queue_own();\n}\n\n\nint\nqueue_of(int i)\n{\n"
            "    return 2;\n}\n",
            f"{GLUE}/zone/rows.h": "#define FIRST  \\\n    queue_at(1)\n\n"
            "static inline int\nrow(void)\n{\n    return queue_of(1);\n}\n"}
    assert found(more) == []


def test_step_may_be_called_by_what_was_set_up(found):
    setup = "| set up in | function | what for |\n|---|---|---|\n" \
            "| `zone/rows.c` | `rows_claim()` | calls it later |\n"
    walk = "\n| file | function | what |\n|---|---|---|\n" \
           "| `zone/idle.c` | `idle()` | begins |\n" \
           "| `core/queue.c` | `queue_next()` | ends |\n"
    idle = {f"{GLUE}/zone/idle.c": "int\nidle(void)\n{\n}\n"}
    assert found({**idle, "agent/README.md": setup + walk}) == []
    assert found({**idle, "agent/README.md": walk}) == [
        "agent/README.md:5: no step before calls queue_next()"]


def test_step_by_a_callback_passes(found):
    more = {"docs/ARCHITECTURE.md":
            "| `zone/on.c` | `rows_on_free()` | by a field |\n",
            f"{GLUE}/zone/rows.c": "int\nrows_tell(void)\n{\n"
            "    return ops->on_free();\n}\n",
            f"{GLUE}/zone/on.c": "int\nrows_on_free(void)\n{\n}\n\n"
            "ops_t  ops = {\n    .on_free = rows_on_free,\n};\n"}
    assert found(more) == []
    assert found({**more, f"{GLUE}/zone/rows.c": ""}) == [
        "docs/ARCHITECTURE.md:18: no step before calls rows_on_free()"]
