// SPDX-License-Identifier: Apache-2.0
/* Stacks of known JavaScript functions. Each scenario is a thread (a worker) that prints its stack and then
 * spins: "T tid scenario", a line "name file line" for each function, from spin's caller on, "E". The stack is the engine's own (Error.stack's call
 * sites). argv: the addon or "-", then scenarios. */
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const fs = require('fs');

function threadId() {
	return fs.readlinkSync('/proc/thread-self').split('/').pop();
}

function tell(scenario) {
	const before = [Error.prepareStackTrace, Error.stackTraceLimit];
	Error.prepareStackTrace = (_, sites) => sites;
	Error.stackTraceLimit = 2000;
	const sites = new Error().stack.slice(1);
	[Error.prepareStackTrace, Error.stackTraceLimit] = before;
	let text = `T ${threadId()} ${scenario}\n`;
	for (const site of sites)
		text += `${(site.getFunctionName() || '-').replace(/ /g, '_')} ${site.getFileName() || '-'} ${site.getLineNumber() || 0}\n`;
	fs.writeSync(1, text + 'E\n');
}

let sink = 0, told = false, calls = 0;

function spin() {
	const rounds = told ? 1e15 : 40;
	let x = sink | 0;
	for (let i = 0; i < rounds; i++)
		x = (x * 31 + i) | 0;
	sink = x;
	return x;
}

/* Called often, so that it and its callers are compiled before it is called for good. Both calls are on one line. */
function third(n) {
	if (told === false && ++calls > 20000)
		told = true;
	return (told ? tell(workerData.scenario) : 0, spin()) + n;
}
function second(n) { return third(n) + 1; }
function first(n) { return second(n) + 1; }
class Shape {
	constructor(n) { this.area = first(n); }
	get size() { return first(1) + this.n; }
	static make(n) { return new Shape(n); }
	method(n) { return first(n); }
}
function recursion(n) { return n ? recursion(n - 1) + 1 : first(n); }
const handler = { get: function trap(target, name) { return first(target.n); } };
const generator = function* produce() { for (;;) yield first(1); };

const scenarios = {
	plain: () => first(1),
	map: () => [1, 2, 3].map(function inMap(v) { return first(v); }),
	forEach: () => [1].forEach((v) => { first(v); }),
	sort: () => [3, 1, 2].sort(function inSort(a, b) { first(a); return a - b; }),
	reduce: () => [3, 1, 2].reduce(function inReduce(a, b) { return first(a) + b; }),
	reviver: () => JSON.parse('{"a":[1]}', function inReviver(key, value) { first(1); return value; }),
	replace: () => 'abc'.replace(/b/, function inReplace() { return String(first(1)); }),
	recursion: () => recursion(150),
	construct: () => Shape.make(1),
	getter: () => Object.create(Shape.prototype, { n: { value: 1 } }).size,
	proxy: () => new Proxy({ n: 1 }, handler).any,
	generator: () => generator().next(),
	apply: () => first.apply(null, [1]),
	bound: () => first.bind(null, 1)(),
	evaluated: () => (0, eval)('(function inEval(f) { return f(1) + 1; })')(first),
	method: () => new Map([[1, new Shape(1)]]).forEach(function inMapForEach(shape) { shape.method(1); }),
	addon: () => addon.callBack(function inAddon(n) { return first(n); }),
	addonSort: () => addon.sort(function inAddonSort(a, b) { first(a); return a - b; }),
};

let addon = null;

function loop(work) {
	for (;;)
		work();
}

if (isMainThread) {
	for (const scenario of process.argv.slice(3))
		new Worker(__filename, { workerData: { scenario, addon: process.argv[2] } }).on('error', (error) => {
			console.error(error);
			process.exit(1);
		});
} else {
	if (workerData.addon !== '-')
		addon = require(workerData.addon);
	loop(scenarios[workerData.scenario]);
}
