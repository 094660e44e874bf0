'use strict';

/* Tables and figures of a comparison; a figure is as wide as its place. */

const DATA = JSON.parse($('data').textContent);
const LINES = ['none', '7 3', '2 3', '9 3 2 3', '4 2', '1 2', '12 4',
               '6 2 1 2'];
const HIGH = 300, LEFT = 56, RIGHT = 16, TOP = 12, BOTTOM = 46;
const SHADES = 10;
const CLASSES = 16;             // groups of bars that can be read
const SHARES = [5, 10, 25, 50, 75, 90, 95, 99, 100];    // %, of a table

const style = (i) => `c${i % LINES.length}`;
const digits = (x, n) => x === null ? '–' : x.toFixed(n);
const brief = (x, n) => String(Number(x.toPrecision(n)));
const range = (n) => [...Array(n).keys()];

/* --- tables */

function table(id, heads, rows) {
  return el('div', { class: 'scroll' }, el('table', id ? { id } : {},
    el('tr', {}, ...heads.map((h) => el('th', { scope: 'col' }, h))),
    ...rows.map(([first, ...rest]) => el('tr', {},
      el('th', { scope: 'row' }, first),
      ...rest.map((cell) => el('td', {}, cell))))));
}

function overview() {
  return table('overview', ['variant', ...DATA.columns.map((c) => c.heading)],
    DATA.variants.map((v, i) => [v.name, ...DATA.plots[i].figures.map(
      (x, k) => digits(x, DATA.columns[k].digits))]));
}

function options() {
  return el('table', { id: 'variants' }, ...DATA.variants.map((v) =>
    el('tr', {}, el('th', { scope: 'row' }, v.name),
       el('td', { class: 'words' }, v.options))));
}

function pairs() {
  return table('pairs', ['variant', 'time', 'pairs', 'mean', 'interval',
                         'median', 'faster', 'slower', 'p'],
    DATA.variants.slice(1).flatMap((v) => ['ttft', 'e2e'].map((time) => {
      const p = v.against_first[time];
      return [v.name, time.toUpperCase(), p.pairs, digits(p.mean_ms, 3),
              `${digits(p.low_ms, 3)} to ${digits(p.high_ms, 3)}`,
              digits(p.median_ms, 3), p.better, p.worse,
              brief(p.sign_test_p, 2)];
    })));
}

/* --- axes: { at: value -> place, ticks, title } */

/* Steps of 1, 2 or 5 times a power of ten: at most `most` from 0 to max. */
function steps(max, most) {
  const power = 10 ** Math.floor(Math.log10(max / most));
  const step = power * ([1, 2, 5].find((k) => max / (k * power) <= most) ?? 10);
  return range(Math.floor(max / step * 1.0001) + 1).map((i) => i * step);
}

function linear(max, from, to, title) {
  return { title, ticks: steps(max, to < from ? 6 : (to - from) / 55),
           at: (v) => from + (to - from) * v / max };
}

/* 1, 2 and 5 of each power of ten, or 1 alone where there is no room. */
function logarithmic(min, max, from, to, title) {
  const low = Math.floor(Math.log10(min)), high = Math.ceil(Math.log10(max));
  const few = (high - low) * 3 > (to - from) / 50;
  return { title,
           ticks: range(high - low + 1)
             .flatMap((d) => (few ? [1] : [1, 2, 5])
               .map((k) => k * 10 ** (low + d)))
             .filter((v) => v >= min && v <= max),
           at: (v) => from + (to - from) * Math.log(v / min)
                                         / Math.log(max / min) };
}

function label(x, y, anchor, text) {
  return svg('text', { class: 'label', x, y, 'text-anchor': anchor }, text);
}

function line(name, x1, y1, x2, y2) {
  return svg('line', { class: name, x1, y1, x2, y2 });
}

