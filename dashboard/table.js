'use strict';

/* The replicas, filtered, sorted, a page at a time. */

const ROWS = 25;            // a page

const KINDS = Object.keys(STATES);
/* [title, field, comparison, whether the greatest come first] */
const by = (key) => (a, b) => num(a[key]) - num(b[key]);
const byText = (key) => (a, b) => order(a[key], b[key]);
const COLUMNS = [
  ['Replica', 'id', byText('id'), false],
  ['State', 'kind', (a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind),
   true],
  ['In flight', 'inFlight', by('inFlight'), true],
  ['Tokens/s', 'rate', by('rate'), true],
  ['First token p50', 'first50', by('first50'), true],
  ['p99', 'first99', by('first99'), true],
  ['Failures', 'failures', by('failures'), true],
  ['Share', 'share', by('share'), true],
  ['Model', 'model', byText('model'), false],
  ['Engine', 'engine', (a, b) => num(a.engine.waiting) - num(b.engine.waiting)
   || num(a.engine.running) - num(b.engine.running), true],
  ['Facts', 'age', by('age'), true],
  ['Version', 'version', byText('version'), false],
  ['Address', 'address', byText('address'), false],
];
const NUMERIC = new Set(['rate', 'first50', 'first99', 'failures']);
/* These are hidden while no replica says anything of them. */
const TOLD = new Set(['model', 'engine']);
const BELIEVED_S = 2;       // policies do not read older facts
const classOf = (key) => (NUMERIC.has(key) ? 'num' : 'id')
  + (TOLD.has(key) ? ' told' : key === 'age' ? ' read' : '');

/* Beside the state: what it waits for. */
function noteOf(r) {
  if (r.kind === 'dead') return r.cause === 'down' ? 'process gone' : 'silent';
  if (r.kind === 'drain') return r.owner ? `for ${r.owner}` : 'by itself';
  if (r.kind === 'standby') {
    return `of ${r.group}, ${r.standing === 'waking' ? 'waking' : 'warm'}`;
  }
  if (r.kind === 'serving' && r.group) return `active in ${r.group}`;
  if (r.kind === 'open') {
    return r.probe > 0 ? `probe in ${Math.ceil(r.probe)} s` : 'probe is due';
  }
  return r.kind === 'off' && r.foreign ? 'another model' : '';
}

/* What an engine says of its load, as far as it says it. */
function engineOf({ running, waiting, kv_permille: kv, hit_permille: hits }) {
  return [[running, `${WHOLE.format(num(running))} running`],
          [waiting, `${WHOLE.format(num(waiting))} waiting`],
          [kv, `KV ${percent(num(kv) / 1000)}`],
          [hits, `hits ${percent(num(hits) / 1000)}`]]
    .filter(([told]) => Number.isFinite(told)).map(([, text]) => text)
    .join(', ');
}

class Row {
  constructor() {
    this.cells = COLUMNS.map(([, key]) =>
      el(key === 'id' ? 'th' : 'td',
         key === 'id' ? { scope: 'row', class: 'id' }
                      : { class: classOf(key) }));
    this.use = svg('use', {});
    this.glyph = svg('svg', { 'aria-hidden': 'true' }, this.use);
    this.word = el('span', {});
    this.note = el('span', { class: 'note' });
    this.cells[1].append(el('span', { class: 'state' }, this.glyph,
                            this.word, this.note));
    this.bars = [2, 7].map((i) => {
      const bar = el('span', { class: 'bar', 'aria-hidden': 'true' });
      const text = el('span', {});
      this.cells[i].append(bar, text);
      return [bar, text];
    });
    this.node = el('tr', {}, ...this.cells);
  }

  draw(r, most) {
    put(this.cells[0], r.id);
    set(this.cells[0], 'title', r.id);
    set(this.glyph, 'class', `glyph k-${r.kind}`);
    set(this.use, 'href', `#g-${r.kind}`);
    put(this.word, STATES[r.kind]);
    const note = noteOf(r);
    put(this.note, note);
    set(this.note, 'title', note);
    this.bar(0, r.inFlight / (r.capacity || most), r.capacity
      ? `${r.inFlight} of ${r.capacity}` : `${r.inFlight}`);
    put(this.cells[3], Number.isNaN(r.rate) ? '–' : amount(r.rate));
    put(this.cells[4], seconds(r.first50));
    put(this.cells[5], seconds(r.first99));
    put(this.cells[6], r.requests ? `${WHOLE.format(r.failures)} of ${
      WHOLE.format(r.requests)}` : '–');
    this.bar(1, r.share / (this.widest || 1), percent(r.share));
    put(this.cells[8], r.model ? r.model + (r.others ? ` +${r.others}` : '')
                               : '–');
    put(this.cells[9], engineOf(r.engine) || '–');
    put(this.cells[10], Number.isNaN(r.age) ? '–'
      : r.age > BELIEVED_S ? `${seconds(r.age)}, not believed`
      : seconds(r.age));
    put(this.cells[11], r.version || '–');
    put(this.cells[12], r.address);
  }

