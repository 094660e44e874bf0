# llmgw.  `make help` lists the targets.
#
# The products are written to build/, whatever BUILD is.  Each BUILD has its
# objects in build/obj/BUILD, so switching back and forth is cheap.

BUILD     ?= release
NGINX_SRC ?= /usr/share/nginx/src
NGINX_BIN ?= nginx
PYTHON    ?= /usr/bin/python3
CC        ?= gcc
CLANG     ?= clang
PREFIX    ?= /usr/local
SBINDIR   ?= $(PREFIX)/bin
MODULES   ?= /usr/lib/nginx/modules
UNITS_DIR ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= /etc
ARGS      ?=
JOBS      ?= $(shell nproc)
V         ?=     # V=1 shows the commands
FUZZ_SECONDS ?= 60
N         ?= 10000000
SEEDS     ?= 200
FIRST     ?= 1000
SLICE     ?= all
SUITE     ?=     # of make deb: a release of Debian, if not this machine's

O   := build/obj/$(BUILD)
Q   := $(if $(strip $(V)),,@)
quiet = $(strip $(V))$(findstring s,$(firstword -$(MAKEFLAGS)))
say  = $(if $(quiet),,@printf '  %-8s %s\n' '$(1)' '$(2)')
GEN := build/gen

SAN_asan  := -fsanitize=address -fno-omit-frame-pointer
SAN_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SAN_tsan  := -fsanitize=thread
OPT_release := -O2 -g
OPT_debug   := -O0 -g3 -DLLMGW_DEBUG=1
OPT_asan    := -O1 -g
OPT_ubsan   := -O1 -g
OPT_tsan    := -O1 -g
SAN := $(SAN_$(BUILD))
OPT := $(OPT_$(BUILD))
ifeq ($(OPT),)
$(error BUILD is one of debug, release, asan, ubsan, tsan, not "$(BUILD)")
endif

VERSION := $(shell cat VERSION)

WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
            -Wmissing-prototypes -Wpointer-arith -Wno-unused-parameter
CPPFLAGS := -D_GNU_SOURCE -DLLMGW_VERSION='"$(VERSION)"' -I. -Iagent \
            -Ingx_http_llmgw_module -I$(GEN)
CFLAGS   := -std=gnu11 $(OPT) $(SAN) $(WARN) -fPIC -ffp-contract=off
LDOPT    ?=     # of a packager, as OPT=
LDFLAGS  := $(SAN) $(strip $(LDOPT)) -Wl,--as-needed
LDLIBS   := -lnghttp2 -lprotobuf-c -lev -ljansson -lcurl -lsodium -lm \
            -lyaml -lssl -lcrypto -lz -lpthread

BUILD_PACKAGES := build-essential pkg-config nginx nginx-dev libnghttp2-dev \
    protobuf-c-compiler protobuf-compiler libprotobuf-c-dev libev-dev \
    libxxhash-dev libsodium-dev libjansson-dev libcurl4-openssl-dev \
    libyaml-dev libpcre2-dev zlib1g-dev libssl-dev openssl python3

DEB_PACKAGES := $(BUILD_PACKAGES) libcmocka-dev clang libclang-rt-14-dev \
    python3-pytest python3-grpcio python3-protobuf python3-h2 \
    python3-jsonschema python3-uvicorn python3-yaml chromium-headless-shell \
    prometheus golang-go golang-github-masterminds-sprig-dev \
    golang-gopkg-yaml.v3-dev dumb-init

BENCH_PACKAGES := haproxy caddy libgrpc++-dev libgrpc-dev libprotobuf-dev \
    libabsl-dev protobuf-compiler-grpc python3-matplotlib strace linux-perf \
    valgrind

# Of make repo and a fresh Debian, and of what checks packages; nginx-dev brings
# what makes them.
REPO_PACKAGES := apt-utils gnupg mmdebstrap
IMAGE_PACKAGES := mmdebstrap umoci
CHECK_PACKAGES := autopkgtest diffoscope-minimal lintian piuparts

# The release that upgrades are tested from, and what its build needs besides.
FORMER ?= 0.2.0
FORMER_PACKAGES := libyajl-dev

