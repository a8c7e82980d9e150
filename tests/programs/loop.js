// SPDX-License-Identifier: Apache-2.0
// loop.js SECONDS: an event loop that waits for its timers, and a worker that waits in Atomics.wait, 20 ms at a time. At the end: NAME ASKED TOOK, in seconds.
"use strict";
const { Worker, isMainThread, workerData } = require("worker_threads");

const NAP_MS = 20;

function waitsInside(cells)
{
	Atomics.wait(cells, 0, 0, NAP_MS);
}

function waits(end)
{
	const cells = new Int32Array(new SharedArrayBuffer(4));
	let asked = 0, took = 0;

	while (performance.timeOrigin + performance.now() < end) {
		const began = performance.now();
		waitsInside(cells);
		took += performance.now() - began;
		asked += NAP_MS;
	}
	console.log("waits", asked / 1e3, took / 1e3);
}

if (isMainThread) {
	const end = performance.timeOrigin + performance.now() + 1e3 * Number(process.argv[2]);
	let asked = 0;

	console.log("ready");
	new Worker(__filename, { workerData: end });
	const timer = setInterval(() => {
		asked += NAP_MS;
		if (performance.timeOrigin + performance.now() < end)
			return;
		clearInterval(timer);
		console.log("loop", asked / 1e3, asked / 1e3);
	}, NAP_MS);
} else {
	waits(workerData);
}
