'use strict';

/* The page as a whole: who asks, who draws, what is wrong. */

const POLL_MS = 1000;       // from one question to the next
const TIMEOUT_MS = 3000;    // then it is given up
const SILENT_MS = 2500;     // without an answer for so long: say so
const POOLS = 64;

function holds(pool) {
  return pool.held ? ': requests wait until there is one' : '';
}

class Page {
  constructor() {
    this.tracks = new Map();
    this.name = null;           // of the pool that is shown
    this.events = new Events();
    this.figures = new Figures();
    this.ring = new Ring();
    this.charts = new Charts();
    this.update = new Update();
    this.groups = new Groups();
    this.shards = new Shards();
    this.keys = new Keys();
    this.table = new Table();
    this.answered = null;       // when, by performance.now()
    this.trouble = null;        // of the last question
    this.notices = '';
  }

  fail(trouble) {
    this.trouble = trouble;
    this.tell();
  }

  take(status) {
    const pools = readPools(status.pools.slice(0, POOLS));
    const at = Date.now(), several = pools.length > 1;
    this.answered = performance.now();
    this.trouble = null;
    for (const pool of pools) {
      if (!this.tracks.has(pool.name)) {
        this.tracks.set(pool.name, new Track(pool.name));
      }
      for (const event of this.tracks.get(pool.name).take(pool, at)) {
        this.events.add(event, several ? pool.name : '', at);
      }
    }
    for (const name of this.tracks.keys()) {
      if (!pools.some((p) => p.name === name)) this.tracks.delete(name);
    }
    if (!this.tracks.has(this.name)) {
      this.name = pools.length ? pools[0].name : null;
    }
    this.keys.draw(readKeys(status.keys));
    put($('where'), `${location.host}  ·  ${str(status.version)}`);
    this.draw();
  }

  draw() {
    const track = this.tracks.get(this.name);
    this.drawPools();
    if (track && track.now) {
      this.figures.draw(track);
      this.ring.draw(track.now);
      this.charts.draw(track);
      this.update.draw(track);
      this.groups.draw(track.now);
      this.shards.draw(track.now);
      this.table.draw(track.now);
      document.title = `${track.now.serving}/${track.now.replicas.length} `
        + `serving · ${track.name} · llmgw`;
    }
    this.tell();
  }

  drawPools() {
    const tracks = [...this.tracks.values()];
    $('pools').hidden = tracks.length < 2;
    const said = JSON.stringify(tracks.map((t) => t.name));
    if (said !== this.said) {
      this.said = said;
      $('pools').replaceChildren(...tracks.map((t) => {
        const button = el('button', { type: 'button' },
                          el('span', {}), el('span', { class: 'id' }));
        button.addEventListener('click', () => {
          this.name = t.name;
          this.draw();
        });
        return button;
      }));
    }
    tracks.forEach((t, i) => {
      const button = $('pools').children[i], { serving, replicas } = t.now;
      const kind = serving === 0 ? 'dead'
        : serving < replicas.length ? 'suspect' : 'serving';
      set(button, 'aria-pressed', String(t.name === this.name));
      if (button.dataset.kind !== kind) {
        button.dataset.kind = kind;
        button.firstChild.replaceChildren(glyph(kind));
      }
      put(button.lastChild, `${t.name}  ${serving}/${replicas.length}`);
    });
  }

  /* What keeps the page from being current, or the pool from serving. */
  tell() {
    const silent = this.answered === null
      ? Boolean(this.trouble) && 'yet'
      : performance.now() - this.answered > SILENT_MS && poller.asking();
    const track = this.tracks.get(this.name);
    const found = [];
    if (silent) {
      found.push(['bad', `No answer from the gateway${
        silent === 'yet' ? ' yet' : ''}`, silent === 'yet' ? ''
        : ` for ${Math.round((performance.now() - this.answered) / 1000)} s`,
        this.trouble ? `: ${this.trouble}` : '']);
    } else if (track && track.now) this.poolTroubles(track.now, found);
    else if (this.answered !== null) {
      found.push(['warn', 'No upstream of llmgw is configured', '', '']);
    }
    this.notice(found);
    document.body.classList.toggle('silent', Boolean(silent));
    this.pulse(silent);
  }

