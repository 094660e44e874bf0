'use strict';

/*
 * What a status says.  A field that is absent, or not of its kind, is 0, "" or
 * empty, so that whatever comes can be drawn.
 */

const num = (x) => (Number.isFinite(x) ? x : 0);
const str = (x) => (typeof x === 'string' ? x.slice(0, 128) : '');
const list = (x) => (Array.isArray(x) ? x : []);
const obj = (x) => (x && typeof x === 'object' ? x : {});

const STATES = {        // in the order of the legend; trouble behind
  serving: 'Serving', standby: 'Standby', half: 'Circuit half open',
  open: 'Circuit open',
  drain: 'Draining', starting: 'Starting', stalled: 'Stalled',
  suspect: 'Suspect', dead: 'Dead', left: 'Left', off: 'Off',
};

/* One word for a replica: what keeps new streams from it comes first. */
function kindOf(r) {
  if (r.state === 'DEAD') return 'dead';
  if (r.state === 'LEFT') return 'left';
  if (r.state === 'SUSPECT') return 'suspect';
  if (r.service === 'STALLED') return 'stalled';
  if (r.service === 'STARTING') return r.isWarm ? 'standby' : 'starting';
  if (r.draining) return 'drain';
  if (r.breaker === 'open') return 'open';
  if (r.breaker === 'half_open') return 'half';
  return r.routable ? 'serving' : 'off';
}

function readReplica(x) {
  const from = obj(x), breaker = obj(from.breaker);
  const first = obj(from.first_token), group = obj(from.group);
  const models = list(from.models).slice(0, 64).map(str);
  const r = {
    id: str(from.id), address: str(from.address), state: str(from.state),
    cause: str(from.cause), service: str(from.service),
    draining: from.draining === true, owner: str(from.drain_owner),
    routable: from.routable === true, version: str(from.model_version),
    share: num(from.share), inFlight: num(from.in_flight),
    capacity: num(from.max_capacity), breaker: str(breaker.state),
    failures: num(breaker.failures), requests: num(breaker.requests),
    probe: num(breaker.probe_in_ms) / 1000,
    rate: num(obj(from.rates).tokens), first50: first.p50_ms / 1000,
    first99: first.p99_ms / 1000,
    model: models[0] || '', others: Math.max(0, models.length - 1)
      + num(from.models_cut),
    engine: { ...obj(from.engine), ...obj(from.facts) },
    age: from.facts ? num(obj(from.facts).age_ms) / 1000 : NaN,
    group: str(group.name), standing: str(group.state),
  };
  r.isWarm = r.standing === 'standby' || r.standing === 'waking';
  r.kind = kindOf(r);
  return r;
}

/* Cumulative counts by their upper bounds; the last one has none. */
function readHistogram(x) {
  let sum = 0;
  return { bounds: [...list(obj(x).bounds).slice(0, 63), Infinity],
           counts: list(obj(x).counts).slice(0, 64)
             .map((n) => (sum += num(n))) };
}

/* What the gateway could not do, and not what its clients did. */
const UNSERVED = new Set(['queue_full', 'queue_timeout', 'queue_ttl',
                          'queue_shed', 'no_replicas', 'circuits_open',
                          'tries_exhausted', 'not_resumable',
                          'admission_reject_all', 'admission_token_bucket',
                          'admission_tenant_budget']);

function readTotals(x) {
  const requests = list(x.requests).map(obj);
  const counts = (pairs) => new Map(pairs.slice(0, 64));
  return {
    tokens: num(x.tokens),
    requests: requests.reduce((n, one) => n + num(one.count), 0),
    circuits: obj(x.breaker_transitions),
    shardFailures: Object.values(obj(x.shard_failures))
      .reduce((sum, n) => sum + num(n), 0),
    failovers: counts(Object.entries(obj(x.failovers))
      .map(([cause, n]) => [cause, num(n)])),
    unserved: counts(requests.filter((one) => UNSERVED.has(one.reason))
      .map((one) => [one.reason, num(one.count)])),
  };
}

/* A class or a tenant, as counted since the zone was made. */
function readGroup(x) {
  const from = obj(x);
  const requests = Object.entries(obj(from.requests)).slice(0, 64)
    .map(([reason, n]) => [reason, num(n)]);
  return {
    name: str(from.name), inFlight: num(from.in_flight),
    budget: Number.isFinite(from.budget) ? from.budget : NaN,
    ttft: num(from.ttft_ms) / 1000, itl: num(from.itl_ms) / 1000,
    goodput: num(from.goodput), served: num(obj(from.requests)['']),
    ended: requests.reduce((n, [, k]) => n + k, 0),
    reasons: new Map(requests.filter(([reason]) =>
      reason && reason !== 'other')),
    counted: readHistogram(from.first_token),
  };
}
const readGroups = (x) => list(x).slice(0, 128).map(readGroup)
  .sort((a, b) => order(a.name, b.name));

