'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';
const FOLD = 600; // functions with more lines than this start folded
const GROUP = 50; // and so many blocks together
const el = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
};
const svg = (tag, props = {}, ...children) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

// The state is what the address keeps behind '#': a link shows the same view.
const state = { f: data.functions[0] || '', open: [], cur: '', view: {}, sel: '', tab: '', step: [-1, 0], find: '', dark: null, over: '' };
const stageOf = name => data.stages.find(stage => stage.name === name);
const has = (stage, f) => stage.functions[f] !== undefined || stage.functions[''] !== undefined;
// An unchanged stage names the one whose listing it shares.
function listing(stage, f) {
  const own = stage.functions[f] || stage.functions[''] || null;
  if (!own || !own.same) return own;
  const whole = listing(stageOf(own.same), f);
  return whole && { ...whole, changed: false, diff: null };
}
const changedStages = () => data.stages.filter(stage => has(stage, state.f) && changed(stage));
const changed = stage => { const l = listing(stage, state.f); return !l || l.changed !== false; };

function readHash() {
  const raw = new URLSearchParams(location.hash.slice(1));
  if (data.functions.includes(raw.get('f'))) state.f = raw.get('f');
  const open = raw.has('open') ? raw.get('open').split(',').filter(name => name === 'source' || stageOf(name)) : null;
  const wanted = ['source', 'cfg', 'ssa', 'sequence', 'regalloc'].filter(name => name === 'source' || stageOf(name));
  state.open = open || wanted;
  state.cur = raw.get('cur') && state.open.includes(raw.get('cur')) ? raw.get('cur') : state.open[1] || state.open[0] || '';
  state.view = {};
  for (const part of (raw.get('view') || '').split(',').filter(Boolean)) {
    const [name, kind] = part.split(':');
    if (['graph', 'diff'].includes(kind)) state.view[name] = kind;
  }
  state.sel = raw.get('sel') || '';
  state.tab = raw.get('tab') || '';
  state.over = raw.get('over') || '';
  const step = (raw.get('step') || '-1.0').split('.').map(Number);
  state.step = step.length === 2 && step.every(Number.isInteger) ? step : [-1, 0];
}
let writing = false;
function writeHash() {
  const out = new URLSearchParams();
  out.set('f', state.f);
  out.set('open', state.open.join(','));
  out.set('cur', state.cur);
  const views = Object.entries(state.view).filter(([name]) => state.open.includes(name)).map(([n, k]) => n + ':' + k);
  if (views.length) out.set('view', views.join(','));
  if (state.sel) out.set('sel', state.sel);
  if (state.tab) out.set('tab', state.tab);
  if (state.over) out.set('over', state.over);
  if (state.tab === 'steps') out.set('step', state.step.join('.'));
  const hash = '#' + out.toString();
  if (hash !== location.hash) { writing = true; history.replaceState(null, '', hash); writing = false; }
}

// ---- selection: an entity, or a source line 'line:5'
let lit = new Set(), litLine = 0;
function select(key) {
  state.sel = state.sel === key ? '' : key;
  applySelection();
  writeHash();
}
function closure(key) {
  const links = data.links[state.f] || { same: {}, versions: {}, defs: {} };
  const seen = new Set([key]), work = [key];
  for (const value of links.versions[key] || []) { seen.add(value); work.push(value); }
  while (work.length) for (const next of links.same[work.pop()] || []) if (!seen.has(next)) { seen.add(next); work.push(next); }
  for (const entity of [...seen]) for (const inst of links.defs[entity] || []) seen.add(inst);
  return seen;
}
function applySelection() {
  litLine = state.sel.startsWith('line:') ? Number(state.sel.slice(5)) : 0;
  lit = state.sel && !litLine ? closure(state.sel) : new Set();
  const sourceLines = new Set(litLine ? [litLine] : []);
  if (lit.size) for (const line of (data.links[state.f] || { lines: {} }).lines[state.sel] || []) sourceLines.add(line);
  for (const node of document.querySelectorAll('[data-e]')) node.classList.toggle('lit', lit.has(node.dataset.e));
  for (const node of document.querySelectorAll('.l')) {
    const source = node.dataset.source ? sourceLines.has(Number(node.dataset.n)) : litLine > 0 && Number(node.dataset.n) === litLine;
    node.classList.toggle('lit', source || lit.has(node.dataset.line));
  }
  for (const node of document.querySelectorAll('svg .node')) node.classList.toggle('lit', lit.has(node.dataset.block));
  for (const row of document.querySelectorAll('tr[data-all]')) {
    row.classList.toggle('lit', state.sel !== '' && row.dataset.all.split(' ').includes(state.sel));
  }
  $('selection').textContent = state.sel ? 'selected ' + describe(state.sel) : '';
}
function describe(key) {
  if (key.startsWith('line:')) return 'line ' + key.slice(5);
  const names = (data.links[state.f] || { names: {} }).names || {};
  return names[key] || key;
}

