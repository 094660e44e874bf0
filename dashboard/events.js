'use strict';

/* Events: what two answers differ in. */

const EVENTS = 200;         // the list is the memory: so many items
const MERGE_MS = 10000;     // counts of one kind become one event

/* Each answers [kind, words] of what is new of a replica, or nothing. */

function liveness(was, is) {
  if (was.state === is.state) return null;
  switch (is.state) {
  case 'DEAD':
    return ['dead', is.cause === 'down' ? 'dead: its process ended'
                                        : 'dead: its agent is silent'];
  case 'LEFT': return ['left', 'left'];
  case 'SUSPECT': return ['suspect', 'suspect: its agent is silent'];
  default:
    return was.state === 'SUSPECT' ? ['serving', 'alive after all']
      : ['join', `back, version ${is.version || 'unknown'}`];
  }
}

function progress(was, is) {
  if (was.service === is.service) return null;
  if (is.service === 'STALLED') return ['stalled', 'stalled: no progress'];
  return was.service === 'STALLED' && is.service === 'READY'
    ? ['serving', 'making progress again'] : null;
}

function drain(was, is) {
  if (was.draining === is.draining && was.owner === is.owner) return null;
  if (!is.draining) return ['serving', 'no longer draining'];
  return ['drain', is.owner ? `draining for ${is.owner}` : 'draining'];
}

function circuit(was, is) {
  if (was.breaker === is.breaker) return null;
  if (is.breaker === 'open') return ['open', 'circuit opened'];
  if (is.breaker === 'half_open') return ['half', 'circuit half open'];
  return was.breaker ? ['serving', 'circuit closed'] : null;
}

/* Of one that comes back its liveness tells the version. */
function version(was, is) {
  return was.version && is.version && was.version !== is.version
    && was.state !== 'LEFT' && was.state !== 'DEAD'
    ? ['join', `version ${was.version} → ${is.version}`] : null;
}

/* Of one that is dead its liveness tells enough. */
function standing(was, is) {
  if (was.standing === is.standing || is.state !== 'ALIVE') return null;
  switch (is.standing) {
  case 'active': return ['serving', `active in ${is.group}`];
  case 'waking': return ['standby', `waking in ${is.group}`];
  case 'standby': return ['standby', `standing by in ${is.group}`];
  default: return null;
  }
}

const CHANGES = [liveness, progress, drain, circuit, version, standing];

function eventsBetween(before, now, fresh) {
  const groups = new Map();     // text -> {kind, ids}
  const add = ([kind, text], id) => {
    if (!groups.has(text)) groups.set(text, { kind, text, ids: [] });
    groups.get(text).ids.push(id);
  };
  const known = new Map(before.replicas.map((r) => [r.id, r]));
  for (const r of now.replicas) {
    const old = known.get(r.id);
    known.delete(r.id);
    if (old) {
      CHANGES.map((of) => of(old, r)).filter(Boolean)
        .forEach((change) => add(change, r.id));
    } else if (r.kind !== 'dead' && r.kind !== 'left') {
      add(['join', `joined, version ${r.version || 'unknown'}`], r.id);
    }
  }
  for (const r of known.values()) add(['left', 'no longer listed'], r.id);
  const events = [...groups.values()].map((g) =>
    ({ kind: g.kind, text: `${names(g.ids)} ${g.text}`, of: g.ids.length }));
  viewEvents(before, now, events);
  takeoverEvents(before, now, events);
  if (fresh) {
    events.push({ kind: 'note', text: 'nginx started anew, counts from 0' });
  } else countEvents(before.totals, now.totals, events);
  return events;
}

function viewEvents(before, now, events) {
  const say = (kind, text) => events.push({ kind, text });
  if (!before.stale && now.stale) {
    say('suspect', 'the agent is silent, nginx serves by its last view');
  } else if (before.stale && !now.stale) say('serving', 'the agent is back');
  if (!before.isolated && now.isolated) {
    say('suspect', 'the gateway is cut off from gossip');
  } else if (before.isolated && !now.isolated) {
    say('serving', 'the gateway hears gossip again');
  }
}

function takeoverEvents(before, now, events) {
  const known = new Map(before.standbys.map((g) => [g.name, g.takeovers]));
  for (const g of now.standbys) {
    if (g.takeovers > (known.has(g.name) ? known.get(g.name) : g.takeovers)) {
      events.push({ kind: 'move', text: `${g.active || 'another engine'} took ${
        g.name} over, ${seconds(g.activeMs / 1000)} after the last one died` });
    }
  }
}

/* n moves with the next ones of its kind, so the words follow it */
function countEvents(before, now, events) {
  const say = (kind, counts, what) => {
    for (const [why, n] of counts) {
      events.push({ kind, n, merge: `${kind} ${what} ${why}`,
                    words: (k) => `${many(k, 'stream')} ${what}: ${
                      why.replaceAll('_', ' ')}` });
    }
  };
  circuitEvents(before.circuits, now.circuits, events);
  say('move', rise(before.failovers, now.failovers), 'failed over');
  say('refuse', rise(before.unserved, now.unserved), 'not served');
}

/* A probe takes milliseconds: most are over before the next question. */
function circuitEvents(before, now, events) {
  const more = (name) => num(now[name]) - num(before[name]);
  const seen = events.filter((e) => e.kind === 'half')
    .reduce((n, e) => n + e.of, 0);
  const probed = more('half_opened') - seen;
  if (probed > 0) {
    events.push({ kind: 'half', text: `${many(probed, 'circuit')} half open`
      + ' for a probe' });
  }
  if (more('reopened') > 0) {
    events.push({ kind: 'open', text: `${many(more('reopened'), 'probe')}`
      + ' failed, the circuit stays open' });
  }
}

/* The newest on top. */
class Events {
  constructor() {
    this.last = new Map();      // of what can grow: merge -> its event
  }

  add(event, pool, at) {
    const key = `${pool} ${event.merge}`;
    const old = event.merge && this.last.get(key);
    if (old && at - old.at < MERGE_MS && old.body.isConnected) {
      old.n += event.n;
      put(old.body, this.text(old, pool));
      return;
    }
    event.at = at;
    event.body = el('span', { class: 'id' }, this.text(event, pool));
    if (event.merge) this.last.set(key, event);
    if (this.last.size > EVENTS) this.last.clear();
    $('list').prepend(el('li', { class: 'new' },
      el('time', { datetime: new Date(at).toISOString() }, clock(at)),
      glyph(event.kind), event.body));
    while ($('list').childElementCount > EVENTS) $('list').lastChild.remove();
  }

  text(event, pool) {
    const text = event.words ? event.words(event.n) : event.text;
    return pool ? `${pool}: ${text}` : text;
  }
}