PROTOS  := llmgateway gossip health shard
GEN_C   := $(PROTOS:%=$(GEN)/%.pb-c.c)
GEN_O   := $(PROTOS:%=$(O)/gen/%.pb-c.o)
PAGES   := $(GEN)/dashboard.h $(GEN)/comparison.h
tree     = $(wildcard $(foreach d,* */* */*/*,$(1)/$(d).c))
PROTO_C := $(call tree,proto)
CORE_C  := $(call tree,ngx_http_llmgw_module/core)
COMMON_C:= $(call tree,common)
CTL_C   := $(call tree,agent/ctl)
AGENT_C := $(filter-out $(CTL_C) agent/main.c,$(call tree,agent))
REPLICA_C := $(filter-out replica/main.c replica/simulated/main.c \
    replica/engine/llama/plugin/%,$(call tree,replica))
PLUGIN_C  := $(wildcard replica/engine/llama/plugin/*.c \
    replica/engine/llama/plugin/*/*.c)
LOCK_C    := $(filter-out lock/main.c,$(wildcard lock/*.c))
WEIGHTS_C := $(filter-out weights/main.c,$(wildcard weights/*.c))
# Files of parts of a model: those that know libllama, and those that do not.
SLICED_C  := slice/libllama.c slice/sliced.c slice/tensors.c
MANIFEST_C := $(wildcard slice/manifest/*.c)
CLIENT_C  := $(filter-out client/main.c,$(wildcard client/*.c))
UP_C      := $(filter-out up/main.c,$(call tree,up))
MODEL_C   := $(wildcard sim/model/*.c)
MESH_C    := $(wildcard sim/swim/*.c)
SIM_C     := $(filter-out sim/main.c $(MODEL_C) $(MESH_C),$(call tree,sim))
objs     = $(patsubst %.c,$(O)/%.o,$(1))

# The engine `llama` is a plugin, built where there is a libllama: LLAMA_DIR,
# what "make llama" fetched, or the system's.  Its API moves with each version.
LLAMA_DIR ?= build/llama
LLAMA_PKG := PKG_CONFIG_PATH="$(abspath $(LLAMA_DIR)):$(abspath \
    $(LLAMA_DIR))/lib/pkgconfig:$(PKG_CONFIG_PATH)" pkg-config
LLAMA     := $(shell $(LLAMA_PKG) --exists 'llama >= 0.5' 'llama < 0.6' \
    2>/dev/null && $(LLAMA_PKG) --modversion llama)
PLUGIN    := $(if $(LLAMA),build/llmgw-engine-llama.so)
SLICER    := $(if $(LLAMA),build/llmgw-slice)

DAEMONS := build/llmgw-agent build/llmgw-replica build/llmgw-simreplica \
           build/llmgwctl build/llmgw-client build/llmgw-sim build/llmgw-lock \
           build/llmgw-weights build/llmgw
TOOLS   := build/bench/segment build/bench/hop build/bench/echo
MODULE  := build/ngx_http_llmgw_module.so
SIMS    := $(patsubst t/sim/test_%.c,$(O)/t/sim_%,$(wildcard t/sim/test_*.c))
UNITS   := $(patsubst %.c,$(O)/%,$(shell find t/unit -name 'test_*.c' \
    $(if $(PLUGIN),,-not -path '*/llama/plugin/*'))) $(SIMS)
FUZZERS := $(patsubst t/fuzz/fuzz_%.c,build/fuzz/fuzz_%,$(wildcard t/fuzz/fuzz_*.c))

.PHONY: help deps build gen daemons tools module llama demo demo-llama \
        chart-tools manifests test-chart \
        demo-standby demo-shards demo-sim screenshots install deb repo clean npm \
        all test soak test-unit units soak-sim test-tsan test-systemd test-evening \
        test-packages test-upgrade test-soak image test-image \
        test-resume test-reality test-e2e test-llama-server \
        lint \
        fuzz fuzz-packets bench bench-deps bench-openai bench-full bench-peers \
        bench-doors bench-gossip bench-operations bench-policies bench-ring \
        bench-shards bench-sim bench-standby bench-weights \
        FORCE
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.SECONDARY:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z_.-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  BUILD=debug|release|asan|ubsan|tsan   NGINX_SRC=$(NGINX_SRC)   V=1"

deps:  ## install the Debian packages that build and tests need
	@DEB_PACKAGES="$(DEB_PACKAGES)" sh build-aux/deps.sh

npm: build/npm/installed  ## install the JavaScript clients for tests (107 MB)
build/npm/installed: t/openai/package-lock.json build-aux/npm.sh
	@sh build-aux/npm.sh $(@D) t/openai "JavaScript clients"

# What renders the chart, and the schemas of Kubernetes' API (60 MB, from npm).
chart-tools: build/chart/render build/chart/installed
build/chart/installed: t/chart/package-lock.json build-aux/npm.sh
	@sh build-aux/npm.sh $(@D) t/chart "Kubernetes' schemas"
build/chart/render: t/chart/render.go
	@mkdir -p $(@D)
	$(call say,GO,$@)
	$(Q)GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS=-p=$(JOBS) \
	    GOCACHE=$(abspath $(@D))/cache go build -o $@ $<

manifests: build/chart/render  ## write packaging/kubernetes/, as the chart renders it
	@$(PYTHON) t/chart/manifests.py

test-chart: build chart-tools  ## the Helm chart, and its pods as a kubelet runs them
	@$(PYTHON) -m pytest -q t/e2e/kube $(ARGS)

build: daemons module tools  ## compile the module, the daemons and the client
daemons: $(DAEMONS) $(PLUGIN) $(SLICER)
tools: $(TOOLS)
module: $(MODULE)
gen: $(GEN_C) $(PAGES)

llama: deps  ## fetch libllama from npm (46 MB) and build the engine `llama`
	@sh build-aux/llama.sh build/llama
	@$(MAKE) --no-print-directory daemons

demo: deps  ## start a cluster and watch it lose a replica (ARGS=--once)
	@$(MAKE) --no-print-directory build
	@$(PYTHON) t/demo.py $(ARGS)

demo-llama: build  ## the same with a real model, small and random (MODEL=FILE.gguf)
	@MODEL="$(MODEL)" $(PYTHON) t/demo_llama.py $(ARGS)

demo-standby: build  ## an engine that stands by takes over (ARGS=--once)
	@$(PYTHON) t/demo_standby.py $(ARGS)

demo-shards: build  ## one model in four processes loses one of them (ARGS=--once)
	@$(PYTHON) t/demo_shards.py $(ARGS)

demo-sim: build/llmgw-sim  ## how many replicas, which policy, what if two die: simulated
	@$(PYTHON) t/demo_sim.py

screenshots: build  ## write pictures of the dashboard to docs/ and build/screenshots/
	@$(PYTHON) t/screenshots.py

test: deps npm chart-tools  ## the gate: lint, units, tsan, real processes (10 minutes)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@$(PYTHON) t/run.py --build $(BUILD) $(ARGS)

soak: deps npm chart-tools  ## what the gate leaves out, in nine slices of ten minutes (SLICE=agents)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@$(PYTHON) t/run.py --build $(BUILD) --soak $(SLICE)

all: test  ## build and run the tests

units: $(UNITS)
	@echo $(UNITS)

test-unit: $(UNITS)  ## unit tests and the gossip simulator, no nginx (2 minutes)
	@$(PYTHON) t/run.py --only units --build $(BUILD)

soak-sim: $(SIMS)  ## the gossip simulator with many seeds (SEEDS=200 FIRST=1000)
	@for t in $(SIMS); do \
	    LLMGW_SIM_SEEDS=$(SEEDS) LLMGW_SIM_FIRST=$(FIRST) $$t || exit 1; done

test-tsan:  ## unit tests of code with threads, under the thread sanitizer
	@$(PYTHON) t/run.py --only tsan

test-systemd: build  ## systemd unit files under their own systemd (root; half a minute)
	@$(PYTHON) t/systemd/run.py

test-resume: build  ## engines and adapters die under 200 streams (20 minutes)
	@LLMGW_KILLS=all $(PYTHON) -m pytest -q -k "survive or lost" $(ARGS) \
	    t/e2e/engines/test_resume_engines.py t/e2e/engines/test_llama.py

test-llama-server: build npm  ## llama.cpp's own server (LLAMA_SERVER=PATH, 10 minutes)
	@test -x "$(LLAMA_SERVER)" || { \
	    echo "make test-llama-server LLAMA_SERVER=/path/to/llama-server"; \
	    echo "It is llama.cpp's, 0.5 or later: built from its sources, or from"; \
	    echo "one of its releases.  The model is made by the tests."; exit 1; }
	@LLAMA_SERVER="$(abspath $(LLAMA_SERVER))" $(PYTHON) -m pytest -q -rs \
	    t/e2e/engines/test_llama_server.py t/e2e/openai/test_clients.py \
	    t/e2e/up/test_real_engine.py $(ARGS)

test-reality: build  ## the simulator against real processes (20 minutes)
	@LLMGW_REALITY=10 $(PYTHON) -m pytest -q -s -rs $(ARGS) \
	    t/e2e/sim/test_reality.py t/e2e/sim/test_reality_faults.py

test-e2e: build npm chart-tools  ## real processes only (ARGS='-k name' for some)
	@$(PYTHON) -m pytest -q t $(ARGS)

lint:  ## style, direction of includes, docs against code
	@$(PYTHON) t/lint/lint.py

bench-deps: deps  ## install the other proxies and the measuring tools
	@DEB_PACKAGES="$(BENCH_PACKAGES)" sh build-aux/deps.sh

bench:  ## compare with nginx, HAProxy and a floor, 7 minutes (ARGS=--write)
	@$(MAKE) --no-print-directory BUILD=release build bench-peers
	@$(PYTHON) bench/run.py $(ARGS)

bench-openai:  ## the rows over OpenAI's API, 4 minutes
	@$(MAKE) --no-print-directory BUILD=release build bench-peers
	@$(PYTHON) bench/run.py o200 o1000l o1k o400k ottft openai_memory \
	    openai_stall $(ARGS)

bench-full:  ## also OpenAI, Caddy, threads, long runs, plots, 18 minutes (ARGS=--write)
	@$(MAKE) --no-print-directory BUILD=release build bench-peers
	@$(PYTHON) bench/run.py --full $(ARGS)

bench-gossip: daemons  ## compare agents with Serf (ARGS=--quick: 4 minutes)
	@$(PYTHON) bench/gossip.py $(ARGS)

bench-policies: build  ## policies live on model replicas, 21 minutes (ARGS=--quick, --write)
	@$(PYTHON) bench/policies.py $(ARGS)

bench-operations: build  ## what a rolling update and a sick replica cost, 3 minutes (ARGS=--write)
	@$(PYTHON) bench/operations.py $(ARGS)

bench-ring: build/bench/shares  ## how evenly the ring spreads prompts, a second (ARGS=VNODES)
	@build/bench/shares $(ARGS)

bench-doors: build  ## what TLS to replicas and keys cost, 5 minutes (ARGS=--quick, --write)
	@$(PYTHON) bench/doors.py $(ARGS)

bench-standby: build  ## a takeover, and a restart beside it, 8 minutes (ARGS=--write)
	@$(PYTHON) bench/standby.py $(ARGS)

bench-weights: daemons  ## what a weights service saves, with llama (2 minutes)
	@$(PYTHON) bench/weights.py $(ARGS)

bench-shards: daemons tools  ## hops, tokens/s and kill -9 of shards (6 minutes, ARGS=--write)
	@$(PYTHON) bench/shards.py $(ARGS)

bench-sim: daemons  ## what the simulator costs, a minute (ARGS=--write)
	@$(PYTHON) bench/sim.py $(ARGS)

fuzz: $(FUZZERS)  ## fuzz each decoder for FUZZ_SECONDS (60)
	@for f in $(FUZZERS); do \
	    mkdir -p build/fuzz/corpus/$$(basename $$f); \
	    echo "== $$(basename $$f)"; \
	    (cd build/fuzz && ./$$(basename $$f) -max_total_time=$(FUZZ_SECONDS) \
	        -print_final_stats=0 -verbosity=0 corpus/$$(basename $$f)) || exit 1; \
	done

fuzz-packets: $(filter %_datagram %_sealed,$(FUZZERS))  ## fuzz until N (10000000) datagrams, half of them sealed
	@$(PYTHON) t/fuzz/packets.py -n $(N)

compile_commands.json: gen FORCE  ## for editors
	@$(PYTHON) build-aux/compile_commands.py "$(subst ",\",$(CC) $(CPPFLAGS) \
	    $(CFLAGS))" "$(NGINX_SRC)" "$(NGX_OBJS)" > $@

# Which Debian package a file goes into is in debian/*.install.  The units and
# examples name /usr/local, and become those of the place they are installed to.
SERVICES := $(filter %-agent %-replica %-simreplica %-lock %-weights,$(DAEMONS))
HOME_SED := -e 's!/usr/local/bin/llmgw-\(agent\|replica\|lock\|weights\)\>!$(SBINDIR)/llmgw-\1!' \
            -e 's!/usr/local!$(PREFIX)!g'
put = install -d $(DESTDIR)$(2) || exit 1; for file in $(1); do \
    echo "install $$file"; to=$(DESTDIR)$(2)/$$(basename $$file); \
    sed $(HOME_SED) $$file > $$to && chmod 644 $$to || exit 1; done

install: daemons module  ## install into PREFIX, SBINDIR, MODULES, UNITS_DIR, SYSCONFDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(SBINDIR) \
	    $(DESTDIR)$(MODULES) $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 755 $(filter-out $(SERVICES),$(DAEMONS)) $(SLICER) \
	    $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(SERVICES) $(DESTDIR)$(SBINDIR)
	install -m 644 $(MODULE) $(DESTDIR)$(MODULES)
	@if [ -n "$(PLUGIN)" ]; then \
	    echo "install llmgw-engine-llama.so"; \
	    install -d $(DESTDIR)$(PREFIX)/lib/llmgw || exit 1; \
	    install -m 755 $(PLUGIN) $(DESTDIR)$(PREFIX)/lib/llmgw || exit 1; \
	    if [ -f "$(LLAMA_DIR)/fetched" ]; then \
	        cp -a $(LLAMA_DIR) $(DESTDIR)$(PREFIX)/lib/llmgw || exit 1; \
	    fi; \
	fi
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 docs/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	@$(call put,packaging/systemd/*.service,$(UNITS_DIR))
	@$(call put,packaging/sysusers.d/*,$(PREFIX)/lib/sysusers.d)
	@$(call put,packaging/tmpfiles.d/*,$(PREFIX)/lib/tmpfiles.d)
	@$(call put,packaging/etc/*,$(SYSCONFDIR)/llmgw)
	@$(call put,packaging/logrotate.d/*,$(SYSCONFDIR)/logrotate.d)
	@$(call put,packaging/nginx/*,$(SYSCONFDIR)/nginx/snippets)
	@$(call put,packaging/needrestart/*,$(SYSCONFDIR)/needrestart/conf.d)
	@echo "install docs"
	@for file in CHANGELOG.md $$(find docs -type f -not -path 'docs/man/*'); do \
	    install -D -m 644 $$file \
	        $(DESTDIR)$(PREFIX)/share/doc/llmgw/$${file#docs/} || exit 1; done

deb:  ## Debian packages, into build/deb/ (SUITE=trixie: into build/deb-trixie/)
	@DEB_PACKAGES="$(if $(SUITE),mmdebstrap,$(BUILD_PACKAGES))" \
	    sh build-aux/deps.sh
	@CC="$(CC)" DEB_SUITE="$(SUITE)" \
	    sh build-aux/deb.sh build/deb$(SUITE:%=-%)

repo: deb  ## a signed directory for apt, build/repo/ (REPO_URL=, REPO_KEY=)
	@DEB_PACKAGES="$(REPO_PACKAGES)" sh build-aux/deps.sh
	@REPO_URL="$(REPO_URL)" REPO_KEY="$(REPO_KEY)" \
	    sh build-aux/repo.sh build/deb build/repo

image: repo  ## OCI images, into build/image/, from the packages of make repo
	@DEB_PACKAGES="$(IMAGE_PACKAGES)" sh build-aux/deps.sh
	@for name in gateway replica; do \
	    $(PYTHON) build-aux/image.py $$name build/repo build/image || exit 1; done

test-image: image  ## the images: made again, and run (root; a minute)
	@$(PYTHON) -m pytest -q -s t/image $(ARGS)

test-packages: deb  ## lintian, a fresh Debian, piuparts, autopkgtest, the same bytes twice (root)
	@DEB_PACKAGES="$(REPO_PACKAGES) $(CHECK_PACKAGES)" sh build-aux/deps.sh
	@CC="$(CC)" $(PYTHON) t/packages/run.py $(ARGS)

test-upgrade: deb  ## from the last release to now and back, under load (root; 10 minutes)
	@DEB_PACKAGES="$(FORMER_PACKAGES)" sh build-aux/deps.sh
	@[ -n "$$(ls build/upgrade/former/*.deb 2>/dev/null)" ] || \
	    CC="$(CC)" sh t/upgrade/former.sh $(FORMER) build/upgrade/former
	@$(PYTHON) t/upgrade/run.py

test-soak: deb  ## all parts at once, killed and upgraded (root; LLMGW_SOAK_SECONDS, 1800)
	@$(PYTHON) t/longsoak/run.py

test-evening: deb  ## README's three commands on a fresh Debian (root; a minute)
	@DEB_PACKAGES="$(REPO_PACKAGES)" sh build-aux/deps.sh
	@$(PYTHON) t/evening/run.py

clean:  ## remove build/
	rm -rf build

# --- generated messages

# protobuf-c gets these messages with two changes that the wire does not show.
# It does not know proto3's `optional`, which becomes a oneof with one member
# (has_NAME_case is its state).  Strings that are only passed on become bytes,
# which have a length, so that a NUL inside does not end them.
$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h &: proto/%.proto Makefile
	@mkdir -p $(GEN)/proto
	@sed -E -e 's/^( *)string (prompt|token|replica_id) /\1bytes \2 /' \
	    -e 's/^( *)optional +(\S+ +(\S+) *= *[0-9]+;)/\1oneof has_\3 { \2 }/' \
	    $< > $(GEN)/proto/$(<F)
	$(call say,PROTOC,$<)
	$(Q)protoc-c --proto_path=$(GEN)/proto --c_out=$(GEN) $(<F)

$(O)/gen/%.pb-c.o: $(GEN)/%.pb-c.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(OPT) $(SAN) -fPIC -c $< -o $@

# --- pages, each as one file and as C: the dashboard, llmgw-sim's comparison

$(PAGES): $(wildcard dashboard/* sim/page/*)
	@mkdir -p $(GEN)
	$(call say,EMBED,$@)
	$(Q)$(PYTHON) dashboard/embed.py $(basename $(@F)) $(GEN)

# --- objects

$(O)/%.o: %.c $(O)/flags | $(GEN_C)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(call objs,sim/report/compare/page.c): $(GEN)/comparison.h

# Recompiles when the flags change.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ \
	    || echo '$(CC) $(CPPFLAGS) $(CFLAGS)' > $@

# Relinks the products when BUILD changes.
build/flavour: FORCE
	@mkdir -p build
	@echo $(BUILD) | cmp -s - $@ || echo $(BUILD) > $@

# --- rooms, as archives

$(O)/libproto.a: $(GEN_O) $(call objs,$(PROTO_C))
$(O)/libcore.a: $(call objs,$(CORE_C))
$(O)/libcommon.a: $(call objs,$(COMMON_C))
$(O)/libagent.a: $(call objs,$(AGENT_C))
$(O)/libreplica.a: $(call objs,$(REPLICA_C))
$(O)/libweights.a: $(call objs,$(WEIGHTS_C))
$(O)/libmanifest.a: $(call objs,$(MANIFEST_C))
$(O)/libclient.a: $(call objs,$(CLIENT_C))
$(O)/libup.a: $(call objs,$(UP_C))
$(O)/liblock.a: $(call objs,$(LOCK_C))
$(O)/libmodel.a: $(call objs,$(MODEL_C))
$(O)/libsim.a: $(call objs,$(SIM_C))
$(O)/libmesh.a: $(call objs,$(MESH_C))
$(O)/libctl.a: $(call objs,$(filter-out agent/ctl/main.c,$(CTL_C)))
$(O)/lib%.a:
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# --- products

SHARED := $(O)/libcommon.a $(O)/libproto.a

build/llmgw-agent: $(call objs,agent/main.c) $(O)/libagent.a $(SHARED) build/flavour
build/llmgwctl: $(call objs,$(CTL_C)) $(SHARED) build/flavour
build/llmgw-replica: $(call objs,replica/main.c) $(O)/libreplica.a $(SHARED) \
    build/flavour
build/llmgw-simreplica: $(call objs,replica/simulated/main.c) $(O)/libreplica.a \
    $(O)/libmodel.a $(SHARED) build/flavour
build/llmgw-weights: $(call objs,weights/main.c) $(O)/libweights.a $(SHARED) \
    build/flavour
build/llmgw-client: $(call objs,client/main.c) $(O)/libclient.a $(SHARED) build/flavour
build/llmgw: $(call objs,up/main.c) $(O)/libup.a $(O)/libreplica.a $(SHARED) \
    build/flavour
build/llmgw-lock: $(call objs,lock/main.c) $(O)/liblock.a $(SHARED) build/flavour
build/llmgw-sim: $(call objs,sim/main.c) $(O)/libsim.a $(O)/libmodel.a \
    $(O)/libcore.a $(O)/libmesh.a $(O)/libagent.a $(SHARED) build/flavour
$(DAEMONS):
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS)

# --- the engine `llama`

PLUGIN_O := $(call objs,$(PLUGIN_C) $(wildcard slice/*.c))
$(PLUGIN_O): private CPPFLAGS += -DLLMGW_LLAMA_VERSION='"$(LLAMA)"' \
    $(shell $(LLAMA_PKG) --cflags llama 2>/dev/null)
$(PLUGIN_O): private CFLAGS += -fvisibility=hidden

# A sanitizer has to know of C++ before the plugin brings it.
ifneq ($(and $(SAN),$(PLUGIN)),)
build/llmgw-replica: LDLIBS += -Wl,--no-as-needed -lstdc++
endif

# Installed and as it is built, what was fetched lies beside it.
PLUGIN_LINKED := $(call objs,$(PLUGIN_C) $(SLICED_C) $(MANIFEST_C) \
    replica/engine/llama/sample.c replica/engine/llama/parts.c \
    replica/shard/check.c replica/shard/half.c replica/shard/tensor.c \
    common/os/memory.c)
build/llmgw-engine-llama.so: $(PLUGIN_LINKED) build/flavour
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@.new $(filter %.o,$^) \
	    -Wl,-rpath,'$$ORIGIN/llama/lib' \
	    -Wl,-rpath,$(abspath $(shell $(LLAMA_PKG) --variable=libdir llama)) \
	    $(shell $(LLAMA_PKG) --libs llama) -lm -lpthread -lcrypto
	@mv $@.new $@   # a running replica keeps the file that it has mapped

# Where it is built, the same; installed, it is in bin, and not beside it.
build/llmgw-slice: $(call objs,$(wildcard slice/*.c) $(MANIFEST_C) \
        replica/engine/llama/parts.c) $(SHARED) build/flavour
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) \
	    -Wl,-rpath,'$$ORIGIN/llama/lib' \
	    -Wl,-rpath,'$$ORIGIN/../lib/llmgw/llama/lib' \
	    -Wl,-rpath,$(abspath $(shell $(LLAMA_PKG) --variable=libdir llama)) \
	    $(shell $(LLAMA_PKG) --libs llama) -lcrypto -lm -lpthread

# --- the module, by nginx's own build

NGX_OBJS := $(O)/nginx
NGX_CC_OPT := $(OPT) $(SAN) -D_GNU_SOURCE \
    -DLLMGW_VERSION='\"$(VERSION)\"' \
    -Wno-error=cpp
MODULE_DEPS := $(shell find ngx_http_llmgw_module proto -name '*.[ch]') \
    $(wildcard common/os/process.[ch] common/tls/context.[ch] \
      common/tls/explain.[ch] common/tls/peer.[ch])

# Configures again when options, nginx's sources or our list of files change.
NGX_INPUTS := $(NGINX_SRC) $(CC) $(SAN) $(VERSION) $(OPT) $(LDOPT) \
    $(MODULE_DEPS) $(wildcard common/tls/*.h)
$(O)/nginx-inputs: FORCE
	@mkdir -p $(@D)
	@echo '$(NGX_INPUTS)' | cmp -s - $@ || echo '$(NGX_INPUTS)' > $@

$(NGX_OBJS)/Makefile: config $(O)/nginx-inputs | $(GEN_C) $(PAGES)
	@sh build-aux/nginx_configure.sh "$(NGINX_SRC)" "$(CURDIR)" \
	    "$(CURDIR)/$(NGX_OBJS)" "$(CC)" "$(NGX_CC_OPT)" "$(SAN) $(strip $(LDOPT))"

$(MODULE): $(NGX_OBJS)/Makefile $(MODULE_DEPS) $(GEN_C) $(PAGES) build/flavour
	$(call say,NGINX,$@)
	@$(MAKE) $(if $(strip $(V)),,-s) --no-print-directory -C $(NGX_OBJS)/src \
	    -f $(CURDIR)/$(NGX_OBJS)/Makefile modules
	@cp $(NGX_OBJS)/ngx_http_llmgw_module.so $@.new
	@mv $@.new $@   # a running nginx keeps the file that it has mapped

# --- tests

TEST_LIBS = $(O)/libsim.a $(O)/libagent.a $(O)/libup.a $(O)/libreplica.a \
            $(O)/libclient.a $(O)/libmodel.a $(O)/liblock.a $(O)/libcore.a \
            $(O)/libweights.a $(O)/libmanifest.a $(O)/libctl.a $(SHARED)

# A network in memory has the clock and the sockets of real ones: it is looked
# for behind them, so that only a test that asks for it gets it.
TEST_LIBS += $(O)/libmesh.a $(O)/libagent.a $(SHARED)

$(O)/t/unit/%: $(O)/t/unit/%.o $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(LDLIBS) -lcmocka

# The plugin's own tests are linked with it.
ifneq ($(PLUGIN),)
PLUGIN_T := t/unit/replica/engine/llama/plugin
PLUGIN_UNITS := $(patsubst %.c,$(O)/%,$(wildcard $(PLUGIN_T)/*/test_*.c))
$(PLUGIN_UNITS:=.o): private CPPFLAGS += $(shell $(LLAMA_PKG) --cflags llama)
$(PLUGIN_UNITS): $(O)/%: $(O)/%.o $(PLUGIN_LINKED) \
        $(call objs,slice/cut.c slice/whole.c) $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) \
	    -Wl,-rpath,$(abspath $(shell $(LLAMA_PKG) --variable=libdir llama)) \
	    $(shell $(LLAMA_PKG) --libs llama) $(LDLIBS) -lcmocka