  poolTroubles(pool, found) {
    if (pool.stale) {
      found.push(['warn', 'The agent is silent',
                  ` for ${Math.round(pool.age / 1000)} s`,
                  ': nginx routes by its last view']);
    }
    if (pool.isolated) {
      found.push(['warn', 'This gateway is cut off from gossip', '',
                  ': it still tries the replicas that it does not hear']);
    }
    for (const { name } of pool.standbys.filter((g) => g.conflict)) {
      found.push(['bad', `Two lock services grant the group ${name}`, '',
                  ': stop one of them']);
    }
    if (!pool.replicas.length) {
      found.push(['bad', 'The pool has no replica', '', holds(pool)]);
    } else if (!pool.serving && !pool.isolated) {
      found.push(['bad', 'No replica is serving', '', pool.standby
        ? ': requests wait for a standby' : holds(pool)]);
    }
  }

  /* The moving number is kept from screen readers: one alarm is enough. */
  notice(found) {
    const said = JSON.stringify(found.map(([kind, a, , b]) => [kind, a, b]));
    if (said !== this.notices) {
      this.notices = said;
      $('notices').replaceChildren(...found.map(([kind, before, , after]) =>
        el('p', { class: `notice ${kind}` }, before,
           el('span', { 'aria-hidden': 'true' }), after)));
    }
    found.forEach(([, , moving], i) =>
      put($('notices').children[i].querySelector('span'), moving));
  }

  pulse(silent) {
    const [kind, word] = poller.held ? ['left', 'Paused']
      : silent ? ['dead', 'No answer']
      : this.answered === null ? ['starting', 'Asking'] : ['serving', 'Live'];
    if (word !== this.word) {
      this.word = word;
      $('pulse').replaceChildren(glyph(kind), word);
    }
  }
}

/* One question at a time; none while the page is hidden or held. */
class Poller {
  constructor(url) {
    this.url = url;
    this.held = false;
    this.wake = null;
    this.since = 0;             // when asking began, or began again
    document.addEventListener('visibilitychange', () => this.woken());
  }

  asking() {
    return !this.held && !document.hidden
      && performance.now() - this.since > SILENT_MS;
  }

  hold(held) {
    this.held = held;
    this.woken();
  }

  woken() {
    if (this.wake) this.wake();
  }

  /* Until it may ask; a page that comes back asks at once. */
  async turn(began) {
    const left = () => POLL_MS - (performance.now() - began);
    while (this.held || document.hidden || left() > 0) {
      const idle = this.held || document.hidden;
      let timer;
      await new Promise((resolve) => {
        this.wake = resolve;
        if (!idle) timer = setTimeout(resolve, Math.max(20, left()));
      });
      clearTimeout(timer);
      this.wake = null;
      if (idle) this.since = performance.now();
    }
  }

  /* A status, or an error that says what is wrong. */
  async ask() {
    let answer, text;
    try {
      answer = await fetch(this.url, {
        cache: 'no-store', headers: { accept: 'application/json' },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      text = await answer.text();
    } catch (e) {
      throw new Error(e.name === 'TimeoutError' ? 'it does not answer in time'
                                                : 'it cannot be reached');
    }
    if (!answer.ok) throw new Error(`status answers ${answer.status}`);
    return this.parse(text);
  }

  parse(text) {
    let status;
    try {
      status = JSON.parse(text);
    } catch (e) {
      throw new Error('its status is not in JSON');
    }
    if (!Array.isArray(obj(status).pools)) {
      throw new Error('what answers is no status of llmgw');
    }
    return status;
  }

  async run(page) {
    for (let began = -Infinity;;) {
      await this.turn(began);
      began = performance.now();
      const status = await this.ask().catch((e) => page.fail(e.message));
      try {
        if (status) page.take(status);
      } catch (e) {
        reportError(e);         // our mistake: told, and the next one drawn
      }
    }
  }
}

const THEMES = ['system', 'light', 'dark'];

/* Where storage is refused the choice lasts as long as the page. */
function theme(choice) {
  let now = choice;
  try {
    if (now) localStorage.setItem('llmgw-theme', now);
    else now = localStorage.getItem('llmgw-theme');
  } catch (e) { /* as said above */ }
  if (!THEMES.includes(now)) now = 'system';
  document.documentElement.dataset.theme = now;
  put($('theme'), `Theme: ${now}`);
}

theme();
$('theme').addEventListener('click', () => {
  const now = document.documentElement.dataset.theme;
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

const poller = new Poller(
  document.querySelector('meta[name="llmgw-status"]').content);
const page = new Page();
$('hold').addEventListener('click', () => {
  poller.hold(!poller.held);
  set($('hold'), 'aria-pressed', String(poller.held));
  put($('hold'), poller.held ? 'Go on' : 'Pause');
  page.tell();
});
setInterval(() => { if (!document.hidden) page.tell(); }, 500);
poller.run(page);
