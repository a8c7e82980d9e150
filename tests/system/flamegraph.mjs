// SPDX-License-Identifier: Apache-2.0
// Opens flame graph pages in Debian's chromium and uses them as a person would. flamegraph.mjs SMALL.html BIG.html EMPTY.html, which
// are make_profile's. Prints a line per check; the first that fails ends it. $SONDE_NODE_PATH: a folder with playwright-core.
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [small, big, empty] = process.argv.slice(2).map(file => path.resolve(file));
const { chromium } = createRequire(path.join(process.env.SONDE_NODE_PATH || process.cwd(), 'x.js'))('playwright-core');
const home = mkdtempSync(path.join(tmpdir(), 'sonde-chromium-'));
const browser = await chromium.launchPersistentContext(home, {
	executablePath: '/usr/bin/chromium',
	viewport: { width: 1280, height: 720 },
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
		'--disable-sync'],
});
const complaints = [];
const tab = await browser.newPage();

// That pixels are read is this script's doing.
tab.on('console', message => message.text().includes('getImageData') || complaints.push(`console: ${message.text()}`));
tab.on('pageerror', error => complaints.push(`error: ${error}`));
tab.on('dialog', dialog => { complaints.push('a dialog'); dialog.dismiss(); });
tab.on('request', request => request.url().startsWith('file:') || complaints.push(`request: ${request.url()}`));

async function check(what, test) {
	try {
		await test();
		assert.deepEqual(complaints, []);
	} catch (error) {
		console.log(`not ok: ${what}\n${error.stack}`);
		process.exitCode = 1;
		throw error;
	}
	console.log(`ok: ${what}`);
}

const open = async (file, scheme = 'light') => {
	await tab.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
	await tab.goto(pathToFileURL(file).href);
	await tab.waitForFunction(() => viewer.painter.width > 0 && !viewer.painter.pending);
};
const settled = () => tab.waitForFunction(() => !viewer.painter.pending);
const zoomed = () => tab.evaluate(() => tree.name(viewer.painter.zoomed));
// The middle of what is in sight of a frame's widest box, as a point of the window.
const place = name => tab.evaluate(name => {
	const painter = viewer.painter, box = painter.canvas.getBoundingClientRect();
	const nodes = [...Array(tree.nr).keys()].filter(i => tree.name(i) === name).sort((a, b) => tree.total[b] - tree.total[a]);
	const scale = painter.width / (painter.to - painter.from);
	const middle = (Math.max(painter.from, tree.start[nodes[0]]) + Math.min(painter.to, tree.end(nodes[0]))) / 2;

	return { x: box.left + (middle - painter.from) * scale, y: box.top + painter.rowTop(tree.depth[nodes[0]]) + 9 };
}, name);
const click = async (name, how = 'click') => {
	const { x, y } = await place(name);

	await tab.mouse[how](x, y);
	await settled();
};
// The colour of a frame's box beside its text, as 'r,g,b'.
const colour = async name => {
	const { y } = await place(name);

	return tab.evaluate(([name, y]) => {
		const painter = viewer.painter, node = [...Array(tree.nr).keys()].find(i => tree.name(i) === name);
		const scale = painter.canvas.width / (painter.to - painter.from), ratio = painter.canvas.width / painter.width;
		const x = (tree.start[node] - painter.from) * scale + 2 * ratio, top = painter.canvas.getBoundingClientRect().top;

		return [...painter.context.getImageData(x, (y - top) * ratio, 1, 1).data.slice(0, 3)].join();
	}, [name, y]);
};