endif

STAGE_C := $(wildcard t/sim/stage/*.c)
$(O)/t/sim_%: $(O)/t/sim/test_%.o $(call objs,$(STAGE_C) $(MESH_C)) \
        $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TEST_LIBS) $(LDLIBS) -lcmocka

FUZZ_SRC = $(PROTO_C) $(COMMON_C) $(AGENT_C) $(CORE_C) $(GEN_C) \
           $(wildcard replica/engine/dialect/*.c) $(call tree,sim/work) \
           lock/protocol.c lock/machine_text.c $(wildcard replica/shard/*.c) \
           $(addprefix replica/shard/serve/,callers.c open.c step.c session.c \
               serve.c)
FUZZ_FLAGS := -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined
fuzzed = $(patsubst %.c,build/fuzz/obj/%.o,$(1))
build/fuzz/obj/%.o: %.c | $(GEN_C)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_FLAGS) -MMD -MP -c $< -o $@
build/fuzz/fuzzed.a: $(call fuzzed,$(FUZZ_SRC))
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
build/fuzz/fuzz_shard_answer: $(call fuzzed,$(addprefix \
    replica/shard/fleet/,answer.c link.c))
build/fuzz/fuzz_%: build/fuzz/obj/t/fuzz/fuzz_%.o build/fuzz/fuzzed.a
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(filter %.o,$^) $(filter %.a,$^) -o $@ $(LDLIBS)

# --- what the benchmarks compare with; threads needs grpc++

PEERS := build/bench
bench-peers: $(PEERS)/floor $(PEERS)/segment $(PEERS)/engine
	@$(MAKE) --no-print-directory $(PEERS)/threads \
	    || echo "bench: no thread-per-stream gateway, see make bench-deps"

$(PEERS)/floor: bench/peers/floor.c bench/peers/floor_relay.c \
                bench/peers/floor.h Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -I. $(WARN) -o $@ $(filter %.c,$^) \
	    -lnghttp2

$(PEERS)/shares: bench/micro/shares.c $(O)/libcore.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Ingx_http_llmgw_module -o $@ $< \
	    $(O)/libcore.a $(LDLIBS)

$(PEERS)/engine: bench/peers/engine.c $(O)/libcommon.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(O)/libcommon.a

$(PEERS)/segment: bench/peers/segment.c $(O)/libproto.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(O)/libproto.a $(LDLIBS)

# Finds the plugin beside itself.
$(PEERS)/hop: bench/peers/hop.c $(O)/libreplica.a $(SHARED)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(O)/libreplica.a $(SHARED) \
	    $(LDLIBS)
	@ln -sf ../llmgw-engine-llama.so $(@D)

$(PEERS)/echo: bench/peers/echo.c $(SHARED)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(SHARED) $(LDLIBS)

$(PEERS)/threads: bench/peers/threads.cc proto/llmgateway.proto
	@mkdir -p $(@D)/gen
	$(call say,CXX,$<)
	$(Q)protoc -Iproto --cpp_out=$(@D)/gen --grpc_out=$(@D)/gen \
	    --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) \
	    llmgateway.proto
	$(Q)$(CXX) -O2 -std=c++17 -I$(@D)/gen -o $@ $< $(@D)/gen/*.cc \
	    $$(pkg-config --libs grpc++ protobuf)

-include $(shell find $(O) build/fuzz -name '*.d' 2>/dev/null)
