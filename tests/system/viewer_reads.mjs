// SPDX-License-Identifier: Apache-2.0
// Source, instructions and labels. viewer_reads.mjs SOURCE.html MISSING.html PRIVATE.html THREADS.html DIFF.html: the first three are of one program
// (viewer.py), with its files, without them, and with a source that is not for everybody; the others are make_profile's.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { all, browser, check, click, load, open, pages, settled, tab, text } from './viewer_tab.mjs';

const [source, missing, secret, threads, diff] = pages;
const rows = () => tab.evaluate(() => [...document.querySelectorAll('#code-rows .code-row')].map(row => {
	const [self, , total, at, code] = row.children, number = cell => Number(cell.textContent.replace(' %', ''));

	return { self: number(self), total: number(total), at: at.textContent, text: code.textContent, isHottest: row.classList.contains('hottest') };
}));
const sum = (rows, key) => rows.reduce((all, row) => all + row[key], 0);
const total = () => tab.evaluate(() => viewer.tree.total[0]);

// What each label has by the profile's JSON, beside the page: { 'key=text': sum }, and '' for what has none.
function labelsOf(page) {
	const data = JSON.parse(readFileSync(path.join(path.dirname(page), 'profile.json'), 'utf8')), sums = { '': 0 };

	for (const { values, labels } of data.samples) {
		for (const [key, value, unit] of labels || []) {
			const name = `${key}=${value}${unit ? ` ${unit}` : ''}`;

			sums[name] = (sums[name] || 0) + Number(values[0]);
		}
		sums[''] += labels?.length ? 0 : Number(values[0]);
	}
	return sums;
}