  bar(i, part, text) {
    const [bar, label] = this.bars[i];
    const width = `${Math.round(Math.min(1, part) * 100)}%`;
    if (bar.style.getPropertyValue('--part') !== width) {
      bar.style.setProperty('--part', width);
    }
    put(label, text);
  }
}

class Table {
  constructor() {
    this.by = 'id';
    this.down = false;
    this.kind = null;           // of the chip that is pressed
    this.page = 0;
    this.rows = [];
    this.chips = new Map();
    this.head = COLUMNS.map(([title, key, , falls]) => {
      const button = el('button', { type: 'button' }, title);
      button.addEventListener('click', () => this.sort(key, falls));
      const cell = el('th', { scope: 'col' }, button);
      if (key !== 'id') cell.className = classOf(key);
      $('columns').append(cell);
      return cell;
    });
    $('find').addEventListener('input', () => this.turn(0));
    $('back').addEventListener('click', () => this.turn(this.page - 1));
    $('on').addEventListener('click', () => this.turn(this.page + 1));
    this.chip(null, 'All');
  }

  sort(key, falls) {
    this.down = this.by === key ? !this.down : falls;
    this.by = key;
    this.turn(0);
  }

  turn(page) {
    this.page = page;
    if (this.pool) this.draw(this.pool);
  }

  chip(kind, title) {
    const label = el('span', {}, title);
    const button = el('button', { type: 'button', 'aria-pressed': 'false' },
                      ...(kind ? [glyph(kind)] : []), label);
    button.addEventListener('click', () => {
      this.kind = kind;
      this.turn(0);
    });
    this.chips.set(kind, { button, label });
    return button;
  }

  /* A chip stays where it is while a state has replicas, or is pressed. */
  drawChips(replicas) {
    const counts = new Map([[null, replicas.length],
                            ...countKinds(replicas)]);
    const wanted = [null, ...KINDS].filter((kind) =>
      counts.has(kind) || kind === this.kind);
    for (const kind of wanted) {
      if (!this.chips.has(kind)) this.chip(kind, STATES[kind]);
      const { button, label } = this.chips.get(kind);
      put(label, `${kind ? STATES[kind] : 'All'} ${
        WHOLE.format(counts.get(kind) || 0)}`);
      set(button, 'aria-pressed', String(kind === this.kind));
    }
    const nodes = wanted.map((kind) => this.chips.get(kind).button);
    const have = [...$('chips').children];
    if (nodes.length !== have.length || nodes.some((x, i) => x !== have[i])) {
      const focused = document.activeElement;
      $('chips').replaceChildren(...nodes);
      if (nodes.includes(focused)) focused.focus();
    }
  }

  chosen() {
    const find = $('find').value.trim().toLowerCase();
    const [, , compare] = COLUMNS.find(([, key]) => key === this.by);
    const way = this.down ? -1 : 1;
    return this.pool.replicas.filter((r) =>
      (this.kind === null || r.kind === this.kind)
      && (!find || [r.id, r.address, r.version, r.model].some((text) =>
        text.toLowerCase().includes(find))))
      .sort((a, b) => way * compare(a, b) || order(a.id, b.id));
  }

  draw(pool) {
    this.pool = pool;
    this.drawChips(pool.replicas);
    const table = $('columns').parentNode.parentNode;
    const told = pool.replicas.some((r) => r.model || engineOf(r.engine));
    table.classList.toggle('untold', !told);
    table.classList.toggle('unread', !told && !pool.choice);
    const chosen = this.chosen();
    const pages = Math.max(1, Math.ceil(chosen.length / ROWS));
    this.page = Math.max(0, Math.min(this.page, pages - 1));
    const first = this.page * ROWS, shown = chosen.slice(first, first + ROWS);
    const most = Math.max(8, ...pool.replicas.map((r) => r.inFlight));
    const widest = Math.max(0, ...pool.replicas.map((r) => r.share));
    while (this.rows.length < shown.length) this.rows.push(new Row());
    shown.forEach((r, i) => {
      this.rows[i].widest = widest;
      this.rows[i].draw(r, most);
      if (!this.rows[i].node.isConnected) $('rows').append(this.rows[i].node);
    });
    for (let i = shown.length; i < this.rows.length; i++) {
      this.rows[i].node.remove();
    }
    this.drawHead();
    $('none').hidden = shown.length > 0 || !pool.replicas.length;
    $('pager').hidden = pages < 2;
    put($('page'), `${WHOLE.format(first + 1)} to ${
      WHOLE.format(first + shown.length)} of ${WHOLE.format(chosen.length)}`);
    $('back').disabled = this.page === 0;
    $('on').disabled = this.page === pages - 1;
  }

  drawHead() {
    COLUMNS.forEach(([, key], i) => {
      if (key !== this.by) {
        this.head[i].removeAttribute('aria-sort');
      } else {
        set(this.head[i], 'aria-sort', this.down ? 'descending'
                                                 : 'ascending');
      }
    });
  }
}
