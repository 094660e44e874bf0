#!/bin/sh
# What the units do, looked at from within (booted.sh): a line for each fact,
# "PASSED it" or "FAILED it", then DONE.

PATH=/usr/local/bin:$PATH
gateway=llmgw-agent
replica=llmgw-agent@r1

passes() {                      # passes WHAT COMMAND: soon, if not at once
    what=$1
    shift
    for i in $(seq 200); do
        if "$@" > /dev/null 2>&1; then
            echo "PASSED $what"
            return
        fi
        sleep 0.1
    done
    echo "FAILED $what"
}

property() { systemctl show -p "$2" --value "$1"; }
agent() { property $replica MainPID; }
engine() { pgrep -x llmgw-simreplic; }      # as much as the kernel has of it
r1_is() { llmgwctl -s /run/llmgw/gw1.sock members | grep -Eq "^r1 .* $1 +$2"; }
knows_gateway() {
    llmgwctl -s /run/llmgw/r1.sock members | grep -q "^gw1 .*ALIVE"
}
others_agent() { [ "$(agent)" != "$1" ] && [ "$(agent)" != 0 ]; }
same_engine() { [ "$(engine)" = "$1" ]; }
has_ended() { ! engine; }
line_of() { grep -q "$2" "/proc/$(agent)/$1"; }

systemd-sysusers
cd /etc/llmgw || exit 1
sed -e 's/0\.0\.0\.0/127.0.0.1/; /^advertise/d; s/^join .*/join 127.0.0.1:61000/' \
    gateway.conf.example > agent.conf
sed -e 's/0\.0\.0\.0/127.0.0.1/; /^advertise/d; s/^join .*/join 127.0.0.1:62000/' \
    -e 's/^grpc .*/grpc 127.0.0.1:51000/' replica.conf.example > r1.conf
sed -e 's/0\.0\.0\.0/127.0.0.1/; s/--engine.*/--engine sim/' \
    replica.env.example > r1.env
echo insecure > r1.tls
systemctl daemon-reload

systemctl start $gateway $replica
passes "active means that the socket stands" test -S /run/llmgw/r1.sock
passes "and the members segment" test -s /run/llmgw/members
passes "the agent runs its replica" r1_is ALIVE READY
passes "as a user of its own" line_of status "^Uid:.*$(id -u llmgw)"
passes "without capabilities" line_of status "^CapEff:.0*$"
passes "and no way to get any" line_of status "^NoNewPrivs:.1$"
passes "nor a core file" line_of limits "^Max core file size *0 *0 "

engine=$(engine)
agent=$(agent)
kill -STOP "$agent"
passes "the watchdog replaces an agent that hangs" others_agent "$agent"
passes "its replica is adopted" r1_is ALIVE READY
passes "and is the same process" same_engine "$engine"

agent=$(agent)
kill -KILL "$agent"
passes "an agent that is killed is started again" others_agent "$agent"
passes "its replica serves on" same_engine "$engine"
passes "and is adopted" r1_is ALIVE READY

agent=$(agent)
systemctl kill --kill-who=main -s QUIT $replica
passes "SIGQUIT makes way for the next agent" others_agent "$agent"
passes "whose replica is still the same" same_engine "$engine"
passes "and is adopted as well" r1_is ALIVE READY
passes "a reload does not end it" systemctl reload $replica
passes "it knows the gateway" knows_gateway     # which hears that it leaves

systemctl stop $replica
passes "a stop takes the replica along" has_ended
passes "and says so" r1_is LEFT [A-Z]

# An adapter with a unit of its own; its agent has none to run.
sed -e 's/r1/r2/; s/61000/61002/; s/51000/51002/' r1.conf > r2.conf
sed -e 's/r1/r2/g; s/10\.0\.0\.5:51000/127.0.0.1:51002/; s/--engine.*/--engine sim/' \
    adapter.env.example > replica-r2.env
echo insecure > r2.tls
systemctl start llmgw-agent@r2 llmgw-replica@r2
r2_is() { llmgwctl -s /run/llmgw/gw1.sock members | grep -Eq "^r2 .* $1 +$2"; }
passes "an adapter of its own reports" r2_is ALIVE READY
kill -KILL "$(property llmgw-replica@r2 MainPID)"
passes "one that is killed is started again" \
    sh -c "[ \$(systemctl show -p NRestarts --value llmgw-replica@r2) = 1 ]"
passes "and reports again" r2_is ALIVE READY
systemctl stop llmgw-replica@r2
passes "one that is stopped ends well" \
    test "$(property llmgw-replica@r2 Result)" = success
systemctl stop llmgw-agent@r2
touch agent.env
systemctl restart $gateway 2> /dev/null
passes "a command that would not be run keeps the agent from starting" \
    test "$(property $gateway ActiveState)" != active
rm agent.env
systemctl start $gateway
passes "without it the agent is there again" test -S /run/llmgw/gw1.sock

# An engine, its adapter and its agent in one unit.
sed -e 's/r1/e1/; s/0\.0\.0\.0:61000/127.0.0.1:61003/; /^advertise/d' \
    -e 's/^join .*/join 127.0.0.1:62000/; s/^grpc .*/grpc 127.0.0.1:51003/' \
    replica.conf.example > e1.conf
sed -e 's/r1/e1/; s/0\.0\.0\.0:51000/127.0.0.1:51003/' \
    -e 's|^engine-command .*|engine-command /usr/bin/python3 /engine/engine_mock.py --uds {socket}|' \
    engine.conf.example > engine-e1.conf
