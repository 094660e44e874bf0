'use strict';

/* The figures on top, and the progress of a rolling update. */

/* [title, (pool, track) => [value, the line below it, its class]] */
const FIGURES = [
  ['Serving', (p) => [`${WHOLE.format(p.serving)} / ${
    WHOLE.format(p.replicas.length)}`, 'replicas',
    p.serving === 0 ? 'bad'
    : p.serving + p.warm < p.replicas.length ? 'warn' : '']],
  ['In flight', (p) => [WHOLE.format(p.inFlight), p.capacity
    ? `of ${many(p.capacity, 'place')}` : 'streams, no limit',
    p.capacity && p.inFlight >= p.capacity ? 'warn' : '']],
  ['Waiting', (p) => [WHOLE.format(p.waiting), p.circuit
    ? 'for a circuit' : p.standby ? 'for a standby'
    : p.held ? 'for a replica'
    : p.room ? `of ${many(p.room, 'place')}` : 'the queue is off',
    p.room && p.waiting > p.room / 2 ? 'warn' : '']],
  ['Tokens', (p) => [Number.isNaN(p.rate) ? '–' : amount(p.rate),
    'a second', '']],
  ['First token, p99', (p, t) => [seconds(t.history.get('first99',
    t.history.length - 1)), 'last 10 s', '']],
  ['Token gap, p99', (p, t) => [seconds(t.history.get('gap99',
    t.history.length - 1)), 'last 10 s', '']],
  ['Failovers', (p, t) => [WHOLE.format(t.failovers), 'since opened',
    '']],
  ['Not served', (p, t) => [WHOLE.format(t.unserved),
    'since opened', t.unserved ? 'bad' : '']],
];

class Figures {
  constructor() {
    this.cells = FIGURES.map(([title]) => {
      const value = el('dd', {}, '–'), sub = el('dd', { class: 'sub' }, '');
      $('now').firstChild.append(el('div', {}, el('dt', {}, title),
                                    value, sub));
      return [value, sub];
    });
  }

  draw(track) {
    FIGURES.forEach(([, of], i) => {
      const [value, sub, kind] = of(track.now, track);
      put(this.cells[i][0], value);
      set(this.cells[i][0], 'class', kind);
      put(this.cells[i][1], sub);
    });
  }
}

/* Versions side by side, and what an update drains of them. */
class Update {
  draw(track) {
    const found = versions(track.now), { update } = track;
    $('update').hidden = !update && found.length < 2;
    if ($('update').hidden) return;
    const target = this.target(track);
    const all = found.reduce((n, [, k]) => n + k, 0);
    const done = (found.find(([version]) => version === target) || [, 0])[1];
    put($('update-h'), update ? `Rolling update ${update.id}` : 'Versions');
    put($('update-text'), update && target
      ? `${done} of ${many(all, 'replica')} at ${target}`
      : found.length > 1 ? `${found.length} versions serve side by side`
      : found.length ? `${many(all, 'replica')} at ${found[0][0]}` : '');
    this.split(found, target);
    const busy = track.now.replicas.filter(isUpdated);
    put($('update-doing'), busy.length
      ? `Draining ${names(busy.map((r) => r.id))}: ${many(
        busy.reduce((n, r) => n + r.inFlight, 0), 'stream')} left here`
      : update ? 'No replica is draining at the moment' : '');
  }

  /* The version that appeared last; the status does not say the target. */
  target({ seen }) {
    const [first, ...later] = [...seen].sort((a, b) => a[1] - b[1]);
    const last = later.pop();
    return last && last[1] > first[1] ? last[0] : null;
  }

  split(found, target) {
    const sorted = [...found].sort(([a], [b]) =>
      (b === target) - (a === target));
    const parts = sorted.map(([version, n]) => {
      const text = `${version}: ${WHOLE.format(n)}`;
      const part = el('span', { class: `id ${
        version === target ? 'new' : 'old'}` }, text);
      part.style.flexGrow = n;
      part.style.flexBasis = '0';
      return part;
    });
    set($('update-split'), 'aria-label',
        parts.map((part) => part.textContent).join(', '));
    $('update-split').replaceChildren(...parts);
  }
}
