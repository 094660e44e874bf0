'use strict';

/* Elements, and how numbers and names are written. */

const $ = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

/* Attributes are ours; what a status said comes as a child, as text. */
function make(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag)
                     : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const el = (tag, attributes, ...children) =>
  make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) =>
  make(SVG, tag, attributes, children);

function glyph(kind) {
  return svg('svg', { class: `glyph k-${kind}`, 'aria-hidden': 'true' },
             svg('use', { href: `#g-${kind}` }));
}

/* The page is drawn every second: only what changed is written. */
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const TENTH = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const order = new Intl.Collator('en', { numeric: true }).compare;

function amount(x) {
  return (x > 0 && x < 10 ? TENTH : WHOLE).format(x);
}
function percent(x) {
  return `${(x * 100).toFixed(x > 0 && x < 0.0995 ? 1 : 0)}%`;
}
function seconds(s) {
  if (!Number.isFinite(s)) return '–';
  if (s < 0.0095) return `${(s * 1000).toFixed(1)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 99.95) return `${s.toFixed(s < 9.995 ? 2 : 1)} s`;
  return `${Math.round(s / 60)} min`;
}
function clock(ms) {
  return new Date(ms).toTimeString().slice(0, 8);
}
function many(n, one) {
  return `${WHOLE.format(n)} ${one}${n === 1 ? '' : 's'}`;
}

const NAMES = 5;            // that one event spells out

function names(ids) {
  const some = ids.slice(0, NAMES).join(', ');
  return ids.length > NAMES ? `${some} and ${ids.length - NAMES} more` : some;
}

function short(text, n) {
  return text.length > n ? `${text.slice(0, Math.max(1, n - 1))}…` : text;
}