e1=llmgw-engine@e1
e1_is() { llmgwctl -s /run/llmgw/gw1.sock members | grep -Eq "^e1 .* $1 +$2"; }
engine_of() { pgrep -f "^/usr/bin/python3 /engine/"; }
other_engine() { [ -n "$(engine_of)" ] && [ "$(engine_of)" != "$1" ]; }
no_engine() { ! engine_of && ! pgrep llmgw-keeper && ! pgrep -x llmgw-replica; }
systemctl start $e1
passes "an engine's unit starts all three" e1_is ALIVE READY
passes "the engine's home is its cache" \
    grep -zq "^HOME=/var/cache/llmgw$" "/proc/$(engine_of)/environ"
engine=$(engine_of)
agent=$(property $e1 MainPID)
systemctl kill --kill-who=main -s QUIT $e1
passes "its agent gives way to the next one" \
    sh -c "p=\$(systemctl show -p MainPID --value $e1); [ \$p != 0 -a \$p != $agent ]"
passes "which adopts the adapter" e1_is ALIVE READY
passes "and the engine is the same" test "$(engine_of)" = "$engine"
kill -KILL "$engine"
passes "an engine that is killed is started again" other_engine "$engine"
passes "and serves again" e1_is ALIVE READY
systemctl stop $e1
passes "a stop takes adapter, keepers and engine along" no_engine
passes "and ends well" test "$(property $e1 Result)" = success

# What removal of the adapter's package stops.
systemctl start $replica llmgw-agent@r2 llmgw-replica@r2
passes "an agent runs its replica, and another one's has a unit of its own" \
    sh -c "pgrep -xc llmgw-replica | grep -qx 2"
sh /prerm remove
passes "the adapter's package takes all adapters along" has_ended
passes "and the agent that ran one" \
    test "$(property $replica ActiveState)" = inactive
passes "which ends well" test "$(property $replica Result)" = success
passes "other agents go on" \
    test "$(property llmgw-agent@r2 ActiveState)" = active
systemctl stop llmgw-agent@r2

# A standby group: engines "a" and "b", lock and weights service.
cp lock.conf.example lock.conf
cp weights.conf.example weights-m0.conf
echo 'adopt-window 100ms' >> weights-m0.conf
head -c 1000000 /dev/urandom > /weights.bin
for id in a b; do
    port=$(printf %d "'$id")            # 97 or 98
    sed -e "s/r1/$id/; s/0\.0\.0\.0:61000/127.0.0.1:610$port/" \
        -e "/^advertise/d; s/^join .*/join 127.0.0.1:62000/" \
        -e "s/^grpc .*/grpc 127.0.0.1:510$port/" replica.conf.example > $id.conf
    echo insecure > $id.tls
    sed -e "s/--id a/--id $id/; s|/a.sock|/$id.sock|; s|/a.tls|/$id.tls|" \
        -e "s/0\.0\.0\.0:51000/127.0.0.1:510$port/; s/51080/520$port/" \
        -e "s|llama --model [^ ]*|sim --weights-file /weights.bin|" \
        standby.env.example > $id.env
done

group_is() { llmgwctl -s /run/llmgw/gw1.sock group | grep -Eq "$1 +$2"; }
is_active() { group_is a active || group_is b active; }
stands_by() { group_is a standby || group_is b standby; }
active() { group_is a active && echo a || echo b; }
serves_for() { pgrep -f -- "^/usr/local/bin/llmgw-replica --id $1 "; }
is_fence() {
    llmgwctl lock status --lock /run/llmgw/lock.sock | grep -q "$1"
}

systemctl start llmgw-agent@a llmgw-agent@b
passes "an engine waits for the services" group_is a init
systemctl start llmgw-lock llmgw-weights@m0
passes "one of a group is active" is_active
passes "the other one stands by" stands_by
passes "the lock service may kill them" is_fence kill
passes "its lock file is beside its socket" test -f /run/llmgw/chat.lock
first=$(active)
kill -KILL "$(serves_for "$first")"
passes "the other one takes over" group_is \
    "$([ "$first" = a ] && echo b || echo a)" active
passes "the first one is back, and stands by" group_is "$first" standby
engine=$(serves_for "$(active)")
for unit in llmgw-lock llmgw-weights@m0; do
    kill -KILL "$(property $unit MainPID)"
    passes "$unit is started again" \
        sh -c "[ \$(systemctl show -p NRestarts --value $unit) = 1 ]"
done
rm /run/llmgw/lock.sock
passes "and so is one whose socket was removed" is_fence kill
passes "which is nothing to the active engine" \
    test "$(serves_for "$(active)")" = "$engine"
passes "nor to the standby" stands_by
systemctl stop llmgw-agent@a llmgw-agent@b
systemctl stop llmgw-lock llmgw-weights@m0
passes "the lock service ends well" \
    test "$(property llmgw-lock Result)" = success
passes "and so does the weights service" \
    test "$(property llmgw-weights@m0 Result)" = success

echo "nonsense 1" >> r1.conf
systemctl start $replica 2> /dev/null
passes "a wrong option is for people to mend" \
    test "$(property $replica ExecMainStatus)/$(property $replica NRestarts)" = 2/0
systemctl stop $gateway
passes "the gateway's agent ends well" \
    test "$(property $gateway Result)" = success

echo DONE
systemctl exit 0
