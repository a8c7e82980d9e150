#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Takes a picture of a flame graph page, the README's by default.
//
// Usage: screenshot.mjs PROFILE.html [PICTURE.png [light|dark [WIDTHxHEIGHT [SEARCH]]]]
//
// Needs the npm package playwright-core (a folder that has it in its node_modules: $SONDE_NODE_PATH) and Debian's chromium.
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [page = '', picture = 'docs/images/flamegraph.png', scheme = 'light', size = '1280x720', search = ''] = process.argv.slice(2);
const [width, height] = size.split('x').map(Number);

if (!page || !width || !height) {
	console.error('usage: screenshot.mjs PROFILE.html [PICTURE.png [light|dark [WIDTHxHEIGHT [SEARCH]]]]');
	process.exit(2);
}
const { chromium } = createRequire(path.join(process.env.SONDE_NODE_PATH || process.cwd(), 'x.js'))('playwright-core');
const home = mkdtempSync(path.join(tmpdir(), 'sonde-screenshot-'));
const context = await chromium.launchPersistentContext(home, {
	executablePath: '/usr/bin/chromium',
	colorScheme: scheme,
	viewport: { width, height },
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
		'--disable-sync'],
});

try {
	const tab = context.pages()[0] || await context.newPage();

	await tab.goto(pathToFileURL(path.resolve(page)).href);
	if (search)
		await tab.fill('#search', search);
	await tab.waitForTimeout(400); // the first frames are drawn
	await tab.screenshot({ path: picture });
} finally {
	await context.close();
	rmSync(home, { recursive: true, force: true });
}
