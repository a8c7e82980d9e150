<?php
// Does nothing but go from PHP to C and back.

function by_sort($a) { usort($a, function ($x, $y) { return $x - $y; }); return $a; }
function by_map($a) { return array_map('twice', $a); }
function twice($x) { return $x * 2; }
function by_generator() { foreach (numbers() as $x); }
function numbers() { for ($i = 0; $i < 10; $i++) yield $i; }
function by_fiber() { $f = new Fiber(function () { array_map('twice', [1, 2, 3]); Fiber::suspend(1); }); $f->start(); $f->resume(); }
function by_nesting() { array_map(function ($x) { usort($x, fn($a, $b) => $a - $b); }, [[3, 1, 2], [2, 1]]); }
function by_frees() { array_map(function ($x) { $o = new Freed; return $x; }, [1, 2]); } // its destructor runs when the closure has ended
class Freed { function __destruct() { touched($this); } }
function touched($x) { return strlen(get_class($x)); }
function by_pattern() { return preg_replace_callback('/[a-m]+/', function ($found) { return strrev($found[0]); }, 'callbacks among the matches'); }
function by_string() { return "" . new Text; }
class Text { function __toString() { return implode('', array_map('twice', [1, 2])); } }

echo "ready\n";
while (true) {
	by_sort([5, 2, 8, 1, 9, 3]);
	by_map([1, 2, 3, 4, 5]);
	by_generator();
	by_fiber();
	by_nesting();
	by_frees();
	by_pattern();
	by_string();
}
