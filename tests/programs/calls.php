<?php
// Does nothing but go from PHP to C and back.

function by_sort($a) { usort($a, function ($x, $y) { return $x - $y; }); return $a; }
function by_map($a) { return array_map('twice', $a); }
function twice($x) { return $x * 2; }
function by_generator() { foreach (numbers() as $x); }
function numbers() { for ($i = 0; $i < 10; $i++) yield $i; }
function by_fiber() { $f = new Fiber(function () { array_map('twice', [1, 2, 3]); Fiber::suspend(1); }); $f->start(); $f->resume(); }
function by_nesting() { array_map(function ($x) { usort($x, fn($a, $b) => $a - $b); }, [[3, 1, 2], [2, 1]]); }

echo "ready\n";
while (true) {
	by_sort([5, 2, 8, 1, 9, 3]);
	by_map([1, 2, 3, 4, 5]);
	by_generator();
	by_fiber();
	by_nesting();
}
