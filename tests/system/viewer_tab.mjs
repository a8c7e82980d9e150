// SPDX-License-Identifier: Apache-2.0
// A tab of Debian's chromium for the viewer's tests: whatever it complains of fails the check that is under way, and so does any request that is not
// for a file. $SONDE_NODE_PATH: a folder with playwright-core.
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { chromium } = createRequire(path.join(process.env.SONDE_NODE_PATH || process.cwd(), 'x.js'))('playwright-core');
const home = mkdtempSync(path.join(tmpdir(), 'sonde-chromium-'));
const complaints = [];

export const browser = await chromium.launchPersistentContext(home, {
	executablePath: '/usr/bin/chromium',
	viewport: { width: 1280, height: 720 },
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
		'--disable-sync'],
});
export const tab = await browser.newPage();
export const pages = process.argv.slice(2).map(file => path.resolve(file));

// That pixels are read is the tests' doing.
tab.on('console', message => message.text().includes('getImageData') || complaints.push(`console: ${message.text()}`));
tab.on('pageerror', error => complaints.push(`error: ${error}`));
tab.on('dialog', dialog => { complaints.push('a dialog'); dialog.dismiss(); });
tab.on('request', request => request.url().startsWith('file:') || complaints.push(`request: ${request.url()}`));

export async function check(what, test) {
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

// Runs the checks up to the first that fails.
export async function all(checks) {
	try {
		await checks();
	} catch (error) {
		if (!process.exitCode)
			console.log(`not ok: ${error.stack}`);
		process.exitCode = 1;
	} finally {
		await browser.close();
		rmSync(home, { recursive: true, force: true });
	}
}

// Drawn, and as large as its window.
export const settled = () => tab.waitForFunction(() => viewer.graphs.every(({ painter }) => !painter.pending &&
	(!painter.scroller.clientHeight || !painter.tree || painter.height === painter.scroller.clientHeight)));

// Loads a page anew. Its scripts are unpacked first, which takes a moment.
export async function load(url, where = tab) {
	await where.goto('about:blank');
	await where.goto(url);
	await where.waitForFunction(() => typeof viewer !== 'undefined' && viewer.tree);
}

export async function open(file, scheme = 'light') {
	await tab.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
	await load(pathToFileURL(file).href);
	await settled();
}

// The middle of what is in sight of a frame's widest box, as a point of the window.
export const place = (name, graph = 'graph') => settled().then(() => tab.evaluate(([name, graph]) => {
	const { painter } = viewer[graph], { tree } = painter, box = painter.canvas.getBoundingClientRect();
	const nodes = [...Array(tree.nr).keys()].filter(i => tree.name(i) === name).sort((a, b) => tree.width[b] - tree.width[a]);
	const scale = painter.width / (painter.to - painter.from);
	const middle = (Math.max(painter.from, tree.start[nodes[0]]) + Math.min(painter.to, tree.end(nodes[0]))) / 2;

	return { x: box.left + (middle - painter.from) * scale, y: box.top + painter.rowTop(tree.depth[nodes[0]]) + 9 };
}, [name, graph]));

export async function click(name, graph) {
	const { x, y } = await place(name, graph);

	await tab.mouse.click(x, y);
	await settled();
}

export const text = id => tab.textContent(`#${id}`);
export const zoomed = (graph = 'graph') => tab.evaluate(graph => viewer[graph].tree.name(viewer[graph].painter.zoomed), graph);
export const selected = (graph = 'graph') => tab.evaluate(graph => viewer[graph].tree.name(Math.max(0, viewer[graph].painter.selected)), graph);
// What a frame's box is filled with, beside its text.
export const colour = name => tab.evaluate(name => {
	const { painter } = viewer.graph, { tree } = painter, scale = devicePixelRatio;
	const node = [...Array(tree.nr).keys()].filter(i => tree.name(i) === name).sort((a, b) => tree.width[b] - tree.width[a])[0];
	const left = (tree.start[node] - painter.from) * painter.width / (painter.to - painter.from);

	return [...painter.context.getImageData((left + 2) * scale, (painter.rowTop(tree.depth[node]) + 3) * scale, 1, 1).data].join(' ');
}, name);

// Each function's own and whole value by the profile's JSON, beside the page: { name: [self, total] }.
export function totalsOf(page, value) {
	const data = JSON.parse(readFileSync(path.join(path.dirname(page), 'profile.json'), 'utf8')), totals = {};
	const nameOf = frame => data.functions[data.frames[frame].function].name;

	for (const { values, user_stack: user, kernel_stack: kernel } of data.samples) {
		const names = [kernel, user].filter(stack => stack !== null).flatMap(stack => data.stacks[stack].map(nameOf)), sum = Number(values[value]);

		for (const name of new Set(sum ? names : []))
			(totals[name] ||= [0, 0])[1] += sum;
		if (sum && names.length)
			totals[names[0]][0] += sum;
	}
	return totals;
}