function xAxis(width, x) {
  const base = HIGH - BOTTOM;
  return [...x.ticks.flatMap((v) => [
    line('grid', x.at(v), TOP, x.at(v), base),
    label(x.at(v), base + 16, 'middle', brief(v, 6))]),
    label((LEFT + width - RIGHT) / 2, base + 34, 'middle', x.title)];
}

function yAxis(width, y) {
  return [...y.ticks.flatMap((v) => [
    line(v === 0 ? 'axis' : 'grid', LEFT, y.at(v), width - RIGHT, y.at(v)),
    label(LEFT - 6, y.at(v) + 4, 'end', brief(v, 6))]),
    svg('g', { transform: `translate(12 ${(HIGH - BOTTOM) / 2}) rotate(-90)` },
        label(0, 0, 'middle', y.title))];
}

/* --- figures */

function keys(swatch) {
  return el('ul', { class: 'keys' }, ...DATA.variants.map((v, i) =>
    el('li', { class: 'key' },
       svg('svg', { viewBox: '0 0 28 10', 'aria-hidden': 'true' }, swatch(i)),
       v.name)));
}

/* draw(width) gives what stands in the picture. */
function figure(title, says, draw, keys, numbers) {
  const picture = svg('svg', { role: 'img', height: HIGH,
                               'aria-label': `${title}. ${says}` });
  const node = el('figure', {}, el('figcaption', {}, title), picture,
    ...keys, el('details', {}, el('summary', {}, 'as a table'), numbers));
  new ResizeObserver(() => {
    const width = Math.max(240, Math.floor(node.clientWidth));
    if (Number(picture.getAttribute('width')) === width) return;
    set(picture, 'width', String(width));
    picture.replaceChildren(...draw(width));
  }).observe(node);
  return node;
}

/* Lists of times that 0 to 100 % of the requests took at most. */
function distribution(title, key) {
  const lists = DATA.plots.map((p) => p[key].map((ms) => Math.max(ms, 1e-3)));
  let min = Infinity, max = 0;
  for (const ms of lists.flat()) {
    min = Math.min(min, ms);
    max = Math.max(max, ms);
  }
  if (max === 0) [min, max] = [1, 10];
  if (min === max) [min, max] = [min / 2, max * 2];
  const part = (list, i) => i / (list.length - 1);
  return figure(title, 'Share of requests that took at most so long.',
    (width) => {
      const x = logarithmic(min, max, LEFT, width - RIGHT,
                            'ms (logarithmic)');
      const y = linear(1, HIGH - BOTTOM, TOP, 'share of requests');
      return [...xAxis(width, x), ...yAxis(width, y),
        ...lists.map((list, i) => svg('polyline', {
          class: `s ${style(i)}`,
          'stroke-dasharray': LINES[i % LINES.length],
          points: list.map((ms, k) => `${x.at(ms).toFixed(1)},`
                                      + y.at(part(list, k)).toFixed(1))
            .join(' ') }))];
    },
    [keys((i) => svg('path', { class: `s ${style(i)}`, d: 'M0 5h28',
                               'stroke-dasharray': LINES[i % LINES.length] }))],
    table('', ['ms', ...SHARES.map((s) => `${s} %`)],
      DATA.variants.map((v, i) => [v.name, ...SHARES.map((s) =>
        digits(lists[i][(lists[i].length - 1) * s / 100] ?? null, 1))])));
}

