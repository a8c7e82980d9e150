# SPDX-License-Identifier: Apache-2.0
# Perl stacks of known shape: perl_stacks.pl CASE builds one, says what caller() says of it, leaf first ("name file:line", then "."), and stays there.
use strict;
use warnings;

our %case;
our $depth = 0;

# What a profiler is to show: a frame for each sub, string eval and required file; `eval {}` is none.
sub stack_now {
	my ($file, $line) = @_;
	my @stack;
	for (my $i = 1; my @c = caller($i); $i++) {
		my ($name, $text, $is_require) = @c[3, 6, 7];
		if ($name eq '(eval)') {
			next if !defined $text;
			$name = $is_require ? '(require)' : '(eval)';
		}
		push @stack, "$name $file:$line\n";
		($file, $line) = @c[1, 2];
	}
	push @stack, "<main> $file:$line\n" unless $main::without_main;
	s/\(eval \d+\)/(eval)/g for @stack;
	return @stack;
}

sub spin {
	my $says = join '', stack_now(__FILE__, __LINE__ + 3);
	syswrite STDOUT, "$says.\n";
	my $n = 0;
	while (1) { $n++ }
}

# require then finds this text as a module.
sub serve {
	my $text = shift;
	open my $early, '<', \'' or die; # PerlIO::scalar itself is not to be found here
	unshift @INC, sub { open my $in, '<', \$text or die; return $in };
}

sub cheap { return $_[0] <=> $_[1] }

package Shape {
	sub new { return bless { n => 1 }, shift }
	sub area { my $self = shift; return $self->inner(@_) }
	sub inner { main::spin() }
}
package Square { our @ISA = ('Shape'); sub area { my $self = shift; return $self->SUPER::area(@_) } }
package Tied {
	sub TIESCALAR { return bless [], shift }
	sub FETCH { my $self = shift; return $self->deeper }
	sub deeper { main::spin() }
}
package Number {
	use overload '+' => sub { main::plus(@_) }, '""' => sub { 'number' };
	sub new { return bless {}, shift }
}
package Mortal { sub new { return bless {}, shift } sub DESTROY { main::spin() } }

package main;

sub plus { spin() }
sub outer { middle(@_) }
sub middle { spin() }
sub by_name { return spin() + ($a <=> $b) }
sub by_number { $a - $b }
sub by_eval { eval { spin() }; return 0 }
sub after_eval { eval { 1 }; spin(); return 0 }
no warnings 'recursion';
sub recurse { my $n = shift; return $n ? recurse($n - 1) : spin() }
sub catches { my $code = shift; eval { $code->() } }
sub jumps { goto &middle }
sub with_blocks { for my $i (1 .. 2) { if ($i == 2) { foreach my $j (1) { while (1) { spin() } } } } }

%case = (
	nested => sub { outer(1) },
	main_only => sub { spin() },
	method => sub { Square->new->area(3) },
	closure => sub { my $n = 3; my $code = sub { my $m = $n; return sub { spin($m) } }; $code->()->() },
	lexical => sub { use feature 'lexical_subs'; no warnings; my sub hidden { spin() } hidden() },
	blocks => sub { with_blocks() },
	recursion => sub { recurse(200) },
	sort_name => sub { my @s = sort by_name 3, 2, 1; return @s },
	sort_block => sub { my @s = sort { outer($a); $a <=> $b } 3, 2, 1; return @s },
	sort_anonymous => sub { my $by = sub { spin() }; my @s = sort $by 3, 2, 1; return @s },
	sort_eval => sub { my @s = sort { by_eval() } 3, 2, 1; return @s },
	sort_after_eval => sub { my @s = sort { after_eval() } 3, 2, 1; return @s },
	first => sub { require List::Util; List::Util::first(sub { outer($_) }, 1, 2) },
	reduce => sub { require List::Util; List::Util::reduce(sub { List::Util::first(sub { spin() }, $a) }, 1, 2) },
	eval_block => sub { eval { outer() } },
	eval_text => sub { eval "\n\nouter(1);\n"; die $@ if $@ },
	eval_sub => sub { eval "package Made;\nsub made {\n  main::outer(2) }\n1"; Made::made() },
	required => sub { serve("package Loaded;\n\nmain::outer();\n1;\n"); require Loaded },
	used => sub { serve("package Loaded;\nBEGIN {\n main::outer(); }\n1;\n"); require Loaded },
	tied => sub { tie my $t, 'Tied'; my $v = $t },
	tied_eval => sub { tie my $t, 'Tied'; catches(sub { my $v = $t }) },
	overloaded => sub { my $sum = Number->new + 3 },
	destroyed => sub { my $m = Mortal->new; undef $m; 1 },
	signal => sub { local $SIG{USR1} = sub { outer() }; kill USR1 => $$; my $n = 0; $n++ while 1 },
	warned => sub { local $SIG{__WARN__} = sub { outer() }; warn 'x' },
	nested_catches => sub {
		my @s = sort { catches(sub { require List::Util; List::Util::first(sub { after_eval() }, 1) }) } 2, 1;
		return @s;
	},
	regexp => sub { 'abc' =~ /b(?{ outer() })c/ },
	substituted => sub { my $t = 'abc'; $t =~ s/b/outer()/e },
	aliased => sub { no warnings; *other = *original; eval "sub other {\n main::spin() }"; other() },
	jump => sub { jumps() },
	map => sub { my @l = map { outer($_) } 1, 2 },
	thread => sub { require threads; our $without_main = 1; threads->create(sub { outer() })->join },
);

# Where the leaf is somewhere in C: what is to be right is the pairing alone.
my %busy = (
	busy_sort => sub { my @l = map { $_ * 7919 % 1000 } 1 .. 1000; while (1) { my @s = sort { cheap($a, $b) } @l } },
	busy_compare => sub { my @l = map { $_ * 7919 % 1000 } 1 .. 1000; while (1) { my @s = sort by_number @l } },
	busy_first => sub { require List::Util; my @l = 1 .. 1000; while (1) { my $f = List::Util::first(sub { $_ == 999 }, @l) } },
	busy_calls => sub { my $o = Number->new; while (1) { my $t = "$o"; my $m = eval { cheap(1, 2) }; my $c = eval "cheap(3, $m)" } },
);

my $name = $ARGV[0] // 'nested';
if (my $busy = $busy{$name}) {
	syswrite STDOUT, ".\n";
	$busy->();
} elsif ($name eq 'all') {
	syswrite STDOUT, join(' ', sort keys %case) . "\n";
} else {
	$case{$name}->();
}
