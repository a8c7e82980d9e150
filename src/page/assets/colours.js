// SPDX-License-Identifier: Apache-2.0
// How frames look: by kind and name or, in a diff, by how much they changed.
'use strict';

// Label; hue, saturation and lightness of the light and of the dark theme; how far hue and lightness vary with the name.
const RUNTIMES = @runtimes@; // of SONDE_RUNTIME_LIST
const KINDS = {
	all: { light: [35, 10, 86], dark: [260, 5, 25], vary: [0, 0] },
	process: { label: 'process', light: [40, 16, 81], dark: [250, 8, 31], vary: [0, 2] },
	thread: { label: 'thread', light: [40, 14, 87], dark: [250, 7, 26], vary: [0, 2] },
	comm: { label: 'thread', light: [40, 14, 87], dark: [250, 7, 26], vary: [0, 2] },
	idle: { label: 'idle threads', light: [40, 4, 90], dark: [250, 4, 21], vary: [0, 0] },
	running: { label: 'on a CPU', light: [140, 48, 72], dark: [145, 36, 33], vary: [0, 0] },
	ready: { label: 'ready, no CPU', light: [50, 84, 70], dark: [46, 58, 33], vary: [0, 0] },
	blocked: { label: 'blocked', light: [250, 45, 84], dark: [255, 26, 38], vary: [75, 3] },
	wait: { label: 'kind of wait', light: [250, 45, 84], dark: [255, 26, 38], vary: [75, 3] },
	waker: { label: 'waker', light: [172, 42, 78], dark: [176, 36, 31], vary: [6, 3] },
	native: { label: 'native', light: [31, 84, 73], dark: [24, 50, 36], vary: [12, 4] },
	kernel: { label: 'kernel', light: [208, 58, 78], dark: [210, 42, 38], vary: [10, 4] },
	...RUNTIMES,
	missed: { label: 'missed stack', light: [340, 45, 84], dark: [338, 30, 33], vary: [0, 0], striped: true },
	mark: { label: 'cut stack', light: [340, 45, 84], dark: [338, 30, 33], vary: [0, 0], striped: true },
};
const INTERPRETED = Object.keys(RUNTIMES); // kinds whose names alone say little: their source file follows
const FALLBACK_HUES = [150, 265, 95, 180, 300, 55]; // of kinds that this page does not know

const THEMES = {
	light: { match: [201, 156, 240], faint: [253, 252, 250], ink: [29, 23, 18], edge: '#211d19', stripe: 'rgb(120 10 50 / .2)', same: [235, 233, 230],
		grown: [203, 62, 40], shrunk: [44, 110, 190], page: '#fdfcfa', soft: '#6a625a', line: '#e4ded5' },
	dark: { match: [143, 79, 208], faint: [23, 22, 26], ink: [251, 247, 242], edge: '#fbf7f2', stripe: 'rgb(255 190 215 / .22)', same: [62, 61, 67],
		grown: [214, 78, 52], shrunk: [62, 128, 214], page: '#17161a', soft: '#a39c93', line: '#35333c' },
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

// Red, green and blue, 0 to 255.
function rgbOf(hue, saturation, lightness) {
	const part = saturation / 100 * Math.min(lightness, 100 - lightness) / 100;

	return [0, 8, 4].map(n => {
		const k = (n + hue / 30 + 12) % 12;

		return Math.round(255 * (lightness / 100 - part * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
	});
}

// A function without a name is paler. The kind of a wait has one colour, whether it is a state or a mark.
function colourOf(themeName, kind, name) {
	const { vary: [varyHue, varyLightness], [themeName]: [hue, saturation, lightness] } = kindOf(kind);
	const hash = hashName(name.replace('[blocked: ', '[')), vary = (by, bits) => by * ((bits & 255) / 127.5 - 1);
	const isPale = name[0] === '[' && (kind === 'native' || kind === 'kernel');

	return rgbOf(hue + vary(varyHue, hash), isPale ? saturation / 3 : saturation,
		lightness + vary(varyLightness, hash >>> 8) + (isPale ? themeName === 'light' ? 9 : -8 : 0));
}

// What a frame's colour stands for: its kind, or a hue for each module or package.
const COLOURINGS = {
	kind: () => null,
	module: (profile, frame) => profile.framePath[frame] || profile.frameFile[frame],
	package: (profile, frame) => packageOf(profile.frameName[frame]),
};

function hueColour(themeName, text) {
	return rgbOf(hashName(text) % 360, themeName === 'light' ? 52 : 34, themeName === 'light' ? 79 : 34);
}

const css = rgb => `rgb(${rgb.join(' ')})`;
const mix = (from, to, part) => from.map((value, i) => Math.round(value + (to[i] - value) * part));

// WCAG's relative luminance.
function luminance(rgb) {
	const [red, green, blue] = rgb.map(value => value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);

	return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// The ink that is easier to read: a contrast of 4.5 or more on every colour.
const inkOn = rgb => luminance(rgb) > 0.179 ? '#000000' : '#ffffff';

// The difference of two shares in points of percent. Within two standard deviations of counts (Poisson) it is noise: as diff_is_noise.
function pointsOf(sides, before, after) {
	return 100 * (after / (sides[1].whole || 1) - before / (sides[0].whole || 1));
}

function isNoise(sides, before, after) {
	const share = [before, after].map((value, i) => Math.abs(value) / (sides[i].whole || 1));

	return before === after || (sides[0].samples && sides[1].samples &&
		(share[1] - share[0]) ** 2 <= 4 * (share[0] / sides[0].samples + share[1] / sides[1].samples));
}

// Red and blue differ for all kinds of colour vision. Lightness falls in both directions. `change`: from -1 to 1.
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
