// Opens every HTML report of a directory in headless Chromium and uses it: searching, sorting, paging, the map by
// keyboard and mouse, light and dark. Any console message, error, request or change of the title fails.
//   usage: node formats-browser.mjs DIRECTORY [SCREENSHOTS]      CHROMIUM=/usr/bin/chromium
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createRequire } from 'node:module';

// The library lies with the other tools, not beside this file.
const require = createRequire(join(process.cwd(), 'x.js'));
const puppeteer = require('puppeteer-core');

const directory = resolve(process.argv[2]);
const screenshots = process.argv[3] && resolve(process.argv[3]);
const profile = mkdtempSync(join(tmpdir(), 'formats-'));
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  userDataDir: profile,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

const text = (page, selector) => page.$eval(selector, (node) => node.textContent);

async function use(page, name) {
  const cells = await page.$$eval('[id^=map-] svg', (all) => all.length);
  if (await page.$('#units-0')) {
    const status = '#units-0 [role=status]';
    const total = await text(page, status);
    // What matches nothing shows nothing; what is cleared is all back.
    await page.type('#units-0 input', 'no such unit anywhere');
    assert.match(await text(page, status), /^none of /, name);
    assert.equal((await page.$$('#units-0 tbody tr')).length, 0);
    await page.$eval('#units-0 input', (node) => { node.value = ''; node.dispatchEvent(new Event('input')); });
    assert.equal(await text(page, status), total);
    // Sorting by bytes, descending first.
    await (await page.$$('#units-0 thead button'))[2].click();
    const bytes = await page.$$eval('#units-0 tbody td.n', (all) => all.map((n) => Number(n.textContent.replaceAll(',', ''))));
    assert.deepEqual(bytes, [...bytes].sort((a, b) => b - a), name);
    assert.equal(await page.$eval('#units-0 th:nth-child(3)', (node) => node.ariaSort), 'descending');
    // A level leaves its rows only.
    const level = await page.$eval('#units-0 option:last-child', (node) => node.value);
    await page.select('#units-0 select', level);
    const shown = await page.$$eval('#units-0 tbody td:nth-child(2)', (all) => all.map((n) => n.textContent));
    assert.ok(shown.length > 0 && shown.every((word) => word === level), name);
    await page.select('#units-0 select', '');
    const next = (await page.$$('#units-0 .pages button'))[1];
    if (await next.evaluate((node) => !node.disabled)) {
      await next.click();
      assert.match(await text(page, status), /; 201 to /, name);
    }
  }
  if (cells > 0) {
    // By keyboard: to the lowest level, to a neighbour, and into the table.
    await page.focus('#map-0');
    await page.keyboard.press('Home');
    const first = await text(page, '.said');
    assert.match(first, / bytes$/, name);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    assert.match(await text(page, '.said'), / bytes$/, name);
    await page.keyboard.press('Home');
    assert.equal(await text(page, '.said'), first);
    await page.keyboard.press('Enter');
    assert.match(await text(page, '#units-0 [role=status]'), / match; 1 to /, name);
    // By mouse.
    const map = await page.$('#map-0 svg');
    await map.scrollIntoView();
    const box = await map.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    assert.match(await text(page, '.said'), / bytes$/, name);
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  }
  if (await page.$('#modules-0')) {
    await page.type('#modules-0 input', 'gzip');
    const found = await page.$$eval('#modules-0 tbody tr:not([hidden])', (all) => all.map((n) => n.textContent));
    assert.ok(name.startsWith('nasty') || (found.length === 1 && found[0].includes('gzip_static')), name);
  }
}

let failed = 0;
const files = readdirSync(directory).filter((file) => file.endsWith('.html')).sort();
assert.ok(files.length > 0, 'no HTML reports');
for (const file of files) {
  for (const theme of ['light', 'dark']) {
    const page = await browser.newPage();
    const said = [];
    page.on('console', (message) => said.push(`console ${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => said.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => { said.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on('request', (request) => {
      if (!request.url().startsWith('file:') || !request.url().includes(directory)) said.push(`request: ${request.url()}`);
    });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    await page.setViewport({ width: 1300, height: 1400 });
    const start = Date.now();
    try {
      await page.goto(`file://${directory}/${file}`);
      const title = await page.title();
      assert.match(title, /flagaudit$/, file);
      const loaded = Date.now() - start;
      if (theme === 'light') await use(page, file);
      assert.equal(await page.title(), title, `${file}: the title changed`);
      assert.equal(await page.evaluate(() => document.querySelectorAll('script').length), 2, `${file}: scripts`);
      assert.equal(await page.evaluate(() => document.querySelectorAll('img, iframe, object, embed, form').length), 0, file);
      assert.deepEqual(said, [], file);
      console.log(`${file} ${theme}: loaded in ${loaded} ms, used in ${Date.now() - start - loaded} ms`);
    } catch (error) {
      failed += 1;
      console.error(`${file} ${theme}: ${error.message}`, said);
    }
    if (screenshots) {
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: join(screenshots, `${file}.${theme}.png`) });
    }
    await page.close();
  }
}
await browser.close();
rmSync(profile, { recursive: true, force: true });
process.exitCode = failed > 0 ? 1 : 0;