try {
	await check('the page opens without network, errors and dialogs', () => open(small));
	await check('the head tells what was measured, and what was lost', async () => {
		const facts = await tab.textContent('#facts'), tallies = await tab.textContent('#tallies');

		for (const fact of ['cpu-clock, 49 Hz', '2 CPUs', '10 s', 'made-up', 'Linux 6.1.0-made-up'])
			assert.ok(facts.includes(fact), facts);
		assert.match(tallies, /Samples109.*Filtered881.*Lost3.*Stacks missed7.*Stacks truncated6/);
		assert.match(await tab.textContent('#notes'), /sampled cpu-clock <b>instead<\/b>/);
		assert.equal(await tab.locator('#notes b').count(), 0);
		await tab.click('#more');
		assert.match(await tab.textContent('#account'), /Commandsonde profile -F 49 -o <a&b>.html 10.*Lost3 ring full/);
		await tab.click('#more');
	});
	await check('sums of the tree are those of the account', async () => {
		assert.equal(await tab.evaluate(() => tree.total[0]), 109);
		assert.equal(await tab.evaluate(() => Math.max(...Array.from(tree.parent, (p, i) => i ? tree.end(i) - tree.end(p) : 0))), 0);
	});
	await check('hostile names are shown as the texts they are', async () => {
		const names = await tab.evaluate(() => tree.frameName);

		for (const name of ['<script>alert(1)</script>', '</script><!--', 'a;b', 'new?line?tab', '"quotes" & \'more\' \\', 'grüß 漢 🔥', '</script>'])
			assert.ok(names.includes(name), `${name} is not among ${names}`);
		const { x, y } = await place('<script>alert(1)</script>');
		await tab.mouse.move(x, y);
		assert.equal(await tab.textContent('#tip b'), '<script>alert(1)</script>');
		assert.match(await tab.textContent('#tip'), /9 samples, 8\.3 %, 184 ms.*\/usr\/bin\/worker/);
		assert.equal(await tab.locator('#tip script').count(), 0);
	});
	await check('a click zooms, reset and Escape and a double click show everything again', async () => {
		for (const back of [() => tab.click('#reset'), () => tab.keyboard.press('Escape'), () => click('worker', 'dblclick')]) {
			await click('load');
			assert.equal(await zoomed(), 'load');
			assert.match(await tab.textContent('#selected'), /^load {2}\(10 samples, 9\.2 %/);
			await back();
			await settled();
			assert.equal(await zoomed(), 'all');
		}
		assert.ok(await tab.isDisabled('#reset'));
	});
	await check('a zoomed frame fills the width', async () => {
		await click('load');
		assert.deepEqual(await tab.evaluate(() => [viewer.painter.from, viewer.painter.to - viewer.painter.from]),
			await tab.evaluate(() => [tree.start[viewer.painter.zoomed], 10]));
		await tab.keyboard.press('Escape');
	});
	await check('search marks what matches and tells its share, nested matches once', async () => {
		await settled(); // the zoom of the check before may still be under way
		const before = await colour('kthread');

		await tab.keyboard.press('/');
		await tab.keyboard.type('^(recurse|kthread)');
		assert.equal(await tab.textContent('#matched'), 'matched 12 samples, 11.0 %, 245 ms');
		await settled();
		assert.notEqual(await colour('kthread'), before);
		await tab.fill('#search', '(');
		assert.match(await tab.textContent('#matched'), /not a regular expression/);
		await tab.keyboard.press('Escape');
		assert.equal(await tab.inputValue('#search'), '');
		assert.equal(await tab.textContent('#matched'), '');
		await settled();
		assert.equal(await colour('kthread'), before);
	});
	await check('kernel, native code and what is not known differ in colour, light and dark', async () => {
		for (const scheme of ['light', 'dark']) {
			await open(small, scheme);
			const colours = [await colour('spin'), await colour('vfs_read'), await colour('[truncated]'), await colour('worker')];

			assert.equal(new Set(colours).size, 4, String(colours));
		}
	});
	await check('the keyboard alone gets everywhere', async () => {
		await tab.focus('#graph');
		const at = () => tab.evaluate(() => tree.name(viewer.painter.selected));
		const press = async (key, want) => { await tab.keyboard.press(key); assert.equal(await at(), want, key); };

		await press('ArrowUp', 'all');
		await press('ArrowUp', 'worker');
		await press('ArrowUp', '_start');
		await press('ArrowRight', 'main');
		await press('ArrowUp', 'load');
		await press('Enter', 'load');
		assert.equal(await zoomed(), 'load');
		await press('ArrowDown', 'main');
		await tab.keyboard.press('Escape');
		assert.equal(await zoomed(), 'all');
		await tab.keyboard.press('i');
		assert.equal(await tab.textContent('#flip'), 'Flame');
		await press('ArrowDown', 'all');
		await press('ArrowDown', 'worker');
		await tab.keyboard.press('i');
	});
	await check('a narrow window scrolls down, not sideways', async () => {
		await tab.setViewportSize({ width: 360, height: 640 });
		assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await tab.setViewportSize({ width: 1280, height: 720 });
	});
	await check('an injected script does not run', async () => {
		const page = readFileSync(small, 'utf8').replace('</footer>', '</footer><img src=x onerror="window.ran = 1"><script>window.ran = 1</script>');
		const other = await browser.newPage();

		await other.route('**/*', route => route.fulfill({ contentType: 'text/html', body: page }));
		await other.goto('http://injected.test/');
		assert.equal(await other.evaluate(() => window.ran), undefined);
		assert.equal(await other.textContent('h1'), 'sonde flame graph'); // ours does
		await other.close();
	});
	await check('a page without samples says so', async () => {
		await tab.goto(pathToFileURL(empty).href);
		assert.ok(await tab.isVisible('#empty'));
		assert.ok(await tab.isHidden('#graph'));
		await tab.keyboard.press('Escape');
		await tab.keyboard.press('i');
		await tab.fill('#search', 'x');
	});
	await check('a big profile is drawn in no time', async () => {
		await open(big);
		const nr = await tab.evaluate(() => tree.nr);
		const took = await tab.evaluate(() => {
			const began = performance.now();

			for (let i = 0; i < 5; i++)
				viewer.painter.drawNow();
			return (performance.now() - began) / 5;
		});

		assert.ok(nr > 50000, `${nr} nodes`);
		assert.ok(took < 500, `${took} ms to draw ${nr} nodes`); // typical: 20 to 40
		await tab.fill('#search', 'parse.*node$');
		assert.match(await tab.textContent('#matched'), /^matched [\d,]+ samples/);
		console.log(`# ${nr} nodes: ${took.toFixed(1)} ms to draw`);
	});
} catch {
	// said already
} finally {
	await browser.close();
	rmSync(home, { recursive: true, force: true });
}