// ---- rail
function deltas(stage) {
  return stage.counts.map(([label, now, before]) => before === null || before === now ? null
    : label + ' ' + before + '→' + now).filter(Boolean).join(', ');
}
function rail() {
  const nav = $('rail');
  nav.replaceChildren(stageButton({ name: 'source', number: '', title: data.file, micros: null, counts: [] }, true));
  let folded = [];
  const flush = () => {
    if (!folded.length) return;
    const same = folded;
    folded = [];
    nav.append(el('details', same.some(stage => state.open.includes(stage.name)) ? { open: '' } : {},
      el('summary', {}, '= ' + same.length + ' unchanged'), ...same.map(stage => stageButton(stage, false))));
  };
  for (const stage of data.stages.filter(stage => has(stage, state.f))) {
    if (changed(stage)) { flush(); nav.append(stageButton(stage, true)); } else folded.push(stage);
  }
  flush();
}
function stageButton(stage, differs) {
  const delta = deltas(stage);
  const open = state.open.includes(stage.name);
  return el('button', { type: 'button', 'aria-pressed': open, title: stage.title, 'data-stage': stage.name,
    class: (differs ? '' : 'same') + (state.cur === stage.name ? ' current' : ''), onclick: () => toggleStage(stage.name) },
    el('span', { class: 'number' }, stage.number), (differs ? '' : '= ') + stage.name,
    stage.micros === null ? null : el('span', { class: 'time' }, stage.micros < 1000 ? stage.micros + ' µs' : (stage.micros / 1000).toFixed(1) + ' ms'),
    delta ? el('span', { class: 'delta' }, 'Δ ' + delta) : null);
}
function order(name) { return name === 'source' ? -1 : data.stages.findIndex(stage => stage.name === name); }
function toggleStage(name) {
  if (state.open.includes(name)) {
    if (state.cur === name) { closeStage(name); return; }
    state.cur = name;
  } else {
    state.open.push(name);
    state.open.sort((a, b) => order(a) - order(b));
    state.cur = name;
  }
  draw();
  reveal(name);
}
function closeStage(name) {
  state.open = state.open.filter(other => other !== name);
  if (state.cur === name) state.cur = state.open[0] || '';
  draw();
}
function reveal(name) {
  const column = document.querySelector('.column[data-stage="' + name + '"]');
  if (column) column.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

// ---- columns
function draw() {
  rail();
  const columns = $('columns');
  const scrolls = {};
  for (const column of columns.children) scrolls[column.dataset.stage] = column.querySelector('.body').scrollTop;
  // A column that shows what it showed stays as it is, unfolded parts and all; large ones take long to make.
  const made = new Map([...columns.children].map(column => [column.dataset.shows, column]));
  columns.replaceChildren(...state.open.map(name => made.get(shows(name)) || column(name)));
  for (const column of columns.children) column.querySelector('.body').scrollTop = scrolls[column.dataset.stage] || 0;
  markCurrent();
  panel();
  applySelection();
  markFound();
  writeHash();
}
function shows(name) {
  const kind = state.view[name] || 'text';
  return [name, state.f, kind, kind === 'graph' ? state.over : ''].join('|');
}
function column(name) {
  const stage = name === 'source' ? null : stageOf(name);
  const own = stage ? listing(stage, state.f) : null;
  const kind = state.view[name] || 'text';
  const set = other => () => { state.view[name] = state.view[name] === other ? 'text' : other; state.cur = name; draw(); };
  const head = el('div', { class: 'head' },
    el('h2', {}, stage ? stage.number + ' ' + name : 'source'), el('span', { class: 'title' }, stage ? stage.title : data.file),
    own && own.graph ? el('button', { type: 'button', 'aria-pressed': kind === 'graph', onclick: set('graph') }, 'graph') : null,
    own && own.diff ? el('button', { type: 'button', 'aria-pressed': kind === 'diff', onclick: set('diff') }, 'diff') : null,
    own && own.graph && kind === 'graph' && own.graph.overlays.length ? overlayChooser(own.graph) : null,
    el('button', { type: 'button', 'aria-label': 'close ' + name, onclick: () => closeStage(name) }, '×'));
  const body = el('div', { class: 'body' });
  if (!stage) sourceLines(body);
  else if (!own) body.append(el('p', { class: 'note' }, 'Nothing of ' + state.f + ' here.'));
  else if (kind === 'graph') body.append(graph(own));
  else if (kind === 'diff') difference(body, stage, own);
  else text(body, own);
  return el('article', { class: 'column' + (kind === 'graph' ? ' wide' : '') + (state.cur === name ? ' current' : ''), 'data-stage': name, 'data-shows': shows(name),
    onmousedown: () => { if (state.cur !== name) { state.cur = name; markCurrent(); writeHash(); } } }, head, body);
}
function markCurrent() {
  for (const column of $('columns').children) column.classList.toggle('current', column.dataset.stage === state.cur);
  for (const button of document.querySelectorAll('#rail button')) button.classList.toggle('current', button.dataset.stage === state.cur);
}
function overlayChooser(graph) {
  const chooser = el('select', { 'aria-label': 'overlay', onchange: event => { state.over = event.target.value; draw(); } },
    el('option', { value: '' }, 'no overlay'), ...graph.overlays.map(name => el('option', { value: name }, name)));
  chooser.value = graph.overlays.includes(state.over) ? state.over : '';
  return chooser;
}
function sourceLines(body) {
  const make = (from, to) => {
    for (let n = from; n < to; n++) {
      body.append(el('div', { class: 'l', 'data-n': n + 1, 'data-source': '1' }, el('span', { class: 'n' }, String(n + 1)), data.source[n]));
    }
  };
  make(0, data.source.length);
}
const pieces = parts => parts.map(([kind, text, entity]) =>
  kind || entity ? el('span', { class: kind, 'data-e': entity || undefined }, text) : document.createTextNode(text));
function lineNode(line, mark, extra) {
  return el('div', { class: 'l' + (extra ? ' ' + extra : ''), 'data-n': line[0] || undefined, 'data-line': line[1] || undefined },
    mark === undefined ? null : el('span', { class: 'm' }, mark), el('span', { class: 'n' }, line[0] ? String(line[0]) : ''), ...pieces(line[2]));
}
// Blocks start where a line's entity is a block; large functions show their first lines and unfold on demand. Many blocks are
// folded together first.
function text(body, own) {
  if (own.lines.length <= FOLD) { body.append(...own.lines.map(line => lineNode(line))); return; }
  const starts = own.lines.map((line, i) => (line[1] || '').startsWith('b') ? i : -1).filter(i => i >= 0);
  const cuts = [...new Set([0, ...starts]), own.lines.length];
  blocks(body, own, cuts.slice(0, GROUP + 1));
  for (let i = GROUP; i < cuts.length - 1; i += GROUP) {
    const part = cuts.slice(i, i + GROUP + 1);
    const [from, to] = [part[0], part[part.length - 1]];
    const button = fold(from, to, (own.lines[from][1] || '') + ' …  ' + (part.length - 1) + ' blocks, ' + (to - from) + ' lines');
    button.addEventListener('click', () => {
      const holder = document.createDocumentFragment();
      blocks(holder, own, part);
      button.replaceWith(holder);
      applySelection();
    });
    body.append(button);
  }
}
function blocks(body, own, cuts) {
  for (let i = 0; i + 1 < cuts.length; i++) {
    body.append(lineNode(own.lines[cuts[i]]));
    chunk(body, own, cuts[i] + 1, cuts[i + 1]);
  }
}
function fold(from, to, text) {
  return el('button', { type: 'button', class: 'fold', 'aria-expanded': 'false', 'data-from': from, 'data-to': to }, '▸ ' + text);
}
function chunk(body, own, from, to) {
  if (from >= to) return;
  const button = fold(from, to, (to - from) + ' lines');
  button.addEventListener('click', () => {
    const upto = Math.min(to, from + 400);
    const nodes = own.lines.slice(from, upto).map(line => lineNode(line));
    button.replaceWith(...nodes);
    if (upto < to) { const rest = el('span'); nodes[nodes.length - 1].after(rest); const holder = document.createDocumentFragment(); chunk(holder, own, upto, to); rest.replaceWith(holder); }
    applySelection();
  });
  body.append(button);
}
function difference(body, stage, own) {
  const before = data.stages.slice(0, order(stage.name)).reverse().find(other => other.name === own.diff.against);
  const old = listing(before, state.f);
  body.append(el('p', { class: 'note' }, ' against ' + before.number + ' ' + before.name + ': − gone, + new, ~ renumbered'));
  for (const [op, i, j, n] of own.diff.runs) {
    if (op === '-') for (let k = 0; k < n; k++) body.append(lineNode(old.lines[i + k], '−', 'del'));
    else if (op === '+') for (let k = 0; k < n; k++) body.append(lineNode(own.lines[j + k], '+', 'add'));
    else if (n > 9) {
      for (let k = 0; k < 3; k++) body.append(lineNode(own.lines[j + k], op === '~' ? '~' : ' '));
      const holder = el('div');
      chunk(holder, own, j + 3, j + n - 3);
      body.append(holder);
      for (let k = n - 3; k < n; k++) body.append(lineNode(own.lines[j + k], op === '~' ? '~' : ' '));
    } else for (let k = 0; k < n; k++) body.append(lineNode(own.lines[j + k], op === '~' ? '~' : ' '));
  }
}
function graph(own) {
  const g = own.graph;
  const root = svg('svg', { width: g.size[0], height: g.size[1], viewBox: '0 0 ' + g.size[0] + ' ' + g.size[1], role: 'img', 'aria-label': 'control-flow graph' });
  for (const edge of g.edges) {
    const [first, ...rest] = edge.points;
    root.append(svg('path', { class: edge.back ? 'back' : '', d: 'M' + first.join(' ') + rest.map(p => 'L' + p.join(' ')).join('') }));
    const [x, y] = edge.points[edge.points.length - 1];
    root.append(svg('path', { class: 'tip', d: 'M' + (x - 4) + ' ' + (y - 7) + 'L' + (x + 4) + ' ' + (y - 7) + 'L' + x + ' ' + y + 'Z' }));
    if (edge.label) root.append(svg('text', { class: 'label', x: first[0] + 4, y: first[1] + 11 }, edge.label));
  }
  for (const node of g.nodes) {
    const group = svg('g', { class: 'node', 'data-block': node.block, transform: 'translate(' + node.x + ' ' + node.y + ')' });
    group.append(svg('rect', { class: 'box', width: node.w, height: node.h, rx: 3 }));
    let y = 15;
    for (const line of own.lines.slice(node.lines[0], node.lines[1])) {
      const text = svg('text', { x: 7, y });
      for (const [kind, piece, entity] of line[2]) {
        const span = svg('tspan', { class: kind || '' });
        if (entity) span.setAttribute('data-e', entity);
        span.textContent = piece;
        text.append(span);
      }
      group.append(text);
      y += 16;
    }
    if (node.more) group.append(svg('text', { class: 'facts', x: 7, y }, '… ' + node.more + ' more lines'));
    if (state.over && node.facts[state.over]) group.append(svg('text', { class: 'facts', x: 7, y: node.h - 5 }, node.facts[state.over]));
    root.append(group);
  }
  return root;
}

// ---- explanations
const tabs = () => [...data.tables.map(table => [table.id, table.title]),
  ...(data.steppers.length ? [['steps', 'Parallel copies']] : []), ...(Object.keys(data.ranges).length ? [['ranges', 'Live ranges']] : [])];
function panel() {
  $('tabs').replaceChildren(...tabs().map(([id, title], i) => el('button', { type: 'button', role: 'tab', id: 'tab-' + id,
    'aria-selected': state.tab === id, title: 'key ' + (i + 1), onclick: () => { state.tab = state.tab === id ? '' : id; draw(); } }, title)));
  const pane = $('pane');
  const scroll = pane.scrollTop;
  const table = data.tables.find(table => table.id === state.tab);
  if (table) pane.replaceChildren(tableNode(table));
  else if (state.tab === 'steps' && data.steppers.length) pane.replaceChildren(stepper());
  else if (state.tab === 'ranges' && data.ranges[state.f]) pane.replaceChildren(ranges(data.ranges[state.f]));
  else if (state.tab === 'ranges') pane.replaceChildren(el('p', { class: 'note' }, 'No ranges for ' + state.f + '.'));
  else pane.replaceChildren();
  pane.scrollTop = scroll;
}
function tableNode(table) {
  const rows = table.rows.filter(row => !row.function || row.function === state.f);
  if (!rows.length) return el('p', { class: 'note' }, table.empty);
  const shown = rows.slice(0, 2000);
  return el('div', {}, table.note ? el('p', { class: 'note' }, table.note) : null,
    el('table', {}, el('thead', {}, el('tr', {}, ...table.columns.map(name => el('th', { scope: 'col' }, name)))),
      el('tbody', {}, ...shown.map(row => el('tr', { 'data-all': row.all.join(' '), tabindex: '0',
        onclick: () => select(row.all[0] || ''), onkeydown: event => { if (event.key === 'Enter') select(row.all[0] || ''); } },
        ...row.cells.map(cell => el('td', {}, cell)))))),
    rows.length > shown.length ? el('p', { class: 'note' }, (rows.length - shown.length) + ' more rows: atlc explain --json has all.') : null);
}
function stepper() {
  const all = data.steppers.map((copy, i) => [copy, i]).filter(([copy]) => copy.function === state.f);
  if (!all.length) return el('p', { class: 'note' }, 'No parallel copy in ' + state.f + '.');
  // The first look is at a copy with a cycle, if there is one.
  if (state.step[0] < 0 || !all.some(([, i]) => i === state.step[0])) {
    state.step = [(all.find(([copy]) => copy.steps.some(step => step.done === null)) || all[0])[1], 0];
  }
  const copy = data.steppers[state.step[0]];
  const at = Math.min(state.step[1], copy.steps.length);
  const go = to => { state.step[1] = Math.max(0, Math.min(copy.steps.length, to)); draw(); };
  const chooser = el('select', { 'aria-label': 'parallel copy', onchange: event => { state.step = [Number(event.target.value), 0]; draw(); } },
    ...all.map(([copy, i]) => el('option', { value: i }, copy.edge)));
  chooser.value = String(state.step[0]);
  const now = at === 0 ? copy.start : copy.steps[at - 1].state;
  const before = at === 0 ? copy.start : at === 1 ? copy.start : copy.steps[at - 2].state;
  const ready = at < copy.steps.length ? copy.steps[at].ready : [];
  return el('div', { class: 'stepper' },
    el('div', {}, el('p', {}, chooser, ' ', el('button', { type: 'button', onclick: () => go(at - 1) }, '← back'), ' ',
      el('button', { type: 'button', id: 'step', onclick: () => go(at + 1) }, 'step →')),
      moveGraph(copy, at),
      el('p', { class: 'note' }, at < copy.steps.length ? (ready.length ? 'ready (nothing left reads it): ' + ready.join(', ')
        : 'nothing is ready: a cycle. Victim ' + copy.steps[at].from + ', its content is rescued to ' + copy.steps[at].to + '.') : 'done: as if all had moved at once')),
    el('div', {}, el('strong', {}, 'sequence'), el('ol', {}, ...copy.steps.map((step, i) => el('li', { class: i === at - 1 ? 'now' : '' },
      el('code', {}, step.text), step.note ? el('span', { class: 'note' }, ' ' + step.note) : null)))),
    el('div', {}, el('strong', {}, 'contents'), el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'place'), el('th', {}, 'holds'), el('th', {}, 'must hold'))),
      el('tbody', {}, ...Object.keys(copy.start).map(place => el('tr', { class: now[place] !== before[place] ? 'lit' : '' }, el('td', {}, el('code', {}, place)),
        el('td', {}, (now[place] === before[place] ? '' : '● ') + now[place]), el('td', {}, copy.goal[place] === undefined ? '' : copy.goal[place])))))),
    el('div', {}, el('strong', {}, 'naive order'), el('ol', {}, ...copy.naive.steps.map(text => el('li', {}, el('code', {}, text)))),
      copy.naive.wrong.length ? el('p', {}, '✗ leaves ', ...copy.naive.wrong.map(([place, got, want]) =>
        el('span', { class: 'wrong' }, place + ' = ' + got + ' instead of ' + want + ' '))) : el('p', {}, '✓ happens to be right here'),
      naiveRun()));
}
// What the whole program does if all its copies are made in the order in which they stand.
function naiveRun() {
  const table = data.tables.find(table => table.id === 'faults');
  const row = table && table.rows.find(row => row.cells[0] === 'naive-order');
  if (!row) return null;
  return el('p', { id: 'naive-run' }, 'the program ', el('span', { class: row.cells[3] ? 'wrong' : '' }, row.cells[2]), row.cells[3] ? '; correct: ' + row.cells[3] : '');
}
function moveGraph(copy, at) {
  const places = Object.keys(copy.start);
  const done = new Set(copy.steps.slice(0, at).filter(step => step.done).map(step => step.done));
  const radius = Math.max(46, places.length * 13), size = 2 * radius + 90;
  const spot = places.map((place, i) => {
    const angle = 2 * Math.PI * i / places.length - Math.PI / 2;
    return [size / 2 + radius * Math.cos(angle), size / 2 + radius * Math.sin(angle)];
  });
  const root = svg('svg', { width: size, height: size, role: 'img', 'aria-label': 'move graph' });
  for (const [dst, src] of copy.moves) {
    const from = spot[places.indexOf(src)], to = spot[places.indexOf(dst)];
    if (!from || !to) continue;
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const [ux, uy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const [a, b] = [[from[0] + ux * 18 - uy * 4, from[1] + uy * 18 + ux * 4], [to[0] - ux * 19 - uy * 4, to[1] - uy * 19 + ux * 4]];
    root.append(svg('path', { class: done.has(dst) ? 'back' : '', d: 'M' + a.join(' ') + 'L' + b.join(' ') }),
      svg('path', { class: 'tip', d: 'M' + b.join(' ') + 'L' + [b[0] - ux * 8 - uy * 4, b[1] - uy * 8 + ux * 4].join(' ') + 'L' + [b[0] - ux * 8 + uy * 4, b[1] - uy * 8 - ux * 4].join(' ') + 'Z' }));
  }
  places.forEach((place, i) => root.append(svg('text', { x: spot[i][0], y: spot[i][1] + 4, 'text-anchor': 'middle' }, place)));
  return root;
}
function ranges(chart) {
  const shown = chart.rows.slice(0, 400), row = 15, left = 110, right = 1000, height = shown.length * row + 24;
  const x = point => left + (right - left) * point / Math.max(1, chart.points);
  const root = svg('svg', { width: right + 20, height, role: 'img', 'aria-label': 'live ranges' });
  // In a long function the blocks stand too close for lines and labels.
  let free = -Infinity;
  for (const [point, name] of chart.blocks) {
    if (x(point) < free) continue;
    free = x(point) + 8 + 8 * name.length;
    root.append(svg('path', { d: 'M' + x(point) + ' 14V' + height, 'stroke-dasharray': '2 4' }), svg('text', { class: 'facts', x: x(point) + 2, y: 11, 'data-e': name }, name));
  }
  shown.forEach((range, i) => {
    const y = 20 + i * row;
    const label = svg('text', { x: 4, y: y + 11, 'data-e': range.entity }, range.name);
    root.append(label);
    for (const [from, to, place] of range.segments) {
      const slot = place.startsWith('slot') || place === 'memory';
      const width = Math.max(2, x(to) - x(from));
      const hue = [...place].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 360, 7);
      root.append(svg('rect', { x: x(from), y: y + 1, width, height: row - 3, rx: 2, fill: slot ? 'none' : 'hsl(' + hue + ' 55% 55% / .45)', stroke: 'var(--edge)', 'stroke-dasharray': slot ? '3 2' : '' },
        svg('title', {}, range.name + ' in ' + place + ', points ' + from + ' to ' + to)));
      if (width > 26) root.append(svg('text', { class: 'facts', x: x(from) + 3, y: y + 10 }, place));
    }
  });
  return el('div', {}, el('p', { class: 'note' }, 'Solid: in a register. Dashed: in a stack slot. Points count instructions twice: reads before writes.'), root,
    chart.rows.length > shown.length ? el('p', { class: 'note' }, (chart.rows.length - shown.length) + ' more ranges') : null);
}

