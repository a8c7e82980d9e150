<?php
// Prints the stack that it then stays in for good, as debug_backtrace tells it, one frame "NAME\tFILE\tLINE" per line, leaf first, then "entries N": how often PHP's loop is
// entered on the C stack; then "ready". `php spin.php CASE`.

function frames()
{
	$trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
	$text = '';
	for ($i = 1; $i <= count($trace); $i++) { // the line of a frame is where the one before was called
		$file = $trace[$i - 1]['file'] ?? '';
		$name = '<main>';
		if ($i == count($trace) && $file == '')
			break; // called without a script around it
		if ($i < count($trace)) {
			$name = $trace[$i]['function'];
			if (in_array($name, ['include', 'require', 'require_once']))
				$name = '<include ' . basename($file) . '>';
			elseif ($name == 'eval')
				$name = '<eval>';
			elseif (isset($trace[$i]['class']))
				$name = strtok($trace[$i]['class'], "\0") . '::' . $name; // of an anonymous class
		}
		$text .= $name . "\t" . $file . "\t" . ($i == 1 ? SPIN_LINE : $trace[$i - 1]['line'] ?? 0) . "\n";
	}
	return $text;
}

function spin()
{
	global $entries;
	$x = 1;
	$text = frames();
	echo $text, "entries $entries\nready\n";
	while (true) { $x = ($x * 31 + 7) & 0xffff; }
}
const SPIN_LINE = __LINE__ - 2;

function spin_in_c()
{
	global $entries;
	$text = str_repeat('x', 1000000);
	echo str_replace("\t" . SPIN_LINE . "\n", "\t" . (__LINE__ + 2) . "\n", frames()), "entries $entries\nready\n";
	while (true)
		hash('sha256', $text);
}

function spin_empty() // nothing in the loop has PHP save where it is
{
	global $entries;
	echo str_replace("\t" . SPIN_LINE . "\n", "\t" . (__LINE__ + 1) . "\n", frames()), "entries $entries\nready\n";
	while (true);
}

function resume_often() // the stack that it tells is that of its generators
{
	global $entries;
	echo "spin\nready\n";
	while (true)
		foreach (count_up() as $x) { }
}
function count_up() { yield 1; yield 2; }

class Base
{
	public $f;
	function method($f) { return $f(); }
	static function stat($f) { return (new static)->method($f); }
	function __call($name, $args) { return $args[0](); }
	static function __callStatic($name, $args) { return $args[0](); }
	function __toString() { return ($this->f)(); }
	function __get($name) { return ($this->f)(); }
	function in_closure() { return (function () { spin(); })(); }
}
class Derived extends Base implements ArrayAccess, IteratorAggregate
{
	#[\ReturnTypeWillChange]
	function offsetGet($i) { return ($this->f)(); }
	#[\ReturnTypeWillChange]
	function offsetExists($i) { return true; }
	#[\ReturnTypeWillChange]
	function offsetSet($i, $v) { }
	#[\ReturnTypeWillChange]
	function offsetUnset($i) { }
	function getIterator(): Iterator { spin(); }
}
class Dying { function __destruct() { spin(); } }

function recurse($n) { $n ? recurse($n - 1) : spin(); }
function mixed($n) { $n ? array_map(function ($n) { mixed($n); }, [$n - 1]) : spin(); }
function sort_recursively($n)
{
	$a = [1, 2];
	$n ? usort($a, fn($a, $b) => sort_recursively($n - 1)) : spin();
}
function generate() { yield 1; spin(); yield 2; }
function delegate($n)
{
	yield 0;
	if ($n)
		yield from delegate($n - 1);
	else
		yield from generate();
}
function through_usort()
{
	$a = [3, 1, 2];
	usort($a, function ($a, $b) {
		if ($a != $b)
			spin();
		return 0;
	});
}

$cases = [
	'plain' => [1, function () { spin(); }],
	'c' => [1, function () { spin_in_c(); }],
	'empty' => [1, function () { spin_empty(); }],
	'static' => [1, function () { Derived::stat('spin'); }],
	'magic' => [1, function () { (new Base)->nothing(function () { Base::nothing('spin'); }); }],
	'closure' => [1, function () { (new Derived)->in_closure(); }],
	'arrow' => [1, function () { (fn() => spin())(); }],
	'anonymous' => [1, function () { (new class extends Base { function run() { spin(); } })->run(); }],
	'usort' => [2, 'through_usort'],
	'map' => [2, function () { array_map('spin', [], []) ?: array_map(function ($x) { spin(); }, [1]); }],
	'call' => [2, function () { $call = 'call_user_func_array'; $call([new Derived, 'method'], [function () { array_map(fn($x) => $x, [1]); spin(); }]); }],
	'offset' => [2, function () { $d = new Derived; $d->f = 'spin'; return $d['x']; }],
	'string' => [2, function () { $d = new Derived; $d->f = 'spin'; return "$d"; }],
	'get' => [2, function () { $d = new Derived; $d->f = 'spin'; return $d->nothing; }],
	'iterator' => [2, function () { foreach (new Derived as $x) { } }],
	'destruct' => [2, function () { $d = new Dying; $d = null; }],
	'autoload' => [2, function () { spl_autoload_register(function ($name) { spin(); }); new NotThere; }],
	'generator' => [2, function () { foreach (generate() as $x) { } }],
	'next' => [2, function () { $g = generate(); $g->current(); $g->next(); }],
	'resume' => [2, 'resume_often'],
	'delegate' => [2, function () { foreach (delegate(2) as $x) { } }],
	'delegates' => [2, function () { foreach (delegate(40) as $x) { } }],
	'include' => [1, function () { include __DIR__ . '/spin_included.php'; }],
	'eval' => [1, function () { eval("\n\nfunction evaluated() {\n\tspin();\n}\nevaluated();"); }],
	'recursion' => [1, function () { recurse(200); }],
	'mixed' => [51, function () { mixed(50); }],
	'sorts' => [21, function () { sort_recursively(20); }],
	'shutdown' => [1, null],
	'fiber' => [2, function () { (new Fiber(function () { Fiber::suspend(1); }))->start(); (new Fiber(function () { spin(); }))->start(); }],
	'resumed' => [2, function () { $f = new Fiber(function () { Fiber::suspend(1); spin(); }); $f->start(); $f->resume(); }],
	'fiber_generator' => [3, function () { (new Fiber(function () { foreach (delegate(1) as $x) { } }))->start(); }],
];
if ($argv[1] == 'shutdown')
	register_shutdown_function(function () { spin(); });
[$entries, $run] = $cases[$argv[1]];
if ($run)
	$run();