await all(async () => {
	await check('the source of a frame is shown by a key, the hottest line in sight, with shares that add up', async () => {
		await open(source);
		assert.ok(await tab.isHidden('#code'));
		await click('inner');
		await tab.keyboard.press('o');
		assert.ok(await tab.isVisible('#code-rows'));
		const lines = await rows(), hottest = lines.find(({ isHottest }) => isHottest);

		assert.ok(Math.abs(sum(lines, 'self') - 100) < 1, JSON.stringify(lines));
		assert.equal(hottest.self, Math.max(...lines.map(({ self }) => self)));
		assert.match(hottest.text, /sink/);
		assert.equal(await text('code-name'), 'inner');
		assert.match(await text('code-rows'), /program\.c/);
		assert.ok(await tab.evaluate(() => {
			const holder = document.getElementById('code-rows').getBoundingClientRect(), row = document.querySelector('.hottest').getBoundingClientRect();

			return row.top >= holder.top && row.bottom <= holder.bottom;
		}));
		assert.equal(await tab.evaluate(() => document.activeElement.id), 'code-rows');
	});
	await check('a hostile source is text, and its long lines are cut', async () => {
		const lines = await rows();

		assert.ok(lines.some(({ text }) => text.includes('</script><img src=x onerror=alert(1)> ?[2J ')), JSON.stringify(lines));
		assert.ok(lines.some(({ text }) => text.includes('xxxx')));
		assert.ok(lines.every(({ text }) => text.length <= 420));
		assert.equal(await tab.locator('#code-rows img, #code-rows script').count(), 0);
		assert.ok(readFileSync(source).length < 1 << 20);
	});
	await check('the instructions are a tab away, by keys, and are the function\'s', async () => {
		await tab.focus('#tab-source');
		await tab.keyboard.press('ArrowRight');
		assert.equal(await tab.getAttribute('#tab-instructions', 'aria-selected'), 'true');
		assert.equal(await tab.evaluate(() => document.activeElement.id), 'tab-instructions');
		const code = (await rows()).filter(({ at }) => at);

		assert.ok(code.length > 4 && code.every(({ at }) => /^[0-9a-f]+$/.test(at)), JSON.stringify(code));
		assert.ok(Math.abs(sum(code, 'self') - 100) < 1, JSON.stringify(code));
		assert.ok(code.some(({ text }) => text.startsWith('mov')));
	});
	await check('another frame, another source; of one that took nothing by itself it is said', async () => {
		await tab.click('#tab-source');
		await click('main');
		assert.match(await text('code-rows'), /none of them/);
		await tab.click('#tab-sandwich');
		await settled();
		await tab.evaluate(() => viewer.sandwich(viewer.profile.frameName.indexOf('inner')));
		assert.equal(await text('code-name'), 'inner');
		await tab.click('#tab-graph');
	});
	await check('it is closed by key, Escape and button, the focus goes back, and the hash has it', async () => {
		await click('inner');
		for (const close of [() => tab.keyboard.press('o'), () => tab.keyboard.press('Escape'), () => tab.click('#code-close')]) {
			if (await tab.isHidden('#code'))
				await tab.keyboard.press('o');
			await tab.focus('#code-rows');
			await close();
			assert.ok(await tab.isHidden('#code'));
			assert.ok(await tab.evaluate(() => document.activeElement === viewer.graph.scroller));
			assert.equal(await tab.evaluate(() => viewer.tree.name(viewer.graph.painter.selected)), 'inner');
		}
		await tab.click('#details-code');
		await tab.click('#tab-instructions');
		await tab.waitForFunction(() => location.hash.includes('s=instructions'));
		const other = await browser.newPage();

		await load(tab.url(), other);
		await other.waitForFunction(() => document.querySelectorAll('#code-rows .code-row').length > 4);
		assert.equal(await other.getAttribute('#tab-instructions', 'aria-selected'), 'true');
		await load(`${pathToFileURL(source).href}#s=__proto__`, other);
		await other.waitForFunction(() => viewer.tree && document.getElementById('code').hidden);
		await other.close();
	});
	await check('it has room on a wide window and on a phone, which scrolls down only', async () => {
		for (const [width, height] of [[1440, 900], [400, 800]]) {
			await tab.setViewportSize({ width, height });
			await open(source);
			await tab.evaluate(() => viewer.showFunction({ frame: viewer.profile.frameName.indexOf('inner') }));
			await tab.keyboard.press('o');
			await settled();
			assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
			assert.ok(await tab.evaluate(() => {
				const { top, bottom } = document.querySelector('.hottest').getBoundingClientRect();

				return top >= 0 && bottom <= document.querySelector('footer').getBoundingClientRect().top;
			}), `${width}`);
			assert.ok(await tab.evaluate(() => viewer.graph.painter.height > 200), `${width}`);
		}
		await tab.setViewportSize({ width: 1280, height: 720 });
	});
	await check('what is not here is said in one line', async () => {
		await open(missing);
		await click('inner');
		await tab.keyboard.press('o');
		assert.match(await text('code-rows'), /program\.c: not here \(No such file or directory\)/);
		await tab.click('#tab-instructions');
		assert.match(await text('code-rows'), /No instructions: No such file/);
		await open(secret);
		await click('inner');
		await tab.click('#details-code');
		assert.match(await text('code-rows'), /program\.c: not here \(it is not for everybody to read\)/);
		assert.ok(!readFileSync(secret, 'utf8').includes('onerror'));
		await open(threads);
		await tab.click('#details-code');
		assert.match(await text('code-rows'), /Select a function/);
		await click('worker 2');
		assert.match(await text('code-rows'), /written without source: sonde puts it in with --source 3/);
		await tab.click('#details-code');
	});
	await check('labels are listed with their sums, by a key, and searched', async () => {
		const expected = labelsOf(threads);

		await open(threads);
		assert.equal(await tab.evaluate(() => viewer.profile.values[0].reduce((a, b) => a + b)), 24);
		await tab.keyboard.press('l');
		assert.equal(await tab.evaluate(() => document.activeElement.id), 'label-find');
		const sums = await tab.evaluate(() => Object.fromEntries(viewer.profile.labels.map((label, i) => [label, viewer.labels.sums[i]])));

		delete expected[''];
		assert.deepEqual(sums, expected);
		assert.ok(Object.keys(sums).length > 3);
		assert.equal(await tab.locator('#label-list b').count(), 0); // one is markup
		await tab.fill('#label-find', 'orders');
		assert.deepEqual(await tab.locator('#label-list .what').allTextContents(), ['route;"path"=/orders/{id}']);
		assert.equal(await tab.locator('#label-list .percent').textContent(), `${(100 * expected['route;"path"=/orders/{id}'] / 24).toFixed(1)} %`);
	});
	await check('a label\'s samples alone, or without them: everywhere, in the URL, and taken back', async () => {
		const label = 'route;"path"=/orders/{id}', wanted = labelsOf(threads)[label];
		const everywhere = () => tab.evaluate(() => ({
			graph: viewer.tree.total[0], self: viewer.tree.functions().reduce((all, row) => all + row.self, 0), strips: viewer.timeline.strips.reduce((all, strip) => all + strip.sum, 0),
		}));

		for (const [button, left] of [['Only', wanted], ['Without', 24 - wanted]]) {
			await tab.getByRole('button', { name: `${button} ${label}`, exact: true }).click();
			assert.deepEqual(await everywhere(), { graph: left, self: left, strips: left });
			assert.match(await text('shown-text'), new RegExp(`^Shown: ${left} samples of 24 samples`));
			assert.equal(await text('chips'), `${button === 'Only' ? 'only with' : 'without'} ${label}`);
			await tab.waitForFunction(() => location.hash.includes('-label-'));
			const other = await browser.newPage();

			await load(tab.url(), other);
			await other.waitForFunction(left => viewer.tree.total[0] === left, left);
			await other.close();
			await tab.locator('#chips button').click();
			assert.equal(await total(), 24);
			await tab.keyboard.press('l');
		}
		await tab.keyboard.press('Escape');
		assert.ok(await tab.isHidden('#label-find'));
		for (const hash of ['c=merge-label-0', 'c=focus-label-999', 'c=hide-label-x']) {
			await load(`${pathToFileURL(threads).href}#${hash}`);
			await tab.waitForFunction(() => viewer.tree && !viewer.chips.length && viewer.tree.total[0] === 24);
		}
		await open(diff);
		assert.ok(await tab.isHidden('#labels'));
	});
});
