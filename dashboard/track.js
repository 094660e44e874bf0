'use strict';

/* What the page remembers of a pool: the last answer and a history. */

const SAMPLES = 600;        // of the history, at most
const WINDOW_MS = 10000;    // percentiles are of the last so many
const UPDATE_MS = 15000;    // an update that drains nobody is remembered

const SERIES = ['at', 'tokens', 'inFlight', 'waiting', 'first50', 'first90',
                'first99', 'gap50', 'gap90', 'gap99'];

/* The last SAMPLES points of every series, in rings of fixed size. */
class History {
  constructor() {
    this.length = this.next = 0;
    for (const name of SERIES) this[name] = new Float64Array(SAMPLES);
  }

  add(sample) {
    for (const name of SERIES) this[name][this.next] = sample[name] ?? NaN;
    this.next = (this.next + 1) % SAMPLES;
    this.length = Math.min(this.length + 1, SAMPLES);
  }

  /* i: 0 is the oldest point. */
  get(name, i) {
    return this[name][(this.next - this.length + i + SAMPLES) % SAMPLES];
  }
}

/* What was counted between two answers; null: counting began anew. */
function grown(before, now) {
  if (!before || before.counts.length !== now.counts.length) return null;
  const n = now.counts.map((count, i) => count - before.counts[i]);
  return n.some((x) => x < 0) ? null : { bounds: now.bounds, counts: n };
}

/* Spread evenly within a bucket, as Prometheus takes it. */
function quantile(histogram, q) {
  if (!histogram || !histogram.counts.length) return NaN;
  const { bounds, counts } = histogram;
  const rank = q * counts[counts.length - 1];
  if (!(rank > 0)) return NaN;
  const i = counts.findIndex((count) => count >= rank);
  const low = i ? bounds[i - 1] : 0, below = i ? counts[i - 1] : 0;
  if (!Number.isFinite(bounds[i])) return low;
  return low + (bounds[i] - low) * (rank - below) / (counts[i] - below);
}

/* What a class or a tenant did since `old`; null: it was not there then. */
function compare(group, old, span) {
  const none = { ended: 0, served: 0, goodput: 0, counted: {
    bounds: group.counted.bounds, counts: group.counted.counts.map(() => 0) } };
  const since = old || none;
  const first = grown(since.counted, group.counted);
  const served = group.served - since.served;
  group.rate = span > 0 ? (group.ended - since.ended) / span : NaN;
  group.good = served > 0 ? (group.goodput - since.goodput) / served : NaN;
  group.first50 = quantile(first, .5);
  group.first99 = quantile(first, .99);
}

class Track {
  constructor(name) {
    this.name = name;
    this.history = new History();
    this.recent = [];           // [{at, first, gap, groups}] of the last
                                // WINDOW_MS
    this.refused = new Map();   // group -> reasons when the page was opened
    this.now = null;
    this.at = 0;
    this.update = null;         // the rolling update that was seen last
    this.seen = new Map();      // version -> since when
    this.failovers = this.unserved = 0;     // since the page was opened
  }

  take(pool, at) {
    const before = this.now, span = (at - this.at) / 1000;
    const fresh = !before || pool.totals.tokens < before.totals.tokens
      || pool.totals.requests < before.totals.requests;
    if (before && span > 3 * POLL_MS / 1000) this.history.add({ at: at - 1 });
    if (fresh) {
      this.recent = [];
      this.refused.clear();
    }
    pool.rate = fresh || span <= 0 ? NaN
      : (pool.totals.tokens - before.totals.tokens) / span;
    this.recent = this.recent.slice(-WINDOW_MS / POLL_MS)
      .filter((old) => at - old.at <= WINDOW_MS);
    const oldest = this.recent[0];
    const first = grown(oldest && oldest.first, pool.first);
    const gap = grown(oldest && oldest.gap, pool.gap);
    const groups = this.follow(pool, oldest, at, fresh);
    this.recent.push({ at, first: pool.first, gap: pool.gap, groups });
    this.history.add({
      at, tokens: pool.rate, inFlight: pool.inFlight, waiting: pool.waiting,
      first50: quantile(first, .5), first90: quantile(first, .9),
      first99: quantile(first, .99), gap50: quantile(gap, .5),
      gap90: quantile(gap, .9), gap99: quantile(gap, .99),
    });
    const events = before ? eventsBetween(before, pool, fresh) : [];
    if (before && !fresh) this.count(before.totals, pool.totals);
    this.now = pool;
    this.at = at;
    this.followUpdate(at);
    return events;
  }

  /* Classes and tenants; one that comes later has begun with nothing. */
  follow(pool, oldest, at, fresh) {
    const now = new Map([
      ...pool.classes.map((group) => [`class ${group.name}`, group]),
      ...pool.tenants.map((group) => [`tenant ${group.name}`, group])]);
    for (const key of this.refused.keys()) {
      if (!now.has(key)) this.refused.delete(key);
    }
    for (const [key, group] of now) {
      compare(group, oldest && oldest.groups.get(key),
              oldest ? (at - oldest.at) / 1000 : 0);
      if (!this.refused.has(key)) {
        this.refused.set(key, fresh ? group.reasons : new Map());
      }
      group.refused = rise(this.refused.get(key), group.reasons);
    }
    return now;
  }

  count(before, now) {
    this.failovers += total(rise(before.failovers, now.failovers));
    this.unserved += total(rise(before.unserved, now.unserved));
  }

  /* An update drains one replica after the other, under its own name. */
  followUpdate(at) {
    const here = new Set(versions(this.now).map(([version]) => version));
    for (const version of this.seen.keys()) {
      if (!here.has(version)) this.seen.delete(version);
    }
    for (const version of here) {
      if (!this.seen.has(version)) this.seen.set(version, at);
    }
    const drained = this.now.replicas.filter(isUpdated);
    if (drained.length) {
      this.update = { id: drained[0].owner.slice(UPDATE.length), at };
    } else if (this.update && at - this.update.at > UPDATE_MS
               && versions(this.now).length < 2) {
      this.update = null;
    }
  }
}

const UPDATE = 'update:';
function isUpdated(r) {
  return r.draining && r.owner.startsWith(UPDATE);
}

function rise(before, now) {
  const more = new Map();
  for (const [name, n] of now) {
    const k = n - (before.get(name) || 0);
    if (k > 0) more.set(name, k);
  }
  return more;
}
function total(counts) {
  let n = 0;
  for (const k of counts.values()) n += k;
  return n;
}

/*
 * [[version, replicas]] of those that are not gone, most of them first.  What
 * an update has stopped is to come back, and counts as what it was.
 */
function versions(pool) {
  const found = new Map();
  for (const r of pool.replicas) {
    const gone = r.kind === 'left' || r.kind === 'dead';
    if (r.version && (!gone || isUpdated(r))) {
      found.set(r.version, (found.get(r.version) || 0) + 1);
    }
  }
  return [...found].sort((a, b) => b[1] - a[1] || order(a[0], b[0]));
}
