'use strict';

/* Which layers of which model are covered, and by whom. */

const MODELS = 8;           // that are drawn,
const LANES = 24;           // shards of each,
const GAPS = 16;            // and what is missing of it

/* Those of one model, weights and numerics may serve one request together. */
function modelsOf(shards) {
  const models = new Map();
  for (const s of shards.filter((one) => one.layers > 0)) {
    const key = JSON.stringify([s.model, s.weights, s.numerics, s.layers]);
    if (!models.has(key)) models.set(key, []);
    models.get(key).push(s);
  }
  return [...models.values()]
    .map((of) => of.sort((a, b) => a.first - b.first || a.last - b.last
                                   || order(a.id, b.id)))
    .sort((a, b) => order(a[0].model, b[0].model)
                    || order(a[0].weights, b[0].weights));
}

/* [[first, last], ...] that no shard which takes new sessions computes. */
function gapsOf(shards) {
  const gaps = [];
  let next = 0;
  for (const s of shards.filter((one) => one.kind === 'serving')) {
    if (s.first > next) gaps.push([next, s.first - 1]);
    next = Math.max(next, s.last + 1);
  }
  if (next < shards[0].layers) gaps.push([next, shards[0].layers - 1]);
  return gaps;
}

const span = (first, last) => (first === last ? `layer ${first}`
                                              : `layers ${first}–${last}`);

/* A stretch of the layers, as wide as it is long. */
function stretch(first, last, layers, kind) {
  const bar = el('span', { class: `stretch ${kind}`, 'aria-hidden': 'true' });
  bar.style.left = `${first / layers * 100}%`;
  bar.style.width = `${(last - first + 1) / layers * 100}%`;
  return bar;
}

function saysOf(s) {
  const said = [`${WHOLE.format(s.sessions)}${
    s.most > 0 ? `/${WHOLE.format(s.most)}` : ''} sessions`];
  if (s.queue > 0) said.push(`${WHOLE.format(s.queue)} waiting`);
  if (!s.loaded) said.push('not loaded');
  if (s.zone) said.push(s.zone);
  return said.join(', ');
}

function laneOf(s) {
  return el('li', { class: 'lane' },
            el('span', { class: 'id', title: s.id }, s.id),
            el('span', { class: 'track' },
               stretch(s.first, s.last, s.layers, `k-${s.kind}`)),
            el('span', { class: 'layers' }, `${s.first}–${s.last}`),
            el('span', { class: 'state' }, glyph(s.kind),
               el('span', {}, STATES[s.kind])),
            el('span', { class: 'muted' }, saysOf(s)));
}

function mapOf(shards) {
  const { model, weights, numerics, layers } = shards[0];
  const gaps = gapsOf(shards);
  const lanes = shards.slice(0, LANES).map(laneOf);
  if (shards.length > LANES) {
    lanes.push(el('li', { class: 'muted' },
                  `and ${WHOLE.format(shards.length - LANES)} more`));
  }
  const missing = gaps.slice(0, GAPS)
    .map(([first, last]) => span(first, last)).join(', ')
    + (gaps.length > GAPS ? ` and ${gaps.length - GAPS} more` : '');
  return el('div', { class: 'coverage' },
            el('p', {}, el('b', { class: 'id' }, model), ' ',
               el('span', { class: 'muted' }, `${many(layers, 'layer')
               }  ·  weights ${weights.slice(0, 12)}  ·  ${numerics}`)),
            el('ul', {}, ...lanes,
               el('li', { class: 'lane sum' }, el('span', {}, 'covered'),
                  el('span', { class: 'track whole' },
                     ...gaps.slice(0, GAPS).map(([first, last]) =>
                       stretch(first, last, layers, 'gap'))),
                  el('span', { class: gaps.length ? 'bad' : '' },
                     gaps.length ? `nobody covers ${missing}`
                                 : 'all layers'))));
}

class Shards {
  draw({ shards, totals }) {
    $('shards').hidden = !shards.length;
    const failed = totals.shardFailures;
    const said = JSON.stringify([shards, failed]);
    if (said === this.said) return;
    this.said = said;
    const models = modelsOf(shards);
    const silent = shards.filter((s) => s.layers === 0).map((s) => s.id);
    const more = models.length - MODELS;
    put($('shards-how'), [
      `${WHOLE.format(shards.filter((s) => s.kind === 'serving').length)} of ${
        WHOLE.format(shards.length)} take sessions`,
      silent.length ? `${names(silent)} ${silent.length > 1
        ? 'say' : 'says'} nothing` : '',
      more > 0 ? `${many(more, 'model')} not drawn` : '',
      failed > 0 ? `${many(failed, 'shard')} failed under requests` : '',
    ].filter(Boolean).join('  ·  '));
    $('coverage').replaceChildren(...models.slice(0, MODELS).map(mapOf));
  }
}