/* Of all requests of a class, those within its targets. */
function goodput() {
  const classes = Object.keys(DATA.variants[0].cluster.per_class ?? {})
    .slice(0, CLASSES);
  const value = (v, name) => {
    const c = v.cluster.per_class?.[name];
    return c && c.count > 0 ? c.slo_attainment : null;
  };
  if (classes.length === 0) return [];
  return [figure('Goodput by class', 'Share of all requests of the class that'
    + ' completed within all targets of the class.',
    (width) => {
      const y = linear(1, HIGH - BOTTOM, TOP, 'share of requests');
      const group = (width - LEFT - RIGHT) / classes.length;
      const bar = group * .8 / DATA.variants.length;
      return [...yAxis(width, y), ...classes.flatMap((name, g) => [
        label(LEFT + (g + .5) * group, HIGH - BOTTOM + 16, 'middle',
              short(name, Math.floor(group / 7))),
        ...DATA.variants.map((v, i) => [v, i, value(v, name)])
          .filter(([, , share]) => share !== null)
          .map(([v, i, share]) => svg('rect', {
            class: `f ${style(i)}`, x: LEFT + (g + .1) * group + i * bar,
            y: y.at(share), width: bar * .92, height: y.at(0) - y.at(share) },
            svg('title', {}, `${name}, ${v.name}: ${brief(share, 4)}`)))])];
    },
    [keys((i) => svg('rect', { class: `f ${style(i)}`, width: 28,
                               height: 10 }))],
    table('', ['%', ...classes], DATA.variants.map((v) => [v.name,
      ...classes.map((c) => value(v, c)).map((share) =>
        digits(share === null ? null : share * 100, 2))])))];
}

/* A row: neighbours of one shade are one rectangle. */
function shades(row, most, x, y, height) {
  const found = [];
  for (let from = 0, to; from < row.length; from = to) {
    const shade = Math.ceil(row[from] / most * SHADES);
    for (to = from + 1; to < row.length; to++) {
      if (Math.ceil(row[to] / most * SHADES) !== shade) break;
    }
    if (shade > 0) {
      found.push(svg('rect', { class: 'heat', 'fill-opacity': shade / SHADES,
        x: x(from), y, width: x(to) - x(from), height }));
    }
  }
  return found;
}

/* All maps have one scale, so they can be compared. */
function load(variant, plot, most) {
  const { seconds, replicas, replicas_a_row: each, rows } = plot.load;
  const names = rows.map((_, i) => {
    const last = Math.min((i + 1) * each, replicas) - 1;
    return i * each === last ? String(last) : `${i * each}-${last}`;
  });
  const high = (HIGH - TOP - BOTTOM) / rows.length;
  const every = 1 + Math.floor(rows.length / 16);
  return figure(`Load by replica: ${variant.name}`, 'Requests at each replica'
    + ' over time: the stronger the colour, the more; a row is a replica.',
    (width) => {
      const x = linear(seconds || 1, LEFT, width - RIGHT, 's');
      return [...rows.flatMap((row, i) => shades(row, most,
          (column) => x.at(column * (seconds || 1) / row.length),
          TOP + i * high, high * .94)),
        ...names.map((name, i) => i % every ? ''
          : label(LEFT - 6, TOP + (i + .5) * high + 4, 'end', name)),
        ...xAxis(width, x)];
    },
    [el('p', { class: 'keys' }, `strongest: ${brief(most, 4)} requests`)],
    table('', ['replica', 'mean', 'most'], rows.map((row, i) => [names[i],
      digits(row.reduce((a, b) => a + b, 0) / row.length, 1),
      digits(Math.max(...row), 1)])));
}

function loads() {
  const most = Math.max(...DATA.plots.flatMap((p) =>
    p.load.rows.map((row) => Math.max(...row)))) || 1;
  return DATA.variants.map((v, i) => load(v, DATA.plots[i], most));
}

/* --- the page */

const head = (text) => el('h2', {}, text);

$('main').append(
  el('p', {}, `Workload: ${DATA.workload}`),
  head('Side by side'), overview(),
  head('What was varied'), options(),
  ...DATA.variants.length < 2 ? [] : [
    head(`Against ${DATA.variants[0].name}, request by request`),
    el('p', {}, 'Differences in ms; below 0 the variant is faster. The'
      + ' interval holds the mean with 95 % confidence (bootstrap); p is the'
      + ' sign test’s.'),
    pairs()],
  head('Plots'),
  el('div', { class: 'plots' },
     distribution('Time to first token', 'ttft_ms'),
     distribution('End to end', 'e2e_ms'), ...goodput(), ...loads()));