// ---- search
let places = [], place = -1;
function markFound() {
  for (const node of document.querySelectorAll('.found')) node.classList.remove('found');
  places = []; place = -1;
  const wanted = state.find.trim();
  if (!wanted) { $('found').textContent = ''; return; }
  const low = wanted.toLowerCase();
  // Folded lines that match are unfolded first, a bounded number of them.
  let opened = 0;
  for (const column of $('columns').children) {
    const stage = stageOf(column.dataset.stage), own = stage && listing(stage, state.f);
    if (!own) continue;
    const lines = own.low = own.low || own.lines.map(line => line[2].map(part => part[1]).join('').toLowerCase());
    const hides = button => lines.slice(Number(button.dataset.from), Number(button.dataset.to)).some(line => line.includes(low));
    // What unfolds may hold folds of its own.
    for (let button; opened < 20 && (button = [...column.querySelectorAll('.fold')].find(hides)); opened++) button.click();
  }
  for (const line of document.querySelectorAll('.l')) if (line.textContent.toLowerCase().includes(low)) places.push(line);
  for (const text of document.querySelectorAll('.node text')) if (text.textContent.toLowerCase().includes(low)) places.push(text);
  for (const node of places) node.classList.add('found');
  $('found').textContent = places.length ? places.length + ' found' : 'not found';
}
function nextPlace(step) {
  if (!places.length) return;
  place = (place + step + places.length) % places.length;
  places[place].scrollIntoView({ block: 'center', inline: 'nearest' });
  $('found').textContent = (place + 1) + ' of ' + places.length;
}

