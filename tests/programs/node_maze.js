// SPDX-License-Identifier: Apache-2.0
/* Calls itself at random for ever: f0 to f15, each by a plain call, in a sort, a map, a generator, a getter or a callback from an addon (argv: its path). Prints {caller: [callees]} as JSON,
 * which is all that can be: a function of layer i mod 4 calls those of the next layer alone, so neither a frame too few nor one too many makes a possible stack. */
'use strict';
const vm = require('vm');
const addon = require(process.argv[2]);

const FUNCTIONS = 16, LAYERS = 4, DEPTH = 14, NUMBERS = 4096;
const table = [], functions = [], numbers = new Uint32Array(NUMBERS);
let at = 0;

function randomAt() {
	at = (at + 1) % NUMBERS;
	return at;
}

function bits(nr) {
	return (numbers[randomAt()] >>> 7) % nr;
}

function choice(items) {
	return items[numbers[randomAt()] >>> 9 & 1];
}

/* Functions of one number, as if written by hand: each has code and feedback of its own. */
const text = (i) => `(function made(table, functions, bits, choice, addon) {
	let depthOf = 0;
	function k${i}(a, b) { functions[choice(table)](depthOf); return a - b; }
	function m${i}(item) { if (item) functions[choice(table)](depthOf); return item; }
	function* g${i}(depth) { yield 1; functions[choice(table)](depth); yield 2; }
	function c${i}(a, b) { functions[choice(table)](depthOf); return 0; }
	const object = { get p${i}() { functions[choice(table)](depthOf); return 1; } };
	return function f${i}(depth) {
		let count = 0;
		for (let n = 0; n < 60; n++)
			count = (count * 31 + n) | 0;
		if (depth <= 0)
			return count;
		const how = bits(7);
		depthOf = depth - 1;
		if (how === 0)
			[2, 1].sort(k${i});
		else if (how === 1)
			[1, 0].map(m${i});
		else if (how === 2)
			for (const item of g${i}(depth - 1))
				count += item;
		else if (how === 3)
			addon.callBack(c${i});
		else if (how === 4)
			count += object.p${i};
		else
			functions[choice(table)](depth - 1);
		return count;
	};
})`;

function run() {
	for (;;)
		functions[at % FUNCTIONS](DEPTH);
}

let seed = 7;
for (let n = 0; n < NUMBERS; n++)
	numbers[n] = seed = Math.imul(seed, 1664525) + 1013904223 >>> 0;
const edges = { run: [], bits: ['randomAt'], choice: ['randomAt'], randomAt: [] };
for (let i = 0; i < FUNCTIONS; i++) {
	const next = (i + 1) % LAYERS, first = choice([0, 1]) + 2 * choice([0, 1]);
	table[i] = [next + LAYERS * first, next + LAYERS * ((first + 1) % LAYERS)];
	functions[i] = new vm.Script(text(i), { filename: `/maze_${i}.js` }).runInThisContext()(table[i], functions, bits, choice, addon);
	const callees = ['choice', ...table[i].map((callee) => `f${callee}`)];
	edges.run.push(`f${i}`);
	edges[`f${i}`] = [...callees, 'bits', ...'kmgcp'].map((name) => name.length === 1 ? name + i : name);
	for (const kind of 'kmgcp')
		edges[kind + i] = callees;
}
console.log(JSON.stringify(edges));
run();
