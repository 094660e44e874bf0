'use strict';

/* Charts of a history. */

const SPANS_MS = [60000, 120000, 300000, 600000];   // what they show

const CHARTS = [
  { title: 'Tokens a second', say: amount, area: true,
    series: [['', 'tokens']] },
  { title: 'Streams', say: amount, area: true,
    series: [['in flight', 'inFlight'], ['waiting', 'waiting']] },
  { title: 'First token', say: seconds, log: true,
    series: [['p50', 'first50'], ['p90', 'first90'], ['p99', 'first99']] },
  { title: 'Token gap', say: seconds, log: true,
    series: [['p50', 'gap50'], ['p90', 'gap90'], ['p99', 'gap99']] },
];
const WIDE = 600, HIGH = 112;

/* Where a value stands, and the values that get a rule. */
function linear(most) {
  const step = [1, 2, 2.5, 5, 10].map((k) =>
    k * 10 ** Math.floor(Math.log10(most / 2)))
    .find((s) => s * 2 >= most) || most / 2;
  return { rules: [0, step, 2 * step],
           at: (v) => HIGH - HIGH * v / (2 * step) };
}
function logarithmic(least, most) {
  const low = Math.floor(Math.log10(least) + .001);
  const high = Math.max(low + 2, Math.ceil(Math.log10(most) - .001));
  const rules = [], step = high - low > 4 ? 2 : 1;
  for (let d = low; d <= high; d += step) rules.push(10 ** d);
  return { rules, at: (v) =>
    HIGH - HIGH * (Math.log10(v) - low) / (high - low) };
}

class Chart {
  constructor(what, point) {
    this.what = what;
    this.keys = what.series.map(() => el('b', {}, '–'));
    this.lines = what.series.map((_, i) => svg('path', { class: `s${i}` }));
    this.area = svg('path', { class: 'area' });
    this.rules = svg('g', {});
    this.cursor = svg('path', { class: 'cursor' });
    this.scale = el('div', { class: 'scale', 'aria-hidden': 'true' });
    this.from = el('span', {});
    this.to = el('span', {}, 'now');
    this.plot = svg('svg', { class: 'plot', role: 'img', viewBox:
      `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none' },
      this.rules, this.area, ...this.lines, this.cursor);
    this.plot.addEventListener('pointermove', (e) => {
      const box = this.plot.getBoundingClientRect();
      point((e.clientX - box.left) / box.width);
    });
    this.plot.addEventListener('pointerleave', () => point(null));
    this.node = el('figure', { class: 'chart' },
      el('figcaption', {}, el('h2', {}, what.title),
         ...what.series.map(([name], i) => el('span', { class: 'key' },
           svg('svg', { viewBox: '0 0 18 8', 'aria-hidden': 'true' },
               svg('path', { class: `s${i}`, d: 'M0 4h18' })),
           name, this.keys[i]))),
      this.scale, el('div', { class: 'field' }, this.plot),
      el('div', { class: 'foot', 'aria-hidden': 'true' }, this.from,
         this.to));
  }

  /* part: where the pointer is, of the width; null: nowhere */
  draw(history, now, part) {
    const { what } = this, n = history.length;
    const age = now - history.get('at', 0);
    this.span = SPANS_MS.find((span) => span >= age) || SPANS_MS.at(-1);
    let least = Infinity, most = 0;
    for (const [, name] of what.series) {
      for (let i = 0; i < n; i++) {
        const v = history.get(name, i);
        if (history.get('at', i) < now - this.span || !(v >= 0)) continue;
        if (v > 0) least = Math.min(least, v);
        most = Math.max(most, v);
      }
    }
    const scale = what.log ? logarithmic(Math.min(least, .01), most || .1)
                           : linear(Math.max(most, 2));
    this.drawScale(scale);
    what.series.forEach(([, name], i) => {
      const runs = this.runs(history, name, now, scale);
      set(this.lines[i], 'd', runs.map((run) => run.d).join(''));
      if (what.area && i === 0) {
        set(this.area, 'd', runs.map((run) =>
          `${run.d}L${run.to} ${HIGH}L${run.from} ${HIGH}Z`).join(''));
      }
    });
    this.tell(history, now, part);
  }

  drawScale({ rules, at }) {
    const said = rules.join();
    if (said === this.said) return;
    this.said = said;
    this.rules.replaceChildren(...rules.map((v) => svg('path',
      { class: 'rule', d: `M0 ${at(v).toFixed(1)}H${WIDE}` })));
    this.scale.replaceChildren(...rules.map((v) => {
      const label = el('span', {}, this.what.log ? decade(v)
                                                 : amount(v));
      label.style.top = `${at(v) * 100 / HIGH}%`;
      return label;
    }));
  }

  /* A point without a value ends a run of the line. */
  runs(history, name, now, { at }) {
    const runs = [];
    let run = null;
    for (let i = 0; i < history.length; i++) {
      const part = 1 + (history.get('at', i) - now) / this.span;
      const v = history.get(name, i);
      if (part < 0 || Number.isNaN(v) || (this.what.log && v <= 0)) {
        run = null;
        continue;
      }
      const x = (part * WIDE).toFixed(1);
      if (!run) runs.push(run = { from: x, d: '' });
      run.d += `${run.d ? 'L' : 'M'}${x} ${at(v).toFixed(1)}`;
      run.to = x;
    }
    return runs;
  }

  /* Values where the pointer is, else the last ones. */
  tell(history, now, part) {
    const want = part === null ? now : now - (1 - part) * this.span;
    let i = history.length - 1;
    while (i > 0 && Math.abs(history.get('at', i - 1) - want)
           <= Math.abs(history.get('at', i) - want)) i--;
    const near = part === null
      || Math.abs(history.get('at', i) - want) < this.span / 50;
    const said = this.what.series.map(([name, key], k) => {
      const v = near ? history.get(key, i) : NaN;
      const text = Number.isNaN(v) ? '–' : this.what.say(v);
      put(this.keys[k], text);
      return `${name} ${text}`;
    });
    set(this.cursor, 'd', part === null ? ''
      : `M${(part * WIDE).toFixed(1)} 0V${HIGH}`);
    put(this.from, part === null ? `${this.span / 60000} min ago`
      : near ? clock(history.get('at', i)) : 'no answer then');
    if (part === null) {
      set(this.plot, 'aria-label',
          `${this.what.title}, now: ${said.join(', ')}`);
    }
  }
}

function decade(s) {
  return s < .9e-3 ? `${(s * 1e6).toFixed(0)} µs`
    : s < .9 ? `${(s * 1e3).toFixed(0)} ms` : `${s.toFixed(0)} s`;
}

class Charts {
  constructor() {
    this.part = null;
    this.all = CHARTS.map((what) => new Chart(what, (part) => {
      this.part = part;
      if (this.track) this.draw(this.track);
    }));
    $('charts').append(...this.all.map((chart) => chart.node));
  }

  draw(track) {
    this.track = track;
    for (const chart of this.all) {
      chart.draw(track.history, track.at, this.part);
    }
  }
}