// ---- events
document.addEventListener('click', event => {
  const entity = event.target.closest('[data-e]');
  if (entity) { select(entity.dataset.e); return; }
  const node = event.target.closest('svg .node');
  if (node) { select(node.dataset.block); return; }
  const line = event.target.closest('.l');
  if (line && line.dataset.n) select('line:' + line.dataset.n);
});
$('function').append(...data.functions.map(name => el('option', { value: name }, name)));
$('function').addEventListener('change', event => { state.f = event.target.value; state.sel = ''; state.step = [-1, 0]; draw(); });
$('search').addEventListener('input', event => { state.find = event.target.value; markFound(); });
$('search').addEventListener('keydown', event => {
  if (event.key === 'Enter') nextPlace(event.shiftKey ? -1 : 1);
  if (event.key === 'Escape') { event.target.value = ''; state.find = ''; markFound(); event.target.blur(); }
});
function theme(dark) {
  state.dark = dark;
  document.documentElement.classList.toggle('dark', dark);
  $('theme').textContent = dark ? 'light' : 'dark';
}
$('theme').addEventListener('click', () => theme(!state.dark));
$('help').addEventListener('click', () => $('keys').showModal());
function moveStage(step) {
  const names = changedStages().map(stage => stage.name);
  if (!names.length) return;
  const here = order(state.cur);
  const next = step > 0 ? names.find(name => order(name) > here) : [...names].reverse().find(name => order(name) < here);
  if (!next) return;
  if (!state.open.includes(next)) { state.open.push(next); state.open.sort((a, b) => order(a) - order(b)); }
  state.cur = next;
  draw();
  reveal(next);
}
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const digit = Number(event.key);
  const list = tabs();
  if (event.key === 'j') moveStage(1);
  else if (event.key === 'k') moveStage(-1);
  else if (event.key === '/') $('search').focus();
  else if (event.key === 'g' || event.key === 'd') {
    const kind = event.key === 'g' ? 'graph' : 'diff', stage = stageOf(state.cur), own = stage && listing(stage, state.f);
    if (!own || !own[kind]) return;
    state.view[state.cur] = state.view[state.cur] === kind ? 'text' : kind;
    draw();
  } else if (event.key === 'c') closeStage(state.cur);
  else if (event.key === 't') theme(!state.dark);
  else if (event.key === '?') $('keys').showModal();
  else if (event.key === 'Escape') { state.sel = ''; applySelection(); writeHash(); }
  else if (digit >= 1 && digit <= list.length) { state.tab = state.tab === list[digit - 1][0] ? '' : list[digit - 1][0]; draw(); }
  else if (state.tab === 'steps' && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
    state.step[1] = Math.max(0, state.step[1] + (event.key === 'ArrowRight' ? 1 : -1));
    const copy = data.steppers[state.step[0]];
    if (copy) state.step[1] = Math.min(state.step[1], copy.steps.length);
    draw();
  } else return;
  event.preventDefault();
});
window.addEventListener('hashchange', () => { if (!writing) { readHash(); start(); } });
function start() {
  $('function').value = state.f;
  draw();
}
$('file').textContent = data.file;
theme(matchMedia('(prefers-color-scheme: dark)').matches);
readHash();
start();
document.documentElement.dataset.ready = '1';
