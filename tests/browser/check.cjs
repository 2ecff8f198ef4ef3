// Drives the explorer's page in headless Chromium: node check.cjs CHROMIUM FOLDER, with the pages in FOLDER. Prints a line for
// each check and ends with status 1 if one fails. Called by tests/explore.rs, which says where playwright-core is.
'use strict';
const path = require('path');
const { chromium } = require('playwright-core');

const [executablePath, folder] = process.argv.slice(2);
const failures = [];
function check(what, holds) {
  console.log((holds ? 'ok ' : 'FAILED ') + what);
  if (!holds) failures.push(what);
}

async function main() {
  const browser = await chromium.launch({
    executablePath, headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  const open = async (name, hash = '') => {
    const page = await context.newPage();
    const seen = { errors: [], requests: [] };
    page.on('console', message => { if (['error', 'warning'].includes(message.type())) seen.errors.push(message.text()); });
    page.on('pageerror', error => seen.errors.push(String(error)));
    page.on('dialog', dialog => { seen.errors.push('dialog ' + dialog.message()); dialog.dismiss(); });
    page.on('request', request => { if (!request.url().startsWith('file:')) seen.requests.push(request.url()); });
    const start = Date.now();
    await page.goto('file://' + path.join(folder, name) + hash);
    await page.waitForSelector('html[data-ready]', { state: 'attached', timeout: 20000 });
    return { page, seen, millis: Date.now() - start };
  };
  const columns = page => page.$$eval('.column', nodes => nodes.map(node => node.dataset.stage));

  // swap: what a first visitor sees and does.
  const { page, seen } = await open('swap.html');
  check('opens with the source and the stages around SSA', (await columns(page)).join() === 'source,cfg,ssa,sequence,regalloc');
  check('shows the source', (await page.textContent('.column[data-stage="source"]')).includes('x = y;'));

  // Follow x's φ: lit in SSA, out of SSA and in machine code, by mark and not by colour alone.
  await page.click('.column[data-stage="ssa"] [data-e]:text-is("%5") >> nth=0');
  const litIn = stage => page.$$eval('.column[data-stage="' + stage + '"] [data-e].lit', nodes => nodes.map(node => node.textContent));
  check('a clicked value is lit in its stage', (await litIn('ssa')).includes('%5'));
  check('and out of SSA form', (await litIn('sequence')).includes('%5'));
  check('and its copy is lit in the machine code', await page.$$eval('.column[data-stage="regalloc"] .l.lit', nodes => nodes.length > 0));
  check('by an underline too', await page.$eval('.column[data-stage="ssa"] [data-e].lit', node => getComputedStyle(node).textDecorationLine === 'underline'));
  check('the address keeps it', page.url().includes('sel=v5'));
  check('the selection is named', (await page.textContent('#selection')).includes('%5 (x)'));
  await page.keyboard.press('Escape');
  check('Escape clears it', await page.$$eval('.lit', nodes => nodes.length === 0));

  // What is unfolded or scrolled stays so when another stage opens.
  await page.$eval('.column[data-stage="ssa"]', node => { node.dataset.mine = '1'; });
  await page.click('#rail [data-stage="parallel-copies"]');
  check('another stage opens', (await columns(page)).includes('parallel-copies'));
  check('and the others stay as they are', (await page.$eval('.column[data-stage="ssa"]', node => node.dataset.mine)) === '1');
  check('but for which is current', await page.$eval('.column[data-stage="parallel-copies"]', node => node.classList.contains('current')));
  await page.click('.column[data-stage="parallel-copies"] button[aria-label="close parallel-copies"]');

  // A source line lights up what came from it in every open stage.
  await page.click('.column[data-stage="source"] .l[data-n="9"]');
  for (const stage of ['cfg', 'ssa', 'sequence', 'regalloc']) {
    check('line 9 is lit in ' + stage, await page.$$eval('.column[data-stage="' + stage + '"] .l.lit', nodes => nodes.length > 0));
  }
  await page.keyboard.press('Escape');

  // Keys: next changed stage, graph, difference, search.
  await page.click('.column[data-stage="cfg"] .head h2');
  await page.keyboard.press('j');
  check('j goes to the next changed stage', (await page.$eval('.column.current', node => node.dataset.stage)) === 'ssa');
  await page.keyboard.press('k');
  check('k goes back', (await page.$eval('.column.current', node => node.dataset.stage)) === 'cfg');
  await page.keyboard.press('j');
  await page.keyboard.press('d');
  check('d shows the difference', (await page.$$eval('.column[data-stage="ssa"] .l.add', nodes => nodes.length)) >= 3);
  await page.keyboard.press('d');
  await page.keyboard.press('g');
  const blocks = await page.$$eval('.column[data-stage="ssa"] svg .node', nodes => nodes.map(node => node.dataset.block));
  check('g draws the graph', blocks.join() === 'b0,b1,b2,b3');
  check('with a back edge', (await page.$$('.column[data-stage="ssa"] svg path.back')).length === 1);
  await page.selectOption('.column[data-stage="ssa"] select', 'dominators');
  check('with the dominator overlay', (await page.textContent('.column[data-stage="ssa"] svg')).includes('idom b1'));
  await page.click('.column[data-stage="ssa"] svg .node[data-block="b2"] rect.box');
  check('a block clicked in the graph is lit in the text of another stage',
    (await page.$$eval('.column[data-stage="sequence"] [data-e="b2"].lit', nodes => nodes.length)) > 0);
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('/');
  await page.keyboard.type('while.body');
  check('search finds', (await page.textContent('#found')).includes('found') && (await page.$$('.found')).length >= 2);
  await page.keyboard.press('Enter');
  check('Enter goes to a place', /^1 of \d+$/.test(await page.textContent('#found')));
  await page.keyboard.press('Escape');

  // The tables and the stepper.
  await page.keyboard.press('1');
  check('the ledger has a surviving copy with its witness', (await page.textContent('#pane')).includes('are both live at'));
  await page.click('#pane tbody tr >> nth=0');
  check('a row lights up what it names', (await page.$$('.column .lit')).length > 0);
  await page.keyboard.press('Escape');
  await page.keyboard.press('2');
  check('the hazard report names the cycle', (await page.textContent('#pane')).includes('trade values'));
  await page.keyboard.press('3');
  check('the faults say what would be printed', (await page.textContent('#pane')).includes('would print `2`prints `1`'));
  check('and where it goes wrong', (await page.textContent('#pane')).includes('b2 of main: %6 is 2, not 1'));
  await page.keyboard.press('4');
  const place = async name => page.$$eval('#pane tbody tr', (rows, name) => {
    const row = rows.find(row => row.cells[0].textContent.startsWith(name));
    return row ? row.cells[1].textContent : '';
  }, name);
  check('before the first step x holds x', (await place('%5:x')).endsWith('%5:x'));
  for (let step = 0; step < 4; step++) await page.keyboard.press('ArrowRight');
  check('after the last step x holds y', (await place('%5:x')).endsWith('%6:y'));
  check('and y holds x', (await place('%6:y')).endsWith('%5:x'));
  check('the naive order is shown to be wrong', (await page.textContent('#pane')).includes('instead of'));
  await page.keyboard.press('ArrowLeft');
  check('back undoes the last step', (await place('%6:y')).endsWith('%6:y'));
  check('and what the program would print', (await page.textContent('#naive-run')).includes('would print `2`; correct: prints `1`'));
  await page.keyboard.press('5');
  check('the live ranges name registers', (await page.textContent('#pane svg')).includes('v5 x'));
  const hash = page.url().slice(page.url().indexOf('#'));

  // Dark mode.
  const back = () => page.$eval('body', node => getComputedStyle(node).backgroundColor);
  const light = await back();
  await page.keyboard.press('t');
  check('t makes it dark', (await back()) !== light);
  check('no errors on the console', seen.errors.length === 0);
  check('no requests', seen.requests.length === 0);
  if (seen.errors.length) console.log(seen.errors.join('\n'));
  await page.close();

  // The address brings the same view back.
  const again = await open('swap.html', hash);
  check('the address brings the view back', (await again.page.getAttribute('#tab-ranges', 'aria-selected')) === 'true');
  await again.page.close();

  // A source that tries to break out.
  const hostile = await open('hostile.html');
  check('hostile text is shown as it is', (await hostile.page.textContent('.column[data-stage="source"]')).includes('</script><script>alert(1)</script>'));
  check('and does nothing', hostile.seen.errors.length === 0 && hostile.seen.requests.length === 0);
  await hostile.page.close();

  // Several functions.
  const many = await open('functions.html');
  const names = await many.page.$$eval('#function option', nodes => nodes.map(node => node.value));
  check('the chooser has the functions, the body first', names[0] === 'main' && names.length > 1);
  await many.page.selectOption('#function', names[1]);
  check('choosing a function shows it', (await many.page.textContent('.column[data-stage="ssa"]')).includes('fn ' + names[1]));
  check('no errors with several functions', many.seen.errors.length === 0);
  await many.page.close();

  // The largest of the measured programs.
  const bench = await open('fannkuch.html');
  check('a measured program opens within 2 s (' + bench.millis + ' ms)', bench.millis < 2000);
  await bench.page.close();

  // A function of 5,000 lines folds and stays quick.
  const large = await open('large.html');
  check('a large function opens within 8 s (' + large.millis + ' ms)', large.millis < 8000);
  const folded = await large.page.$$('.column[data-stage="ssa"] .fold');
  check('and is folded', folded.length > 0);
  let start = Date.now();
  await folded[0].click();
  await large.page.waitForFunction(() => true);
  check('unfolding is quick', Date.now() - start < 2000);
  start = Date.now();
  await large.page.keyboard.press('j');
  await large.page.waitForFunction(() => true);
  const next = Date.now() - start;
  check('the next stage is quick (' + next + ' ms)', next < 4000);
  check('no errors in a large function', large.seen.errors.length === 0);
  await browser.close();
}

main().then(() => process.exit(failures.length ? 1 : 0), error => { console.error(error); process.exit(1); });
