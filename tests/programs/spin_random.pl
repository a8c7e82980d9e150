# SPDX-License-Identifier: Apache-2.0
# Calls its subs at random, in all the ways that Perl has, for ever. Prints a line of JSON: {"sites": {line: [sub, callee, goes through C, frame between]}}. Each sub has a hundred lines of
# its own, and each of them one call: the line that a sub is at says what is called there.
use strict;
use warnings;
no warnings 'recursion';
use List::Util;

use constant SUBS => 12;
our $depth = 12;
our (@code, @number, @tied);
my $random = 1;
my %site;

# The ways; N is the callee's number, LINE the line. [text, goes through C, name of the frame between that runs it]
my @ways = (
	['sN()', 0], ['main->sN', 0], ['eval { sN() }', 0], ['map { sN() } 1', 0], ['$code[N]->()', 0],
	['eval qq{#line LINE "random.pl"\nsN()}', 0, '(eval)'],
	['@x = sort { sN(); 0 } 1, 2', 1], ['@x = sort sN 1, 2', 1],
	['&List::Util::first(\&sN, 1)', 1], ['List::Util::first(sub { sN(); 1 }, 1)', 1, 'main::__ANON__'], ['List::Util::reduce(sub { sN() }, 1, 2)', 1, 'main::__ANON__'],
	['List::Util::any(sub { eval { sN() }; 1 }, 1)', 1, 'main::__ANON__'],
	['$y = $number[N] + 1', 1], ['$y = $tied[N]', 1], ['do { my $object = bless [], "MortalN"; undef $object }', 1], ['do { local $SIG{__WARN__} = \&sN; warn "x" }', 1],
);

sub choose { $random = ($random * 1103515245 + 12345) % 2147483648; return ($random >> 8) % $_[0] }

for my $n (0 .. SUBS - 1) {
	my $line = 100 * ($n + 1);
	my $text = "#line $line \"random.pl\"\nsub s$n { local \$depth = \$depth - 1; my (\$y, \@x) = 0; for (1 .. 30) { \$y++ } return 0 if \$depth < 0; my \$k = choose(" . @ways . ");\n";
	for my $k (0 .. $#ways) {
		my ($way, $callee) = ($ways[$k][0], choose(SUBS));
		my $at = $line + 1 + $k;
		$way =~ s/LINE/$at/;
		$way =~ s/N(?!_)/$callee/g;
		$text .= "if (\$k == $k) { $way }\n";
		$site{$at} = "[\"main::s$n\",\"main::s$callee\",$ways[$k][1],\"" . ($ways[$k][2] // '') . '"]';
	}
	eval "${text}return 0 }\n1" or die "$@ in $text";
}
for my $n (0 .. SUBS - 1) {
	no strict 'refs';
	*{"Tied${n}::TIESCALAR"} = sub { return bless [], shift };
	*{"Tied${n}::FETCH"} = \&{"main::s$n"};
	*{"Mortal${n}::DESTROY"} = \&{"main::s$n"};
	eval "package Number$n; use overload '+' => \\&main::s$n; 1" or die $@;
	$code[$n] = \&{"main::s$n"};
	$number[$n] = bless [], "Number$n";
	tie $tied[$n], "Tied$n";
}

$| = 1;
print '{"sites":{', join(',', map { "\"$_\":$site{$_}" } sort keys %site), "}}\n";
while (1) {
	no strict 'refs';
	&{'s' . choose(SUBS)}();
}
