// SPDX-License-Identifier: Apache-2.0
// Formats numbers and untrusted texts for display.
'use strict';

// Control characters, marks that change the writing direction, and characters without width: names are untrusted.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const MAX_SHOWN = 600; // characters shown of one name; the search sees all

const plain = text => String(text).replace(UNSEEN, '?');
const count = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const plural = (nr, word, many = word + 's') => `${count.format(nr)} ${Number(nr) === 1 ? word : many}`;
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

function short(text) {
	return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${count.format(text.length)} characters)` : text;
}

// Without balanced brackets that follow a name: f(int) and f<int> become f. <module>, (anonymous) and operator() stay.
function without(name, open, close) {
	let kept = '', depth = 0;

	for (let i = 0; i < name.length; i++) {
		const isOpen = name[i] === open && (depth || (kept && /[\w$>\])]$/.test(kept) && !/operator.?$/.test(kept)));

		depth += isOpen ? 1 : 0;
		kept += depth ? '' : name[i];
		depth -= depth && name[i] === close && !(open === '<' && name[i - 1] === '-') ? 1 : 0;
	}
	return depth ? name : kept;
}

const plainName = name => without(without(name.slice(0, MAX_SHOWN), '(', ')'), '<', '>').replace(/( const| \[[^\]]*\]|\.(isra|constprop|part|cold|llvm|lto_priv)\b[.\d]*)+$/, '');
const lastTwo = name => name.match(/(?:^|::|[./])([^:./\] ]+(?:::|\.)[^:./\] ]+)$/)?.[1] || name;
const lastPart = name => name.match(/(?:^|::|[./])([^:./\] ]+(?: \([^)]*\))?)$/)?.[1] || name;

// From the whole name to what tells most in little room: without arguments, without what templates are of, without namespaces.
function shortForms(name) {
	if (name[0] === '[') // a mark, or a file and an address
		return [name];
	const bare = plainName(name), withoutFile = bare.replace(/ \([^)]*\)$/, '');

	return [...new Set([name, without(name.slice(0, MAX_SHOWN), '(', ')'), bare, withoutFile, lastTwo(withoutFile), lastPart(withoutFile)])];
}

// What a name begins with: the outermost namespace, or the package.
function packageOf(name) {
	const bare = plainName(name).replace(/ \([^)]*\)$/, '');

	return bare.includes('::') ? bare.slice(0, bare.indexOf('::')) : bare.slice(0, Math.max(0, bare.lastIndexOf('.')));
}

function share(part, whole) {
	const percent = whole ? 100 * part / whole : 0;

	return `${percent.toFixed(part && Math.abs(percent) < 0.1 ? 3 : 1)} %`;
}

const signed = points => `${points > 0 ? '+' : points < 0 ? '−' : ''}${Math.abs(points).toFixed(1)}`;

function scaled(value, units) {
	const [size, unit] = units.find(([size]) => Math.abs(value) >= size) || units[units.length - 1];

	return `${count.format(Number((value / size).toPrecision(Math.abs(value) >= units[0][0] * 1000 ? 6 : 3)))} ${unit}`;
}

const seconds = ns => scaled(ns, [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
const bytes = nr => scaled(nr, [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']]);

// A value with its unit: type "samples" and unit "count" give "3 samples".
function quantity(value, { type, unit }) {
	if (unit === 'nanoseconds')
		return seconds(value);
	if (unit === 'bytes')
		return bytes(value);
	if (unit === 'count' && type)
		return plural(value, type.replace(/s$/, ''));
	return `${count.format(value)} ${unit || type}`.trim();
}

function element(tag, text, className) {
	const made = document.createElement(tag);

	if (text)
		made.textContent = text;
	if (className)
		made.className = className;
	return made;
}

const baseName = path => path.slice(path.lastIndexOf('/', path.length - 2) + 1);
const $ = id => document.getElementById(id);
