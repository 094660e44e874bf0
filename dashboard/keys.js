'use strict';

/* Who uses how much, and what is left: keys of all zones, by their use. */

const KEYS = 100;           // that are drawn

/* "20,000 of 50,000 a day, 30,000 left" */
function budgetOf({ budget: { tokens, used, period } }) {
  return tokens > 0 ? `${WHOLE.format(used)} of ${WHOLE.format(tokens)} a ${
    period}, ${WHOLE.format(Math.max(0, tokens - used))} left` : '–';
}

/* "59 of 60 requests, 0 of 2,000 tokens": what is left now. */
function leftOf({ rpm, tpm }) {
  return [[rpm, 'requests'], [tpm, 'tokens']]
    .filter(([{ limit }]) => limit > 0)
    .map(([{ limit, remaining }, what]) => `${WHOLE.format(remaining)} of ${
      WHOLE.format(limit)} ${what}`).join(', ') || '–';
}

/* [title, key => text, class of its cells] */
const KEY_COLUMNS = [
  ['Key', (k) => k.name, 'id'],
  ['Zone', (k) => k.zone, 'id'],
  ['Requests', (k) => WHOLE.format(k.requests), 'num'],
  ['Tokens in', (k) => WHOLE.format(k.prompt), 'num'],
  ['Tokens out', (k) => WHOLE.format(k.completion), 'num'],
  ['In flight', (k) => WHOLE.format(k.streams)
    + (k.most > 0 ? ` of ${WHOLE.format(k.most)}` : ''), 'num'],
  ['Budget', budgetOf, 'num'],
  ['Rate left', leftOf, 'num'],
];

class Keys {
  constructor() {
    this.table = new GroupTable('accounts', KEY_COLUMNS);
  }

  draw(keys) {
    const used = ({ prompt, completion }) => prompt + completion;
    const sorted = keys.sort((a, b) => used(b) - used(a)
      || b.requests - a.requests || order(a.name, b.name));
    const more = sorted.length - KEYS;
    $('keys').hidden = !sorted.length;
    put($('keys-how'), more > 0 ? `${many(more, 'key')} with less use not shown`
                                : '');
    this.table.draw(sorted.slice(0, KEYS));
  }
}
