// SPDX-License-Identifier: Apache-2.0
// How long a frame takes at more than 100,000 boxes, while the graph is zoomed, moved, searched and pointed at. viewer_smooth.mjs HUGE.html.
// What is demanded has wide room, so that a loaded machine passes; the figures are in docs/internals/viewer.md.
import { strict as assert } from 'node:assert';
import { all, browser, check, open, pages, settled, tab } from './viewer_tab.mjs';

const FRAMES = 30;

// What the tab's main thread really ran, in milliseconds: other programs' time is not in it.
const session = await browser.newCDPSession(tab);
const threadMs = async () => {
	const { metrics } = await session.send('Performance.getMetrics');

	return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
};

// Milliseconds per frame by the clock: [middle, longest].
const measure = (what, nr) => tab.evaluate(([what, nr]) => {
	const { graph } = viewer, { painter, tree } = graph, all = tree.width[0], took = [];
	const names = ['parse', 'scan_', 'e', 'merge_token', 'hash.*row'];
	const does = {
		zoom: i => painter.look(all * 0.4 * i / nr, all * (1 - 0.5 * i / nr)),
		pan: i => painter.look(all * 0.5 * i / nr, all * (0.5 + 0.5 * i / nr)),
		search: i => {
			document.getElementById('search').value = names[i % names.length].slice(0, 1 + i % 5);
			viewer.search.run();
		},
		hover: i => graph.hover({ offsetX: painter.width * (i + 0.5) / nr, offsetY: painter.height * (0.3 + 0.5 * i / nr), clientX: 9, clientY: 9 }),
	};

	for (let i = 0; i < nr; i++) {
		const began = performance.now();

		does[what](i);
		painter.drawNow();
		painter.context.getImageData(0, 0, 1, 1); // waits until it is drawn
		took.push(performance.now() - began);
	}
	took.sort((a, b) => a - b);
	return [took[nr >> 1], took[nr - 1]];
}, [what, nr]);

await session.send('Performance.enable', { timeDomain: 'threadTicks' });
await all(async () => {
	await check('a huge profile opens', async () => {
		await open(pages[0]);
		const nr = await tab.evaluate(() => viewer.tree.nr);

		assert.ok(nr > 100000, String(nr));
		console.log(`# ${nr} boxes`);
	});
	for (const what of ['zoom', 'pan', 'search', 'hover']) {
		await check(`${what} is smooth`, async () => {
			const before = await threadMs(), [middle, longest] = await measure(what, FRAMES), ran = (await threadMs() - before) / FRAMES;

			console.log(`# ${what}: ${ran.toFixed(1)} ms of processor time a frame; by the clock ${middle.toFixed(1)} ms in the middle, ${longest.toFixed(1)} ms at most`);
			assert.ok(middle < 250, `${middle} ms`);
		});
	}
	await check('what is drawn is bounded by the window, not by the profile', async () => {
		const rects = await tab.evaluate(() => {
			const { painter } = viewer.graph, fill = painter.context.fillRect;
			let nr = 0;

			painter.context.fillRect = function (...box) {
				nr++;
				fill.apply(this, box);
			};
			viewer.search.found = painter.matches = null;
			painter.look(0, viewer.tree.width[0]);
			painter.drawNow();
			painter.context.fillRect = fill;
			return { nr, most: painter.width * (painter.height / 20 + 2) };
		});

		assert.ok(rects.nr > 100 && rects.nr < rects.most, JSON.stringify(rects));
		console.log(`# ${rects.nr} rectangles`);
	});
	await check('all the rest works at this size', async () => {
		await tab.fill('#search', 'parse');
		await tab.click('#next');
		await tab.click('#tab-table');
		await tab.click('#tab-sandwich');
		await settled();
		assert.ok(await tab.locator('#graph [role=treeitem]').count() < 200);
		assert.ok(await tab.evaluate(() => document.querySelectorAll('*').length) < 3000);
	});
});
