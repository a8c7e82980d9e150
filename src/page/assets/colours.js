// SPDX-License-Identifier: Apache-2.0
// How frames look: by kind and name or, in a diff, by how much they changed.
'use strict';

// Label; hue, saturation and lightness of the light and of the dark theme; how far hue and lightness vary with the name.
const RUNTIMES = @runtimes@; // of SONDE_RUNTIME_LIST
const KINDS = {
	all: { light: [35, 10, 86], dark: [260, 5, 25], vary: [0, 0] },
	process: { label: 'process', light: [40, 16, 81], dark: [250, 8, 31], vary: [0, 2] },
	thread: { label: 'thread', light: [40, 14, 87], dark: [250, 7, 26], vary: [0, 2] },
	native: { label: 'native', light: [31, 84, 73], dark: [24, 50, 36], vary: [12, 4] },
	kernel: { label: 'kernel', light: [208, 58, 78], dark: [210, 42, 38], vary: [10, 4] },
	...RUNTIMES,
	missed: { label: 'missed stack', light: [340, 45, 84], dark: [338, 30, 33], vary: [0, 0], striped: true },
	mark: { label: 'cut stack', light: [340, 45, 84], dark: [338, 30, 33], vary: [0, 0], striped: true },
};
const INTERPRETED = Object.keys(RUNTIMES); // kinds whose names alone say little: their source file follows
const FALLBACK_HUES = [150, 265, 95, 180, 300, 55]; // of kinds that this page does not know

const THEMES = {
	light: { match: '#c99cf0', ink: '#1d1712', faint: 'rgb(253 252 250 / .62)', edge: '#211d19', stripe: 'rgb(120 10 50 / .2)', same: [235, 233, 230],
		grown: [203, 62, 40], shrunk: [44, 110, 190], heat: [176, 72, 12], page: '#fdfcfa', soft: '#6a625a', line: '#e4ded5' },
	dark: { match: '#8f4fd0', ink: '#fbf7f2', faint: 'rgb(23 22 26 / .62)', edge: '#fbf7f2', stripe: 'rgb(255 190 215 / .22)', same: [62, 61, 67],
		grown: [214, 78, 52], shrunk: [62, 128, 214], heat: [240, 144, 78], page: '#17161a', soft: '#a39c93', line: '#35333c' },
};

function hashName(name) {
	let hash = 2166136261;

	for (let i = 0; i < name.length && i < 256; i++)
		hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
	return hash >>> 0;
}

function kindOf(kind) {
	const hue = FALLBACK_HUES[hashName(kind) % FALLBACK_HUES.length];

	return Object.hasOwn(KINDS, kind) ? KINDS[kind] : { label: plain(kind), light: [hue, 45, 76], dark: [hue, 32, 36], vary: [8, 4] };
}

function colourOf(themeName, kind, name) {
	const { vary: [varyHue, varyLightness], [themeName]: [hue, saturation, lightness] } = kindOf(kind);
	const hash = hashName(name), vary = (by, bits) => by * ((bits & 255) / 127.5 - 1);

	return `hsl(${(hue + vary(varyHue, hash)).toFixed(1)} ${saturation}% ${(lightness + vary(varyLightness, hash >>> 8)).toFixed(1)}%)`;
}

const mix = (from, to, part) => `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * part)).join(' ')})`;

// From -1 (gone) through 0 (unchanged) to 1 (new).
function changeOf(before, after) {
	return before === after ? 0 : (after - before) / Math.max(Math.abs(after), Math.abs(before));
}

// Red and blue differ for all kinds of colour vision. Lightness falls in both directions.
function diffColour(theme, change) {
	return mix(theme.same, change > 0 ? theme.grown : theme.shrunk, Math.sqrt(Math.min(1, Math.abs(change))));
}

// A tile of diagonal stripes: unknown frames must look different even without colour.
function stripesOf(theme) {
	const tile = document.createElement('canvas'), context = tile.getContext('2d');

	tile.width = tile.height = 8;
	context.strokeStyle = theme.stripe;
	context.lineWidth = 2;
	for (const at of [-8, 0, 8]) {
		context.beginPath();
		context.moveTo(at - 1, 9);
		context.lineTo(at + 9, -1);
		context.stroke();
	}
	return tile;
}
