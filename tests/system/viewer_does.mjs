// SPDX-License-Identifier: Apache-2.0
// Every control, with the mouse and with keys. viewer_does.mjs SMALL.html TIMED.html DIFF.html, which are make_profile's.
import { strict as assert } from 'node:assert';
import { all, browser, check, click, colour, open, pages, place, selected, settled, tab, text, zoomed } from './viewer_tab.mjs';

const [small, timed, diff] = pages;
const press = async (...keys) => {
	for (const key of keys)
		await tab.keyboard.press(key);
	await settled();
};
// Back is the browser's: it takes a moment.
const comesBackTo = name => tab.waitForFunction(name => viewer.graph.tree.name(viewer.graph.painter.zoomed) === name, name);
const total = () => tab.evaluate(() => viewer.tree.total[0]);
const inSight = () => tab.evaluate(() => [viewer.graph.painter.from, viewer.graph.painter.to]);

await all(async () => {
	await open(small);
	await check('a click zooms; Back, Backspace, Reset, Escape and a double click lead back', async () => {
		for (const back of [() => tab.click('#reset'), () => press('Escape'), () => tab.click('#back'), async () => {
			await tab.focus('#graph .scroller');
			await press('Backspace');
		}, async () => {
			const { x, y } = await place('worker');

			await tab.mouse.dblclick(x, y);
		}]) {
			await click('load');
			assert.equal(await zoomed(), 'load');
			assert.equal(await text('details-name'), 'load');
			assert.match(await text('details-text'), /^10 samples, 7\.8 %.*native.*\/usr\/bin\/worker/);
			await back();
			await comesBackTo('all');
			await settled();
		}
		assert.ok(await tab.isDisabled('#reset'));
	});
	await check('a zoomed frame fills the width; the way back has all steps', async () => {
		await click('worker');
		const outer = await inSight();

		await click('load');
		const [from, to] = await inSight();

		assert.equal(to - from, 10);
		await tab.click('#back');
		await comesBackTo('worker');
		assert.deepEqual(await inSight(), outer);
		await tab.click('#back');
		await comesBackTo('all');
	});
	await check('Ctrl and the wheel scale where the pointer is, a drag and Shift with an arrow move, + and - scale', async () => {
		const { x: middle, y } = await place('gopher'), x = Math.round(middle); // a wheel's place is a whole pixel
		const under = () => tab.evaluate(x => viewer.graph.painter.placeAt(x - viewer.graph.canvas.getBoundingClientRect().left), x);
		const before = await under();

		await tab.mouse.move(x, y);
		await tab.keyboard.down('Control');
		await tab.mouse.wheel(0, -50);
		await tab.keyboard.up('Control');
		await tab.waitForFunction(() => viewer.graph.painter.to - viewer.graph.painter.from < 128);
		assert.ok(Math.abs(await under() - before) < 0.01);
		const [from] = await inSight();

		await tab.mouse.down();
		await tab.mouse.move(x + 100, y, { steps: 4 });
		await tab.mouse.up();
		assert.ok((await inSight())[0] < from - 1);
		assert.equal(await zoomed(), 'all'); // a drag is no click
		await tab.focus('#graph .scroller');
		await press('Shift+ArrowRight');
		const moved = await inSight();

		await press('+');
		assert.ok((await inSight())[1] - (await inSight())[0] < (moved[1] - moved[0]) * 0.6);
		await press('-', '-', '-', '-');
		assert.deepEqual(await inSight(), [0, 128]);
	});
	await check('search marks what matches and tells its share, nested matches once', async () => {
		const before = await colour('kthread');

		await press('/');
		await tab.keyboard.type('KTHREAD');
		assert.equal(await text('matched'), '2 places: 6 samples, 4.7 %, 122 ms');
		await settled();
		assert.notEqual(await colour('kthread'), before);
		await tab.fill('#search', 'missed kernel');
		assert.match(await text('matched'), /^2 places: 2 samples/);
		await tab.fill('#search', '^(recurse|kthread)');
		assert.equal(await text('matched'), 'nothing found');
		await tab.click('#pattern');
		assert.equal(await tab.getAttribute('#pattern', 'aria-pressed'), 'true');
		assert.equal(await text('matched'), '3 places: 12 samples, 9.4 %, 245 ms');
		await tab.fill('#search', '(');
		assert.match(await text('matched'), /not a regular expression/);
		await tab.focus('#search');
		await press('Escape');
		assert.equal(await tab.inputValue('#search'), '');
		assert.equal(await text('matched'), '');
		await settled();
		assert.equal(await colour('kthread'), before);
		await tab.click('#pattern');
	});
	await check('next and previous walk the matches, round and round', async () => {
		await tab.fill('#search', 'kthread');
		const nodes = await tab.evaluate(() => viewer.search.nodes), at = () => tab.evaluate(() => viewer.graph.painter.selected);

		await tab.click('#next');
		assert.equal(await at(), nodes[0]);
		assert.match(await text('matched'), /^1 of 2 places/);
		await tab.focus('#search');
		await press('Enter');
		assert.equal(await at(), nodes[1]);
		await tab.focus('#graph .scroller');
		await press('n');
		assert.equal(await at(), nodes[0]);
		await press('N');
		assert.equal(await at(), nodes[1]);
		await tab.click('#previous');
		assert.equal(await at(), nodes[0]);
		await tab.fill('#search', '');
		await press('Escape');
	});
	await check('the keyboard alone gets everywhere, and a screen reader hears it', async () => {
		const step = async (key, want) => {
			await press(key);
			assert.equal(await selected(), want, key);
			const item = tab.locator(`#${await tab.getAttribute('#graph [role=tree]', 'aria-activedescendant')}`);

			assert.ok((await item.textContent()).startsWith(`${want}, `), await item.textContent());
			assert.equal(await item.getAttribute('role'), 'treeitem');
			assert.equal(await item.getAttribute('aria-selected'), 'true');
		};

		await tab.focus('#graph .scroller');
		await step('ArrowUp', 'all');
		await step('ArrowUp', 'worker');
		await step('ArrowUp', '_start');
		await step('ArrowRight', 'main');
		await step('ArrowUp', 'load');
		await step('Enter', 'load');
		assert.equal(await zoomed(), 'load');
		await step('ArrowDown', 'main');
		await step('Home', 'load');
		await press('Escape', 'i');
		assert.equal(await zoomed(), 'all');
		assert.equal(await text('flip'), 'Flame');
		await step('ArrowDown', 'all');
		await step('ArrowDown', 'worker');
		await tab.click('#flip');
		assert.equal(await text('flip'), 'Icicle');
		await tab.keyboard.press('?');
		assert.ok(await tab.isVisible('#help'));
		await tab.keyboard.press('Escape');
		assert.ok(await tab.isHidden('#help'));
	});
	await check('everything that can be clicked can be reached by Tab and has a name', async () => {
		const nameless = await tab.evaluate(() => [...document.querySelectorAll('button, input, select, summary, [tabindex], [role=tree], [role=slider]')]
			.filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels && one.labels[0])).map(one => one.outerHTML));

		assert.deepEqual(nameless, []);
		assert.equal(await tab.evaluate(() => [...document.querySelectorAll('canvas')].filter(one => one.getAttribute('aria-hidden') !== 'true').length), 0);
	});
	await check('the sandwich has the callers over and the callees under a function, both as wide as its total', async () => {
		await click('main');
		await tab.click('#details-sandwich');
		assert.equal(await text('sandwich-name'), 'main');
		assert.match(await text('sandwich-sums'), /^self 0 samples.*total 58 samples/);
		assert.deepEqual(await tab.evaluate(() => [viewer.callers.tree.total[0], viewer.callees.tree.total[0]]), [58, 58]);
		assert.deepEqual(await tab.evaluate(() => [viewer.callers, viewer.callees].map(({ tree }) => tree.children(0).map(node => `${tree.name(node)} ${tree.total[node]}`))),
			[['__libc_start_main 48', 'worker 10'], ['work 48', 'load 10']]);
		await click('load', 'callees');
		assert.equal(await zoomed('callees'), 'load');
		await press('s');
		assert.equal(await text('sandwich-name'), 'load');
		await tab.click('#tab-graph');
	});
	await check('a function that calls itself counts once', async () => {
		const sums = await tab.evaluate(() => functionsOf(viewer.tree).filter(row => viewer.profile.frameName[row.frame] === 'recurse(int)').map(({ self, total }) => [self, total]));

		assert.deepEqual(sums, [[6, 6]]);
		assert.deepEqual(await tab.evaluate(() => {
			const frame = viewer.profile.frameName.indexOf('recurse(int)');

			return [callersOf(viewer.tree, frame).total[0], calleesOf(viewer.tree, frame).total[0]];
		}), [6, 6]);
	});
	await check('the table sorts, is searched, and leads to the graph', async () => {
		const column = key => tab.locator(`#table tbody .col-${key}`).allInnerTexts(), number = cell => Number(cell.match(/([\d,]+)$/)[1].replace(',', ''));
		const sorted = (cells, sign) => cells.every((cell, i) => !i || sign * (number(cells[i - 1]) - number(cell)) >= 0);

		await press('3');
		assert.ok(sorted(await column('self'), 1));
		await tab.click('#table .col-total button');
		assert.ok(sorted(await column('total'), 1));
		assert.equal(await tab.getAttribute('#table th.col-total', 'aria-sort'), 'descending');
		await tab.click('#table .col-total button');
		assert.ok(sorted(await column('total'), -1));
		await tab.click('#table .col-name button');
		const names = await column('name');

		assert.deepEqual(names, names.slice().sort());
		assert.equal((await tab.evaluate(() => viewer.table.all.reduce((sum, row) => sum + row.self, 0))), 126); // two samples have no stack
		await tab.fill('#search', 'vfs_');
		assert.deepEqual(await column('name'), ['vfs_read']);
		await tab.focus('#table');
		await press('Enter');
		assert.equal(await selected(), 'vfs_read');
		assert.ok(await tab.isVisible('#view-graph') && await tab.isHidden('#view-table'));
		await press('3');
		await tab.fill('#search', '');
		await tab.focus('#table');
		await press('Home', 'ArrowDown', 's');
		assert.equal(await text('sandwich-name'), names[1]);
		await press('1');
	});
	await check('processes and threads are filtered, and what is left is said', async () => {
		await tab.click('#processes summary');
		await tab.fill('#process-find', 'worker');
		await tab.click('#process-none');
		assert.equal(await total(), 128 - 62 - 6);
		assert.match(await text('shown-text'), /^Shown: 60 samples of 128 samples, 46\.9 %/);
		await tab.fill('#process-find', '101');
		await tab.locator('#process-list ul label', { hasText: '101' }).click();
		assert.equal(await total(), 60 + 14);
		assert.equal(await tab.evaluate(() => [...document.querySelectorAll('#process-list input')].some(box => box.indeterminate)), true);
		await tab.keyboard.press('Escape');
		assert.equal(await tab.getAttribute('#processes', 'open'), null);
		await tab.click('#clear');
		assert.equal(await total(), 128);
		assert.ok(await tab.isHidden('#shown'));
	});
	await check('frames of a kind can be left out; their time is their callers\'', async () => {
		await tab.click('#legend [data-kind=kernel]');
		assert.equal(await total(), 128);
		assert.equal(await tab.evaluate(() => Array.from(viewer.tree.frame).some(frame => viewer.profile.kinds[viewer.profile.frameKind[frame]] === 'kernel')), false);
		assert.equal(await tab.evaluate(() => functionsOf(viewer.tree).find(row => viewer.profile.frameName[row.frame] === '__read').self), 9);
		assert.equal(await tab.getAttribute('#legend [data-kind=kernel]', 'aria-pressed'), 'false');
		await tab.click('#legend [data-kind=process]');
		assert.equal(await tab.evaluate(() => viewer.tree.children(0).filter(node => viewer.tree.name(node) === '_start').length), 1); // processes are merged
		await tab.focus('#graph .scroller');
		await press('x');
		assert.ok(await tab.isHidden('#shown'));
	});
	await check('what is shown is copied as folded stacks', async () => {
		await browser.grantPermissions(['clipboard-read', 'clipboard-write']);
		await click('load');
		await tab.click('#copy');
		await tab.waitForFunction(() => document.getElementById('said').textContent.includes('line'));
		const lines = (await tab.evaluate(() => navigator.clipboard.readText())).trim().split('\n');

		assert.deepEqual(lines, ['worker;main;load;__read;[Missed Kernel Stack] 1',
			'worker;main;load;__read;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;copy_user_generic 9']);
		await press('Escape');
		const all = await tab.evaluate(() => viewer.tree.folded());

		assert.equal(all.trim().split('\n').reduce((sum, line) => sum + Number(line.match(/ (\d+)$/)[1]), 0), 128);
		assert.ok(all.includes('a:b'));
	});
	await check('the time line is there when there are times, and a range is followed', async () => {
		assert.ok(await tab.isHidden('#timeline'));
		await open(timed);
		const box = await tab.locator('#timeline canvas').boundingBox(), x = second => box.x + 150 + second / 10 * (box.width - 150);

		assert.equal(await total(), 1980);
		await tab.mouse.move(x(5), box.y + 5);
		await tab.mouse.down();
		await tab.mouse.move(x(9), box.y + 5, { steps: 3 });
		await tab.mouse.up();
		await tab.waitForFunction(() => {
			const { time } = viewer.profile, [from, to] = viewer.timeline.range || [0, 0];

			return to > 8.9e6 && viewer.tree.total[0] === time.filter(us => us >= from && us < to).length;
		});
		assert.ok(await total() > 400 && await total() < 900, String(await total()));
		assert.equal(await tab.evaluate(() => viewer.tree.children(0).some(node => viewer.tree.name(node) === 'python3')), false); // works before only
		const [from, to] = (await text('range')).match(/[\d.]+/g).map(Number);

		assert.ok(Math.abs(from - 5) < 0.1 && Math.abs(to - 9) < 0.1, `${from} ${to}`);
		await tab.click('#range-clear');
		await tab.waitForFunction(() => viewer.tree.total[0] === 1980);
	});
	await check('the ends of the range move with keys', async () => {
		const begin = tab.locator('#timeline [role=slider]').first();

		await begin.focus();
		for (let i = 0; i < 8; i++)
			await tab.keyboard.press('Shift+ArrowRight');
		await tab.waitForFunction(() => viewer.tree.total[0] < 1980);
		assert.ok(Number(await begin.getAttribute('aria-valuenow')) > 1000);
		await tab.keyboard.press('Home');
		await tab.waitForFunction(() => viewer.tree.total[0] === 1980);
	});
	await check('the time line has a strip for each CPU, process or thread, of those that are shown', async () => {
		const strips = () => tab.evaluate(() => viewer.timeline.strips.map(strip => strip.name));

		await tab.selectOption('#timeline select', 'cpu');
		assert.deepEqual(await strips(), ['CPU 0', 'CPU 1']);
		await tab.selectOption('#timeline select', 'process');
		assert.equal((await strips()).length, 6);
		assert.equal(await tab.evaluate(() => viewer.timeline.strips.reduce((sum, strip) => sum + strip.sum, 0)), 1980);
		await tab.click('#processes summary');
		await tab.fill('#process-find', 'postgres');
		await tab.click('#process-none');
		assert.equal((await strips()).length, 5);
		await tab.selectOption('#timeline select', 'thread');
		assert.ok((await strips()).length > 6);
	});
	await check('values are switched, and a zoom is kept', async () => {
		await open(diff);
		await click('python3');
		const after = await tab.evaluate(() => viewer.tree.total[viewer.graph.painter.zoomed]);

		await tab.selectOption('#value', 'before');
		await settled();
		assert.equal(await zoomed(), 'python3');
		assert.equal(await tab.evaluate(() => viewer.tree.total[viewer.graph.painter.zoomed]) * 2, after);
	});
});
