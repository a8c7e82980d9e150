#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Takes pictures of the viewer, in light and dark.
//
// Usage: screenshots.mjs PROFILE.html [OFFCPU.html WALL.html DIFFERENCE.html [FOLDER]]
//
// PROFILE.html must have times: sonde profile --timestamps -F 199 -o PROFILE.html 10. OFFCPU.html: sonde offcpu --wake. The README's pictures go to
// docs/images. With FOLDER all go there, and each page is also taken in windows of 1440 and of 400 pixels, to be looked at: NAME-WIDTH[-dark].png; the
// profile's also with source (PROFILE.html: with --source 3) and instructions.
// Needs the npm package playwright-core (in the node_modules of the folder $SONDE_NODE_PATH) and Debian's chromium.
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [profile = '', offcpu = '', wall = '', difference = '', folder = 'docs/images'] = process.argv.slice(2);

if (!profile) {
	console.error('usage: screenshots.mjs PROFILE.html [OFFCPU.html WALL.html DIFFERENCE.html [FOLDER]]');
	process.exit(2);
}
const { chromium } = createRequire(path.join(process.env.SONDE_NODE_PATH || process.cwd(), 'x.js'))('playwright-core');
const home = mkdtempSync(path.join(tmpdir(), 'sonde-screenshots-'));
const context = await chromium.launchPersistentContext(home, {
	executablePath: '/usr/bin/chromium',
	viewport: { width: 1440, height: 900 },
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
		'--disable-sync'],
});
const tab = context.pages()[0] || await context.newPage();
const asItOpens = async () => {};
const pictures = [
	['flamegraph', profile, asItOpens],
	['timeline', profile, async () => {
		await tab.selectOption('#timeline select', 'process');
		const box = await tab.locator('#timeline canvas').boundingBox();

		await tab.mouse.move(box.x + box.width * 0.45, box.y + 20);
		await tab.mouse.down();
		await tab.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 3 });
		await tab.mouse.up();
	}],
	['sandwich', profile, () => tab.evaluate(() => { // of the function with the most callers that has a relevant share
		const rows = viewer.tree.functions().filter(row => row.total > viewer.tree.total[0] / 20);
		const nrCallers = row => callersOf(viewer.tree, row.frame).children(0).length;

		viewer.sandwich(rows.reduce((most, row) => nrCallers(row) > nrCallers(most) ? row : most).frame);
	})],
	['difference', difference, asItOpens],
];
const readHottest = key => async () => {
	await tab.evaluate(() => viewer.showFunction({ frame: viewer.profile.code ? viewer.profile.code[0].frame : 0 }));
	await tab.keyboard.press('o');
	await tab.focus('#tab-source');
	await tab.keyboard.press(key);
};
const pages = process.argv.length > 6 ? [['profile', profile, asItOpens], ['source', profile, readHottest('Tab')], ['instructions', profile, readHottest('ArrowRight')],
	['offcpu', offcpu, asItOpens], ['wall', wall, asItOpens], ['diff', difference, asItOpens]] : [];
const WIDTHS = [1440, 400];

async function take(name, page, prepare, isDark) {
	await tab.goto('about:blank');
	await tab.goto(pathToFileURL(path.resolve(page)).href);
	await tab.waitForFunction(() => typeof viewer !== 'undefined' && viewer.tree);
	await prepare();
	await tab.waitForTimeout(400); // until it is drawn
	await tab.screenshot({ path: path.join(folder, `${name}${isDark ? '-dark' : ''}.png`) });
}

try {
	for (const scheme of ['light', 'dark']) {
		await tab.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
		await tab.setViewportSize({ width: WIDTHS[0], height: 900 });
		for (const [name, page, prepare] of pictures.filter(([, page]) => page))
			await take(name, page, prepare, scheme === 'dark');
		for (const width of WIDTHS) {
			await tab.setViewportSize({ width, height: 900 });
			for (const [name, page, prepare] of pages)
				await take(`${name}-${width}`, page, prepare, scheme === 'dark');
		}
	}
} finally {
	await context.close();
	rmSync(home, { recursive: true, force: true });
}
