<?php
// SPDX-License-Identifier: Apache-2.0
// short.php MILLISECONDS: as short.py.

function used()
{
	$used = getrusage();
	return $used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"] + ($used["ru_utime.tv_usec"] + $used["ru_stime.tv_usec"]) / 1e6;
}

function leaf($end)
{
	$begin = used();
	$count = 0;
	while (used() < $end)
		for ($i = 0; $i < 2000; $i++)
			$count += $i;
	return used() - $begin;
}

function work($end)
{
	return leaf($end) * 1000;
}

printf("%.1f\n", work($argv[1] / 1000));