/* A group of engines that stand by for each other. */
function readStandby(x) {
  const from = obj(x);
  return { name: str(from.name), active: str(from.active),
           conflict: from.conflict === true, takeovers: num(from.takeovers),
           activeMs: num(from.active_ms) };
}

/* A shard of a model that replicas use; without layers it says nothing. */
function readShard(x) {
  const from = obj(x), said = obj(from.computes);
  const layers = Math.min(num(said.layers), 4096);
  const last = Math.min(num(said.last), layers - 1);
  const s = {
    id: str(from.id), state: str(from.state), service: str(from.service),
    draining: from.draining === true, routable: from.usable === true,
    sessions: num(from.sessions), most: num(from.max_sessions),
    queue: num(from.queue), model: str(said.model), weights: str(said.weights),
    numerics: str(said.numerics), layers, last,
    first: Math.max(0, Math.min(num(said.first), last)),
    loaded: said.loaded === true, zone: str(said.zone),
  };
  s.kind = kindOf(s);
  return s;
}

/* An account of a zone; those beyond the first 1,000 are one, "other". */
function readKey(zone, x) {
  const from = obj(x), budget = obj(from.budget);
  const rate = (of) => ({ limit: num(obj(of).limit),
                          remaining: num(obj(of).remaining) });
  return {
    name: str(from.name), zone, requests: num(from.requests),
    prompt: num(from.prompt_tokens), completion: num(from.completion_tokens),
    streams: num(from.streams), most: num(from.max_streams),
    rpm: rate(from.rpm), tpm: rate(from.tpm),
    budget: { tokens: num(budget.tokens), used: num(budget.used),
              period: str(budget.period) },
  };
}
const readKeys = (x) => list(x).slice(0, 64).map(obj).flatMap((of) =>
  list(of.accounts).slice(0, 1024).map((one) => readKey(str(of.zone), one)));

function readChoice(from) {
  const policy = obj(from.policy), queue = obj(from.queue);
  const admission = obj(from.admission), bucket = obj(admission.bucket);
  return choiceOf({
    policy: { name: str(policy.name), scorers: list(policy.scorers)
      .slice(0, 32).map((one) => [str(obj(one).name),
                                  num(obj(one).weight)]) },
    queue: { order: str(queue.order), fairness: str(queue.fairness),
             saturation: str(queue.saturation),
             shedding: queue.shedding === true },
    admission: { rule: str(admission.rule), bucket: bucket.capacity > 0
      ? { tokens: num(bucket.tokens), capacity: bucket.capacity } : null },
  });
}

function readPool(x) {
  const from = obj(x), view = obj(from.view), queue = obj(from.queue);
  const histograms = obj(from.histograms);
  const replicas = list(from.replicas).map(readReplica);
  const model = str(from.model);
  for (const r of replicas) {
    r.foreign = model !== '' && r.model !== '' && r.model !== model;
  }
  const routable = replicas.filter((r) => r.routable);
  replicas.sort((a, b) => order(a.id, b.id));
  return {
    name: str(from.name), model, replicas,
    inFlight: num(from.in_flight),
    capacity: routable.every((r) => r.capacity > 0)
      ? routable.reduce((n, r) => n + r.capacity, 0) : 0,
    serving: replicas.filter((r) => r.kind === 'serving').length,
    warm: replicas.filter((r) => r.kind === 'standby').length,
    waiting: num(queue.length), room: num(queue.size),
    circuit: queue.waits_for === 'circuit',
    standby: queue.waits_for === 'standby', held: num(queue.held),
    shards: list(from.shards).slice(0, 1024).map(readShard),
    standbys: list(from.groups).slice(0, 128).map(readStandby),
    stale: view.stale === true, isolated: view.isolated === true,
    age: num(view.age_ms), totals: readTotals(obj(from.totals)),
    classes: readGroups(from.classes), tenants: readGroups(from.tenants),
    choice: readChoice(from),
    first: readHistogram(histograms.first_token_seconds),
    gap: readHistogram(histograms.inter_token_seconds),
  };
}

/* An upstream with several models has a pool for each: by both names. */
function readPools(all) {
  const pools = list(all).map(readPool), names = pools.map((p) => p.name);
  for (const [i, pool] of pools.entries()) {
    if (names.filter((name) => name === names[i]).length > 1) {
      pool.name = `${pool.name} ${pool.model || '–'}`;
    }
  }
  return pools;
}

/* [[state, replicas in it]] of those that occur, in the legend's order */
function countKinds(replicas) {
  return Object.keys(STATES)
    .map((kind) => [kind, replicas.filter((r) => r.kind === kind).length])
    .filter(([, n]) => n > 0);
}
