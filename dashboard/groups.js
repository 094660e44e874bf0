'use strict';

/* How a pool chooses and whom it lets in; its classes and its tenants. */

/* [title, group => text, class of its cells] */
const GROUP_COLUMNS = [
  ['Requests/s', (g) => (Number.isNaN(g.rate) ? '–' : amount(g.rate)), 'num'],
  ['First token p50', (g) => seconds(g.first50), 'num'],
  ['p99', (g) => seconds(g.first99), 'num'],
  ['Refused', (g) => refusalsOf(g), ''],
];
const CLASS_COLUMNS = [['Class', (g) => g.name, 'id'], ...GROUP_COLUMNS,
                       ['Within targets', (g) => goodOf(g), '']];
const TENANT_COLUMNS = [['Tenant', (g) => g.name, 'id'], ...GROUP_COLUMNS,
                        ['In flight', (g) => WHOLE.format(g.inFlight), 'num'],
                        ['Budget', (g) => (Number.isNaN(g.budget) ? '–'
                          : percent(g.budget)), 'num']];

const words = (text) => text.replaceAll('_', ' ');

/* "12 queue ttl, 3 queue full": since the page was opened, most first. */
function refusalsOf({ refused }) {
  return [...refused].sort((a, b) => b[1] - a[1] || order(a[0], b[0]))
    .map(([reason, n]) => `${WHOLE.format(n)} ${words(reason)}`)
    .join(', ') || '–';
}

/* "98% of first token 500 ms, gap 20 ms" */
function goodOf({ good, ttft, itl }) {
  const targets = [[ttft, 'first token'], [itl, 'gap']]
    .filter(([s]) => s > 0).map(([s, what]) => `${what} ${seconds(s)}`);
  if (!targets.length) return '–';
  return `${Number.isNaN(good) ? 'none' : percent(good)} of ${
    targets.join(', ')}`;
}

/* What is not as it is without being configured. */
function choiceOf({ policy, queue, admission }) {
  const said = [];
  if (policy.name && policy.name !== 'affinity') {
    said.push([words(policy.name), policy.scorers.map(([name, weight]) =>
      `${name} ${weight}`).join(', ')].filter(Boolean).join(': '));
  }
  if (queue.order && queue.order !== 'fifo') {
    said.push(`queue by ${words(queue.order)}`);
  }
  if (queue.fairness === 'round_robin') said.push('tenants in turn');
  if (queue.saturation && queue.saturation !== 'capacity') {
    said.push(`held by ${queue.saturation}`);
  }
  if (queue.shedding) said.push('sheds');
  if (admission.rule === 'reject_all') said.push('refuses all');
  if (admission.bucket) {
    const { tokens, capacity } = admission.bucket;
    said.push(`token bucket: ${WHOLE.format(tokens)} of ${
      WHOLE.format(capacity)}`);
  }
  return said.join('  ·  ');
}

class GroupTable {
  constructor(id, columns) {
    this.columns = columns;
    this.table = $(id);
    this.rows = [];
    this.table.tHead.rows[0].append(...columns.map(([title, , kind]) =>
      el('th', { scope: 'col', class: kind }, title)));
  }

  draw(groups) {
    this.table.hidden = !groups.length;
    while (this.rows.length < groups.length) {
      this.rows.push(el('tr', {}, ...this.columns.map(([, , kind], i) =>
        (i ? el('td', { class: kind })
           : el('th', { scope: 'row', class: kind })))));
    }
    const body = this.table.tBodies[0];
    this.rows.forEach((row, i) => {
      if (i >= groups.length) return row.remove();
      this.columns.forEach(([, of], k) => put(row.children[k],
                                              of(groups[i])));
      if (!row.isConnected) body.append(row);
    });
  }
}

class Groups {
  constructor() {
    this.classes = new GroupTable('classes', CLASS_COLUMNS);
    this.tenants = new GroupTable('tenants', TENANT_COLUMNS);
  }

  draw({ classes, tenants, choice }) {
    $('groups').hidden = !classes.length && !tenants.length && !choice;
    $('groups-scroll').hidden = !classes.length && !tenants.length;
    put($('groups-how'), choice);
    this.classes.draw(classes);
    this.tenants.draw(tenants);
  }
}
