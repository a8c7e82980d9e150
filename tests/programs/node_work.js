// SPDX-License-Identifier: Apache-2.0
/* Work as real programs do it, through the library and through calls of all kinds, for argv[2] seconds or for ever. Prints "ready" once all is compiled. V8's own profiler sees
 * the same run with --cpu-prof, which writes when the program ends. */
'use strict';

const ITEMS = 400;

class Shape {
	constructor(size) { this.size = size; }
	area() { return this.size * this.size; }
}
class Circle extends Shape {
	area() {
		let sum = 0;
		for (let i = 1; i < 20; i++)
			sum += this.size / i;
		return sum;
	}
}
class Ring extends Circle {
	area() { return super.area() - 1; }
}

function random(seed) {
	let x = seed;
	return function next() {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
		return x >>> 0;
	};
}
const next = random(7);
const words = Array.from({ length: ITEMS }, () => next().toString(36));

function shapes() {
	let sum = 0;
	for (let i = 0; i < 3000; i++)
		sum += (i % 3 === 0 ? new Shape(i) : i % 3 === 1 ? new Circle(i) : new Ring(i)).area();
	return sum;
}

function compareWords(a, b) {
	return a < b ? -1 : a > b ? 1 : 0;
}

function sorts() {
	return words.slice().sort(compareWords)[0];
}

function reviveItem(key, value) {
	return typeof value === 'number' ? value + 1 : value;
}

function parses() {
	return JSON.parse(JSON.stringify(words.slice(0, 60).map((word, i) => ({ word, i }))), reviveItem).length;
}

function shout(all) {
	return all.toUpperCase();
}

function replaces() {
	return words.join(' ').replace(/[a-f]+\d/g, shout).length;
}

function* count(n) {
	for (let i = 0; i < n; i++)
		yield i;
}

function generates() {
	let sum = 0;
	for (const i of count(2000))
		sum += i;
	return sum;
}

function tree(depth) {
	return depth ? { left: tree(depth - 1), right: tree(depth - 1) } : null;
}

function weigh(node) {
	return node ? 1 + weigh(node.left) + weigh(node.right) : 0;
}

function trees() {
	return weigh(tree(10));
}

function maps() {
	const counts = new Map();
	for (const word of words)
		counts.set(word.slice(0, 2), (counts.get(word.slice(0, 2)) || 0) + 1);
	let sum = 0;
	counts.forEach(function add(value) { sum += value; });
	return sum;
}

function thrower(depth) {
	if (!depth)
		throw new RangeError('deep');
	return thrower(depth - 1) + 1;
}

function throws() {
	let caught = 0;
	for (let i = 0; i < 30; i++) {
		try {
			thrower(10);
		} catch (error) {
			caught += error instanceof RangeError;
		}
	}
	return caught;
}

function multiply(a, b, n) {
	const product = new Float64Array(n * n);
	for (let i = 0; i < n; i++)
		for (let j = 0; j < n; j++) {
			let sum = 0;
			for (let k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			product[i * n + j] = sum;
		}
	return product;
}
const matrix = Float64Array.from({ length: 48 * 48 }, () => next() / 2 ** 32);

function matrices() {
	return multiply(matrix, matrix, 48)[0];
}

const kinds = [shapes, sorts, parses, replaces, generates, trees, maps, throws, matrices];
let kept = 0;

function work() {
	for (const kind of kinds)
		kept += Number(kind()) ? 1 : 0;
}

function workFor(seconds) {
	const end = Date.now() + 1e3 * seconds;
	while (Date.now() < end)
		work();
}

workFor(2);
console.log('ready');
workFor(Number(process.argv[2] || 1e9));
