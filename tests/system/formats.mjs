// SPDX-License-Identifier: Apache-2.0
// Our files in Chromium: formats.mjs RELEASE SVG... -- FILE=TITLE... where RELEASE is speedscope's own page. One line per check; ends at the first that fails.
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.env.SONDE_NODE_PATH, 'package.json'));
const { chromium } = require('playwright-core');
const [release, ...rest] = process.argv.slice(2);
const svgs = rest.slice(0, rest.indexOf('--')), files = rest.slice(rest.indexOf('--') + 1);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });

try {
	for (const svg of svgs) {
		const page = await browser.newPage();
		const asked = [];
		page.on('request', (request) => asked.push(request.url()));
		await page.goto('file://' + svg, { timeout: 90000 });
		const wide = await page.evaluate(() => [...document.querySelectorAll('g')].filter((g) => g.querySelector('text') &&
			g.querySelector('text').getBBox().width > g.querySelector('rect').getBBox().width).map((g) => g.querySelector('text').textContent));
		assert.deepEqual(wide, [], 'texts that leave their frames');
		assert.equal(asked.length, 1, 'it asks for nothing else: ' + asked);
		const named = await page.evaluate(() => [...document.querySelectorAll('g')].every((g) => g.firstElementChild.tagName === 'title'));
		assert.ok(named, 'every frame has a title');
		console.log('svg: ' + path.basename(path.dirname(svg)));
		await page.close();
	}
	for (const [i, argument] of files.entries()) {
		const [file, title] = [argument.slice(0, argument.indexOf('=')), argument.slice(argument.indexOf('=') + 1)];
		const script = path.join(path.dirname(file), `load${i}.js`), errors = [];
		const page = await browser.newPage();

		writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, ${JSON.stringify(readFileSync(file).toString('base64'))})`);
		page.on('pageerror', (error) => errors.push(error.message));
		page.on('dialog', (dialog) => { errors.push(dialog.message()); dialog.dismiss(); });
		await page.goto(`file://${release}/index.html#localProfilePath=${script}`, { timeout: 90000 });
		await page.waitForFunction((text) => document.body.innerText.includes(text), title, { timeout: 90000 })
			.catch(async () => assert.fail(`${file}: no ${title} but ${await page.innerText('body')} ${errors}`));
		assert.deepEqual(errors, []);
		console.log('speedscope: ' + file);
		await page.close();
	}
} finally {
	await browser.close();
}
