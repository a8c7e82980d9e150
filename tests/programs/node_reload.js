// SPDX-License-Identifier: Apache-2.0
/* Functions that come and go: each round makes a pair anew, runs it for a while and drops it; the collector then moves what is left and puts
 * the next pair where the last one was. A caller always calls the function of its own pair. Each has a file's name that is new, too. With
 * --expose-gc. */
'use strict';
const vm = require('vm');

function round(number) {
	const of = number % 2 ? 'Odd' : 'Even';
	const pair = new vm.Script(`(() => {
		function leaf${of}(n) { const list = []; let x = 0; for (let i = 0; i < n; i++) { x = (x * 31 + i) | 0; list[i & 63] = { x }; } return x; }
		return function run${of}(end) { let x = 0; while (Date.now() < end) x += leaf${of}(3000); return x; };
	})()`, { filename: `/reload_${of}_${number}.js` }).runInThisContext();

	pair(Date.now() + 15);
}

const kept = [];
for (let number = 0;; number++) {
	kept[number % 64] = { text: 'x'.repeat(number % 1000), list: new Array(number % 100).fill(number) };
	round(number);
	if (number % 3 === 0)
		globalThis.gc();
}
