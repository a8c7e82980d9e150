# SPDX-License-Identifier: Apache-2.0
# walk.pl END_NS FOLDER: calls its own subs at random, by all kinds of calls, and forks in the middle of it. Logs as oracle.py says into a file of FOLDER for each process.
use strict;
use warnings;
no warnings 'recursion';
use List::Util;
use POSIX ();
use Time::HiRes;

my ($end, $folder) = @ARGV;
my ($own_end, $generation, $next) = ($end, 0, '');
my (@records, @trail, @children);
our $depth_of;

sub now { return sprintf '%.0f', Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) * 1e9 }
sub note { push @records, now() . " $$ $_[0] " . ($_[1] // '') }

sub begin {
	@records = ();
	note('R', 'perl');
	note('m', $_) for @trail;
	note('S');
}

sub finish {
	note('Z');
	open my $file, '>', "$folder/$$." . now() . '.txt' or die $!;
	print $file map { "$_\n" } @records;
	close $file;
}

sub have_child {
	shift @children while @children && waitpid($children[0], POSIX::WNOHANG()) > 0;
	return if $generation > 2 || @children > 1 || $end - now() < 1e8;
	my $pid = fork;
	if ($pid) {
		push @children, $pid;
		return;
	}
	syscall(157, 1, 9, 0, 0, 0); # prctl: it dies with its parent
	srand;
	@children = ();
	$generation++;
	$own_end = now() + 2e7 + rand 5e8;
	$own_end = $end if $own_end > $end;
	begin();
}

# What is logged of the call, and the call.
my @ways = (
	['', 'sN($depth - 1)'], ['', 'eval { sN($depth - 1) }'], ['', 'main->can("sN")->($depth - 1)'],
	['!', 'do { local $depth_of = $depth - 1; my @sorted = sort { sN($depth_of); 0 } 1, 2 }'],
	['!', '&List::Util::first(\&sN, $depth - 1)'],
);

for my $n (0 .. 7) {
	my $text = "sub s$n { my (\$depth) = \@_ ? \@_ : (\$_); my \$how; my \$name = \$next . 'main::s$n'; \$next = ''; note('E', \$name); push \@trail, \$name;\n"
		. "for my \$turn (0 .. rand 3) { last if now() > \$own_end; \$how = int rand 60;\n"
		. "if (\$how < 20) { for my \$i (1 .. rand 5000) { } }\n"
		. "elsif (\$how == 20) { note('C'); Time::HiRes::usleep(rand 1000); note('S') }\n"
		. "elsif (\$how == 21) { note('C'); have_child(); note('S') }\n"
		. "elsif (\$depth > 0) { note('C');\n";
	for my $k (0 .. $#ways) {
		my ($mark, $way) = @{$ways[$k]};
		my $callee = int rand 8;
		$way =~ s/N/$callee/g;
		$text .= "if (\$how % " . @ways . " == $k) { \$next = '$mark'; $way; note('B', 1) }\n";
	}
	eval "$text } } pop \@trail; note('L'); return 0 }\n1" or die "$@ in $text";
}

push @trail, '<main>';
begin();
while (now() < $own_end) {
	no strict 'refs';
	note('C');
	&{'s' . int rand 8}(7);
	note('B', 1);
}
note('C');
waitpid $_, 0 for @children;
note('S');
finish();
POSIX::_exit(0);
