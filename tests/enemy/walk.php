<?php
// SPDX-License-Identifier: Apache-2.0
// walk.php END_NS FOLDER: calls its own functions at random: plainly, from sorts and maps, as generators; and forks in the middle of it. Logs as oracle.py says into a file of FOLDER for each process.
[, $end, $folder] = $argv;
$end = $own_end = (int)$end;
$generation = 0;
$records = [];
$trail = ['<main>'];
$children = [];

function note($letter, $name = '') { global $records; $records[] = hrtime(true) . ' ' . $letter . ' ' . $name; }

function begin() {
	global $records, $trail;
	$records = [];
	note('R', 'php');
	foreach ($trail as $name) note('m', $name);
	note('S');
}

function finish() {
	global $records, $folder;
	note('Z');
	$pid = getmypid();
	$lines = '';
	foreach ($records as $record) $lines .= preg_replace('/ /', " $pid ", $record, 1) . "\n";
	file_put_contents("$folder/$pid." . hrtime(true) . '.txt', $lines);
}

function have_child() {
	global $end, $own_end, $generation, $children;
	while ($children && pcntl_waitpid($children[0], $status, WNOHANG) > 0) array_shift($children);
	if ($generation > 2 || count($children) > 1 || $end - hrtime(true) < 100000000) return;
	$pid = pcntl_fork();
	if ($pid) {
		$children[] = $pid;
		return;
	}
	mt_srand();
	$children = [];
	$generation++;
	$own_end = min($end, hrtime(true) + 20000000 + mt_rand(0, 500000000));
	begin();
}

function enter($name) {
	global $trail;
	$trail[] = $name;
	note('E', $name);
}

// A function of PHP's own, which cannot log.
function through($name) {
	global $trail;
	$trail[] = $name;
	note('m', $name);
}

function leave() {
	global $trail;
	array_pop($trail);
	note('L');
}

function spin($n) { $x = 0; for ($i = 0; $i < $n; $i++) $x += $i % 7; return $x; }

function wander_on($how) {
	if ($how == 20) { note('C'); usleep(mt_rand(0, 1000)); note('S'); }
	if ($how == 21) { note('C'); have_child(); note('S'); }
}

// How another one is called: what stands on the stack between the two, and the function.
function through_sort($depth) {
	enter('through_sort');
	$list = [1, 2];
	note('C');
	through('usort');
	usort($list, function ($a, $b) use ($depth) { enter('!' . __FUNCTION__); note('C'); step($depth); note('B', '1'); leave(); return 0; });
	array_pop($GLOBALS['trail']);
	note('B', '2');
	leave();
}

function through_map($depth) {
	enter('through_map');
	note('C');
	through('array_map');
	array_map('mapped', [$depth]);
	array_pop($GLOBALS['trail']);
	note('B', '2');
	leave();
}

function mapped($depth) {
	enter('!mapped');
	note('C');
	step($depth);
	note('B', '1');
	leave();
}

function through_generator($depth) {
	enter('through_generator');
	note('C');
	foreach (numbers($depth) as $x) { note('B', '1'); note('C'); note('m', 'numbers'); }
	note('B', '1');
	leave();
}

function numbers($depth) {
	enter('numbers');
	note('C');
	step($depth);
	note('B', '1');
	leave();
	yield 1;
}

function step($depth) {
	global $own_end;
	enter('step');
	for ($turns = mt_rand(1, 3); $turns && hrtime(true) < $own_end; $turns--) {
		$how = mt_rand(0, 40);
		if ($how < 20) {
			$x = 0;
			for ($i = 0, $n = mt_rand(0, 20000); $i < $n; $i++) $x += $i % 7;
		} elseif ($how < 22) {
			wander_on($how);
		} elseif ($depth > 0) {
			note('C');
			if ($how < 26) step($depth - 1);
			elseif ($how < 31) through_sort($depth - 1);
			elseif ($how < 36) through_map($depth - 1);
			else through_generator($depth - 1);
			note('B', '1');
		}
	}
	leave();
}

begin();
while (hrtime(true) < $own_end) {
	note('C');
	step(6);
	note('B', '1');
}
note('C');
foreach ($children as $child) pcntl_waitpid($child, $status);
note('S');
finish();
