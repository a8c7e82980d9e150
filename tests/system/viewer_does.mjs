// SPDX-License-Identifier: Apache-2.0
// Every control, with the mouse and with keys. viewer_does.mjs SMALL.html TIMED.html DIFF.html WAITS.html WALL.html, which are make_profile's.
import { strict as assert } from 'node:assert';
import { pathToFileURL } from 'node:url';
import { all, browser, check, click, colour, load, open, pages, place, selected, settled, tab, text, zoomed } from './viewer_tab.mjs';

const [small, timed, diff, waits, wall] = pages;
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
	await check('the arrow keys work at once, and what is under the pointer goes with scrolling', async () => {
		await open(small);
		await press('ArrowUp');
		assert.equal(await selected(), 'all');
		await press('ArrowUp');
		assert.equal(await selected(), 'worker');
		await tab.evaluate(() => document.activeElement.blur());
		await open(diff); // tall
		const box = await tab.locator('#graph canvas').first().boundingBox();

		await tab.mouse.move(box.x + 60, box.y + box.height - 30);
		assert.ok(await tab.isVisible('#tip'));
		await tab.evaluate(() => viewer.graph.scroller.dispatchEvent(new Event('scroll')));
		await tab.waitForFunction(() => document.getElementById('tip').hidden);
		await open(small);
	});
	await check('each part of the answer shows what it speaks of', async () => {
		const part = text => tab.locator('#answer button', { hasText: text }).first();
		const answer = await text('answer');

		assert.match(answer, /^\d+ % \w+.*in the kernel.*most in /);
		const share = Number(answer.match(/^(\d+) %/)[1]);

		await tab.locator('#answer button').first().click();
		assert.equal(Math.round(100 * await total() / 128), share);
		await press('x');
		await part('in the kernel').click();
		assert.match(await text('chips'), /only with kernel/);
		const kernel = await total();

		assert.equal(Math.round(100 * kernel / 128), Number(answer.match(/(\d+) % in the kernel/)[1]));
		await press('x');
		assert.equal(await total(), 128);
		await part('most in').or(tab.locator('#answer .sentence', { hasText: 'most in' }).locator('button')).click();
		assert.ok(answer.includes(`most in ${await selected()}`), answer);
		await press('Escape');
	});
	await check('stacks are focused, hidden, merged, closed and rid of recursion by keys, and a chip takes it back', async () => {
		const self = name => tab.evaluate(name => functionsOf(viewer.tree).filter(row => viewer.profile.frameName[row.frame] === name).reduce((sum, row) => sum + row.self, 0), name);
		const has = name => tab.evaluate(name => functionsOf(viewer.tree).some(row => viewer.profile.frameName[row.frame] === name), name);
		const off = async () => {
			await tab.locator('#chips button').first().click();
			assert.equal(await total(), 128);
			assert.equal(await tab.locator('#chips button').count(), 0);
			await press('Escape');
		};

		await open(small);
		for (const [key, sum] of [['f', 10], ['h', 118]]) {
			await click('load');
			await press(key);
			assert.equal(await total(), sum, key);
			await off();
		}
		await click('__read');
		const own = await self('load');

		await press('m');
		assert.ok(!await has('__read'));
		assert.equal(await total(), 128);
		assert.equal(await self('load'), own); // its calls in the kernel stay
		await off();
		await click('load');
		await press('d');
		assert.equal(await self('load'), 10);
		await off();
		await click('recurse(int)');
		const depths = () => tab.evaluate(() => Math.max(...[...viewer.tree.frame.keys()].filter(node => viewer.tree.name(node) === 'recurse(int)' && viewer.tree.width[node]).map(node => viewer.tree.depth[node])));
		const deep = await depths();

		await press('u');
		assert.ok(await depths() < deep, `${await depths()} ${deep}`);
		assert.equal(await self('recurse(int)'), 6);
		await off();
	});
	await check('a menu has all that can be done with a frame, by mouse and by keys', async () => {
		const { x, y } = await place('load');

		await tab.mouse.click(x, y, { button: 'right' });
		assert.ok(await tab.isVisible('#menu'));
		assert.match(await text('menu'), /Zoom.*Only stacks with it.*Hide.*Merge.*Close.*recursion.*worker.*Invert.*Copy/);
		await tab.keyboard.press('Escape');
		assert.ok(await tab.isHidden('#menu'));
		await tab.focus('#graph .scroller');
		await tab.keyboard.press('ContextMenu');
		await tab.waitForFunction(() => document.activeElement.closest('#menu'));
		await press('ArrowDown', 'ArrowDown', 'ArrowDown');
		assert.match(await tab.evaluate(() => document.activeElement.textContent), /^Hide stacks with it/);
		await press('Enter');
		assert.equal(await total(), 118);
		assert.match(await text('chips'), /without load/);
		await press('x');
	});
	await check('inverted, what runs comes first and its callers follow; the sums stay', async () => {
		await tab.click('#invert');
		assert.equal(await tab.evaluate(() => viewer.graph.tree.total[0]), 128);
		const first = await tab.evaluate(() => viewer.graph.tree.children(0).map(node => [viewer.graph.tree.name(node), viewer.graph.tree.total[node]])), own = await tab.evaluate(() =>
			functionsOf(viewer.tree).filter(row => row.self).map(row => [viewer.profile.frameName[row.frame], row.self]));

		for (const [name, sum] of own)
			assert.ok(first.some(([other, total]) => other === name && total === sum), `${name} ${sum}`);
		await press('v');
		assert.equal(await tab.getAttribute('#invert', 'aria-pressed'), 'false');
	});
	await check('what is shown is in the URL: Back leads back, and another tab opens at the same place', async () => {
		await open(small);
		await click('load');
		await press('h');
		await tab.fill('#search', 'main');
		await tab.click('#tab-table');
		await tab.waitForFunction(() => location.hash.includes('q=main') && location.hash.includes('v=table'));
		const url = tab.url(), other = await browser.newPage();

		await load(url, other);
		await other.waitForFunction(() => viewer.tree.total[0] === 118);
		assert.equal(await other.inputValue('#search'), 'main');
		assert.ok(await other.isVisible('#view-table'));
		assert.match(await other.textContent('#chips'), /without load/);
		await other.close();
		await tab.goBack();
		await tab.waitForFunction(() => viewer.view === 'graph');
		await tab.goBack();
		await tab.waitForFunction(() => viewer.tree.total[0] === 118 && !document.getElementById('search').value);
		await tab.goBack();
		await tab.waitForFunction(() => viewer.tree.total[0] === 128);
		await comesBackTo('load');
		await tab.goForward();
		await tab.waitForFunction(() => viewer.tree.total[0] === 118);
		await open(small);
	});
	await check('a forged hash does no harm', async () => {
		for (const hash of ['c=focus-frame-99999999.__proto__-frame-1.hide-kind--1.focus-module-NaN', 'graph=99999999_5_-1_1e99', 'off=0-99999999999&k=4.77', 't=5-1-2', 'v=constructor&w=77&f=1e9&by=__proto__',
			'q=' + '('.repeat(500) + '&p=1', 'graph=%00&sandwich=<script>', 'v=sandwich&callers=7_7&f=-3']) {
			await load(`${pathToFileURL(small).href}#${hash}`);
			await tab.waitForFunction(() => viewer.tree && viewer.tree.nr > 5);
			await settled();
		}
		await open(small);
	});
	await check('on a wide window the table is beside the graph, and leads to it', async () => {
		await tab.setViewportSize({ width: 1440, height: 900 });
		await tab.waitForFunction(() => document.querySelectorAll('#table tr[data-row]').length > 5);
		assert.ok(await tab.isVisible('#view-graph') && await tab.isVisible('#view-table'));
		await tab.locator('#table tr[data-row="1"]').click();
		assert.equal(await selected(), await tab.evaluate(() => viewer.table.rows[1].name));
		await tab.setViewportSize({ width: 1280, height: 720 });
		await tab.waitForFunction(() => document.getElementById('view-table').hidden);
		await press('Escape');
	});
	await check('the call tree opens and closes by keys, and leads to the graph', async () => {
		await open(small);
		await press('4');
		const row = () => tab.evaluate(() => document.getElementById(document.getElementById('calls').getAttribute('aria-activedescendant')).querySelector('.col-name').textContent);
		const expanded = () => tab.evaluate(() => document.getElementById(document.getElementById('calls').getAttribute('aria-activedescendant')).getAttribute('aria-expanded'));

		assert.match(await row(), /all$/);
		await press('ArrowDown');
		assert.match(await row(), /worker$/);
		const isOpen = await expanded();

		await press(isOpen === 'true' ? 'ArrowLeft' : 'ArrowRight');
		assert.notEqual(await expanded(), isOpen);
		if (isOpen === 'true')
			await press('ArrowRight');
		await press('ArrowDown');
		const name = (await row()).replace(/^[▾▸]/, '');

		await press('Enter');
		assert.equal(await selected(), name);
		assert.ok(await tab.isVisible('#view-graph'));
		await press('Escape');
	});
	await check('a graph taller than the window has a map, which leads elsewhere', async () => {
		assert.ok(await tab.isHidden('#graph .minimap') === await tab.evaluate(() => viewer.graph.painter.full <= viewer.graph.painter.height + ROW));
		await tab.setViewportSize({ width: 1280, height: 430 });
		await tab.waitForFunction(() => document.querySelector('#graph').classList.contains('tall'));
		const box = await tab.locator('#graph .minimap').boundingBox(), top = () => tab.evaluate(() => viewer.graph.scroller.scrollTop);

		await tab.mouse.click(box.x + 20, box.y + 3);
		await tab.waitForFunction(() => viewer.graph.scroller.scrollTop === 0);
		await tab.mouse.click(box.x + 20, box.y + box.height - 3);
		await tab.waitForFunction(() => viewer.graph.scroller.scrollTop > 0);
		assert.ok(await top() > 0);
		await tab.waitForFunction(() => new Set(viewer.graph.minimap.canvas.getContext('2d').getImageData(0, 0, 40, 60).data).size > 3); // it is drawn a moment later
		await tab.setViewportSize({ width: 1280, height: 720 });
	});
	await check('colours by file and package', async () => {
		await settled();
		const kind = await colour('vfs_read'), own = await colour('spin');

		await tab.selectOption('#colour', 'module');
		await settled();
		assert.notEqual(await colour('spin'), own);
		assert.equal(await colour('spin'), await colour('work')); // of one file
		await tab.selectOption('#colour', 'kind');
		await settled();
		assert.equal(await colour('vfs_read'), kind);
	});
	await check('waits and states: a part of the answer leaves only its stacks', async () => {
		await open(wall);
		await tab.locator('#answer button', { hasText: 'futex' }).click();
		assert.equal(await total(), 28.5e9);
		await press('x');
		await tab.locator('#answer button', { hasText: 'running' }).click();
		assert.equal(await total(), 5e9);
		await open(waits);
		await tab.locator('#answer button', { hasText: 'futex' }).click();
		assert.ok(await total() < await tab.evaluate(() => viewer.whole) && await total() > 0);
		await open(small);
	});
	await check('another page is compared: by choosing or dropping it, and sums are those of both', async () => {
		await open(small);
		await tab.setInputFiles('#compare-file', small.replace(/small\/profile.html$/, 'timed/profile.html'));
		await tab.waitForFunction(() => viewer.profile.isDiff);
		assert.match(await text('facts'), /before 128 samples, after 1,980 samples/);
		assert.match(await text('title'), /profile\.html → profile\.html/);
		assert.ok(await tab.evaluate(() => Math.abs(viewer.tree.before[0] - 1980) < 1e-6 && Math.abs(viewer.tree.after[0] - 1980) < 1e-6));
		assert.ok(await tab.evaluate(() => viewer.table.constructor && functionsOf(viewer.tree).some(row => !row.before && row.after) && functionsOf(viewer.tree).some(row => row.before && !row.after)));
		await open(small);
		await tab.evaluate(() => {
			const transfer = new DataTransfer();

			transfer.items.add(new File([document.documentElement.outerHTML], 'same.html'));
			dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }));
		});
		await tab.waitForFunction(() => viewer.profile.isDiff);
		assert.match(await text('answer'), /nothing changed beyond noise/);
		assert.deepEqual(await tab.evaluate(() => functionsOf(viewer.tree).filter(row => row.before !== row.after)), []);
		await open(small);
		for (const forged of ['', 'x', '{}', '<p id=profile>{"format":"sonde-view"}', '{"format":"sonde-view","version":1}']) {
			await tab.evaluate(text => viewer.compareWith(new File([text], 'x.html')), forged);
			assert.match(await text('said'), /^Cannot be compared/);
		}
		assert.equal(await total(), 128);
	});
	await check('keys and clicks in any order do no harm, also where there is nothing, and the hash opens alike', async () => {
		const keys = ['f', 'h', 'm', 'd', 'u', 'v', 'i', 's', 'n', 'N', 'Enter', 'Backspace', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', '1', '2', '3', '4', 'x',
			'Escape', 'Home', '+', '-', 'Shift+ArrowRight', 'c', 'r', 'o'];
		const state = () => tab.evaluate(() => [viewer.view, viewer.tree.total[0], viewer.graph.tree.nr, viewer.graph.painter.zoomed, viewer.graph.painter.selected, viewer.chips.length, viewer.isInverted, viewer.code.tab].join());
		let seed = 7;
		const draw = nr => (seed = (seed * 1103515245 + 12345) % 2147483648) % nr;

		await open(small);
		await tab.evaluate(() => viewer.addChip({ does: 'hide', by: 'frame', of: viewer.profile.frameName.indexOf('worker') }));
		await tab.evaluate(() => {
			viewer.load({ ...viewer.data, samples: { ...viewer.data.samples, values: viewer.data.samples.values.map(column => column.map(() => 0)) } });
		});
		await tab.evaluate(() => viewer.tab('sandwich')); // of nothing
		await press(...keys);
		for (const page of [small, wall, diff]) {
			await open(page);
			for (let i = 0; i < 120; i++) {
				const what = draw(12), parts = await tab.locator('#answer button').count();

				if (what < 10 || (what === 10 && !parts))
					await tab.keyboard.press(keys[draw(keys.length)]);
				else if (what === 10)
					await tab.locator('#answer button').nth(draw(parts)).click();
				else
					await tab.mouse.click(40 + draw(900), 350 + draw(250), { button: ['left', 'right'][draw(2)] });
			}
			assert.ok(await tab.evaluate(() => Math.abs(viewer.tree.self.reduce((sum, value) => sum + value, 0) - viewer.tree.total[0]) <= 1e-9 * Math.abs(viewer.whole)));
			assert.ok(await tab.evaluate(() => viewer.graph.painter.zoomed < viewer.graph.tree.nr && viewer.graph.painter.selected < viewer.graph.tree.nr));
			await tab.waitForFunction(() => !viewer.state.later && !viewer.state.isNoted); // it is written
			const before = await state(), url = tab.url();

			await load(url);
			await settled();
			assert.equal(await state(), before, url);
		}
		await open(small);
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
	await check('the time line is by program, its bars are by kind, and the pointer tells values', async () => {
		assert.equal(await tab.inputValue('#timeline select'), 'process');
		const sums = await tab.evaluate(() => viewer.timeline.strips.map(({ kinds, sum }) => [kinds.reduce((all, bins) => all + (bins ? bins.reduce((a, b) => a + b) : 0), 0), sum]));

		for (const [stacked, sum] of sums)
			assert.equal(stacked, sum);
		assert.ok(await tab.evaluate(() => viewer.timeline.strips[0].kinds.filter(Boolean).length > 1));
		const box = await tab.locator('#timeline canvas').boundingBox();

		await tab.mouse.move(box.x + 400, box.y + 30);
		assert.match(await text('tip'), /^\S+.* to .*: [\d,]+ samples?; [\d,]+ samples in all/);
		await tab.mouse.move(0, 0);
		assert.ok(await tab.isHidden('#tip'));
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
