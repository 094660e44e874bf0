'use strict';

/*
 * The ring: one path a state, however many replicas there are.  Replicas
 * stand clockwise in the order of their ids, each as wide as its share of the
 * keys; a dead one keeps its place until it is forgotten.
 */
const LABELS = 14;          // around it, at most
const RING_WORDS = { half: 'Half open', open: 'Open' };     // short
const RING = { x: 200, y: 152, label: 132, out: 116, in: 91, load: 88,
               least: 60 };

function point(r, turn) {
  const a = (turn - .25) * 2 * Math.PI;
  return `${(RING.x + r * Math.cos(a)).toFixed(2)} ${
    (RING.y + r * Math.sin(a)).toFixed(2)}`;
}
function arc(inner, outer, from, to) {
  if (to - from > .9999) {      // both ends in one point would be nothing
    return arc(inner, outer, from, from + .5)
      + arc(inner, outer, from + .5, from + .9999);
  }
  const far = to - from > .5 ? 1 : 0;
  return `M${point(outer, from)}A${outer} ${outer} 0 ${far} 1 ${
    point(outer, to)}L${point(inner, to)}A${inner} ${inner} 0 ${far} 0 ${
    point(inner, from)}Z`;
}

class Ring {
  constructor() {
    this.paths = new Map(Object.keys(STATES).map((kind) => {
      const path = svg('path', { class: `k-${kind}` });
      $('ring-arcs').append(path);
      return [kind, path];
    }));
    this.places = [];           // [{r, from, to}]
    this.touched = null;        // the id under the pointer
    const picture = document.querySelector('svg.ring');
    picture.addEventListener('pointermove', (e) => this.touch(picture, e));
    picture.addEventListener('pointerleave', () => this.point(null));
    this.labels = '';
  }

  touch(picture, event) {
    const box = picture.getBoundingClientRect();
    const x = (event.clientX - box.left) * 400 / box.width - RING.x;
    const y = (event.clientY - box.top) * 400 / box.width - RING.y;
    const r = Math.hypot(x, y);
    const turn = (Math.atan2(y, x) / (2 * Math.PI) + 1.25) % 1;
    const place = r > RING.least - 10 && r < RING.out + 8
      && this.places.find((p) => turn >= p.from && turn < p.to);
    this.point(place ? place.r.id : null);
  }

  point(id) {
    this.touched = id;
    if (this.pool) this.center();
  }

  draw(pool) {
    this.pool = pool;
    this.place(pool.replicas);
    const thin = Math.min(.0022, .12 / Math.max(1, this.places.length));
    const most = Math.max(8, ...pool.replicas.map((r) => r.inFlight));
    const shapes = new Map([...this.paths.keys()].map((k) => [k, []]));
    const loads = [];
    for (const { r, from, to } of this.places) {
      const a = from + thin, b = Math.max(a + 1e-5, to - thin);
      shapes.get(r.kind).push(arc(RING.in, RING.out, a, b));
      const part = Math.min(1, r.inFlight / (r.capacity || most));
      if (part > 0) {
        loads.push(arc(RING.load - part * (RING.load - RING.least),
                       RING.load, a, b));
      }
    }
    for (const [kind, path] of this.paths) {
      set(path, 'd', shapes.get(kind).join(''));
    }
    set($('ring-load'), 'd', loads.join(''));
    this.center();
    this.names();
    this.legend();
  }

  /* Shares as the ring has them; alike where it has none. */
  place(replicas) {
    const sum = replicas.reduce((n, r) => n + r.share, 0);
    let at = 0;
    this.places = replicas.map((r) => {
      const from = at;
      at += sum > 0 ? r.share / sum : 1 / replicas.length;
      return { r, from, to: at };
    });
  }

  center() {
    const { pool } = this, n = pool.replicas.length;
    const place = this.places.find((p) => p.r.id === this.touched);
    set($('ring-mark'), 'd', place
      ? arc(RING.in - 1, RING.out + 1, place.from, place.to) : '');
    if (place) {
      const { r } = place;
      put($('ring-0'), short(r.id, 14));
      put($('ring-1'), percent(r.share));
      put($('ring-2'), `${many(r.inFlight, 'stream')}`);
    } else {
      put($('ring-0'), '');
      put($('ring-1'), n ? `${WHOLE.format(pool.serving)}` : '–');
      put($('ring-2'), n ? `of ${WHOLE.format(n)} serving` : 'no replica');
    }
    const kinds = countKinds(pool.replicas);
    put($('ring-t'), n ? `Ring of ${many(n, 'replica')}: ${
      kinds.map(([kind, k]) => `${k} ${STATES[kind].toLowerCase()}`)
        .join(', ')}` : 'No replica yet');
  }

  /* All of a few; of many only those that are in trouble. */
  names() {
    const few = this.places.length <= LABELS;
    const wanted = this.places.filter((p) =>
      few || p.r.kind !== 'serving').slice(0, LABELS);
    const said = JSON.stringify(wanted.map((p) =>
      [p.r.id, p.from, p.to, p.r.kind]));
    if (said === this.labels) return;
    this.labels = said;
    const left = [], right = [];
    for (const { r, from, to } of wanted) {
      const middle = (from + to) / 2, a = (middle - .25) * 2 * Math.PI;
      (Math.cos(a) < 0 ? left : right).push(
        { r, middle, y: RING.y + RING.label * Math.sin(a) });
    }
    $('ring-labels').replaceChildren(...this.side(left, -1),
                                     ...this.side(right, 1));
  }

  side(labels, way) {
    labels.sort((a, b) => a.y - b.y);
    const step = 26, top = 12, bottom = 288;
    labels.forEach((l, i) => {
      l.y = Math.max(l.y, i ? labels[i - 1].y + step : top);
    });
    for (let i = labels.length - 1, limit = bottom; i >= 0; i--) {
      labels[i].y = Math.min(labels[i].y, limit);
      limit = labels[i].y - step;
    }
    return labels.flatMap(({ r, middle, y }) => {
      const dy = (y - RING.y) / RING.label;
      const x = RING.x + way * Math.max(
        RING.label * Math.sqrt(Math.max(0, 1 - dy * dy)), 18);
      const anchor = way < 0 ? 'end' : 'start';
      const at = (x + way * 5).toFixed(1);
      const room = Math.floor((way < 0 ? x - 8 : 392 - x) / 6.4);
      return [
        svg('path', { class: 'leader', d: `M${point(RING.out + 2, middle)}L${
          x.toFixed(1)} ${y.toFixed(1)}` }),
        svg('text', { x: at, y: (y - 1).toFixed(1), 'text-anchor': anchor },
            short(r.id, room)),
        svg('text', { x: at, y: (y + 11).toFixed(1), class: 'small',
                      'text-anchor': anchor },
            r.kind === 'serving' ? percent(r.share)
                                 : RING_WORDS[r.kind] || STATES[r.kind]),
      ];
    });
  }

  legend() {
    const said = countKinds(this.pool.replicas);
    const text = JSON.stringify(said);
    if (text === this.told) return;
    this.told = text;
    $('ring-legend').replaceChildren(...said.map(([kind, n]) =>
      el('li', {}, glyph(kind), `${STATES[kind]} ${WHOLE.format(n)}`)));
  }
}
