# SPDX-License-Identifier: Apache-2.0
# short.pl MILLISECONDS: as short.py.

sub used
{
	my ($user, $system) = times;
	return $user + $system;
}

sub leaf
{
	my ($end) = @_;
	my ($begin, $count) = (used(), 0);
	while (used() < $end) {
		$count += $_ for 1 .. 2000;
	}
	return used() - $begin;
}

sub work
{
	return leaf(@_) * 1000;
}

printf("%.1f\n", work($ARGV[0] / 1000));
