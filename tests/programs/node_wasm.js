// SPDX-License-Identifier: Apache-2.0
/* WebAssembly that spins, and that calls back to a function that does: (module (import "m" "b" (func $back (param i32) (result i32)))
 *   (func (export "spin") (param i32) (result i32) (local i32) (loop (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
 *     (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 1))
 *   (func (export "through") (param i32) (result i32) (call $back (local.get 0)))) */
'use strict';
const module_ = new WebAssembly.Module(Buffer.from('0061736d01000000' + '01060160017f017f' + '020701016d01620000' + '0303020000' + '071202047370696e0001077468726f7567680002' +
	'0a25021c01017f034020' + '01411f6c20006a2101200041016b22000d000b20010b' + '0600200010000b', 'hex'));
let sink = 0;

function back(n) {
	let x = sink | 0;
	for (let i = 0; i < n; i++)
		x = (x * 31 + i) | 0;
	return sink = x;
}

const { spin, through } = new WebAssembly.Instance(module_, { m: { b: back } }).exports;

function spins() { return spin(20000000); }
function calls() { return through(20000000); }

console.log('ready');
for (;;)
	sink += spins() + calls();
