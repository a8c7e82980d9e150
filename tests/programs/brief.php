<?php
// SPDX-License-Identifier: Apache-2.0
// Compiles busy(), then forks children one after the other, each of which is in <main>, and for nearly all of its 20 ms in busy, which <main> called. `php brief.php SECONDS`.

function busy($end)
{
	$x = 1;
	while (hrtime(true) < $end)
		for ($i = 0; $i < 1000; $i++)
			$x = ($x * 31 + $i) & 0xffff;
	return $x;
}

$end = hrtime(true) + (int)($argv[1] * 1e9);
busy(hrtime(true) + 100000000);
while (hrtime(true) < $end) {
	$pid = pcntl_fork();
	if (!$pid) {
		busy(hrtime(true) + 20000000);
		exit;
	}
	pcntl_waitpid($pid, $status);
}
