# SPDX-License-Identifier: Apache-2.0
# Spins for ever in a stack that it knows: spin.pl SCENARIO. Prints a line of JSON for each thread that spins, as caller() tells its stack: {"tid", "stack": [[name, file, first line,
# line], ...] root to leaf, "leaf_lines"}; of the leaf the line is one of leaf_lines, and a first line of 0 is not known. No modules but those of perl itself.
use strict;
use warnings;
no warnings 'recursion';
use B ();
use Config;
use List::Util qw(first reduce);

our $without_main = 0; # in other threads there is no frame of the main program

# Of a sub that has a name and is the one of that name still.
sub first_line {
	no strict 'refs';
	my $start = $_[0] !~ /__ANON__|\(/ && defined &{$_[0]} ? B::svref_2object(\&{$_[0]})->START : undef;
	return $start && $start->isa('B::COP') ? $start->line : 0;
}

sub quoted { return '["' . join('","', @_[0, 1]) . '",' . join(',', @_[2, 3]) . ']' }

# A frame for each sub, string eval and required file; `eval {}` is none.
sub say_stack {
	my ($file, $line) = @_;
	my @stack;
	for (my $i = 1; my @c = caller($i); $i++) {
		my ($name, $text, $is_require) = @c[3, 6, 7];
		next if $name eq '(eval)' && !defined $text;
		$name = '(require)' if $is_require;
		unshift @stack, [$name, $file, first_line($name), $line];
		($file, $line) = @c[1, 2];
	}
	unshift @stack, ['<main>', $file, 0, $line] unless $without_main;
	$_->[1] =~ s/\(eval \d+\)/(eval)/, $_->[1] =~ s{.*/}{} for @stack;
	my $tid = syscall($Config{archname} =~ /aarch64/ ? 178 : 186);
	my $leaf = $stack[-1][3];
	my $says = sprintf "{\"tid\":%d,\"stack\":[%s],\"leaf_lines\":[%s]}\n", $tid, join(',', map { quoted(@$_) } @stack), join(',', $leaf .. $leaf + 5);
	syswrite STDOUT, $says;
}

sub spin {
	say_stack(__FILE__, __LINE__);
	my $n = 0;
	while (1) {
		$n++;
		$n = $n % 1000;
	}
}

package Shape {
	sub new { return bless { n => 1 }, shift }
	sub area { my $self = shift; return $self->inner(@_) }
	sub inner { my $self = shift; return main::spin($self) }
}
package Square { our @ISA = ('Shape'); sub area { my $self = shift; return $self->SUPER::area(@_) } }
package Tied { sub TIESCALAR { return bless [], shift } sub FETCH { my $self = shift; return $self->deeper } sub deeper { return main::spin() } }
package Number { use overload '+' => \&plus; sub new { return bless {}, shift } sub plus { return main::outer(@_) } }
package Mortal { sub new { return bless {}, shift } sub DESTROY { return main::spin() } }

package main;

sub outer { return middle(@_) }
sub middle { return spin() }
sub by_name { return outer($a, $b) }
sub catches { my $code = shift; my $value = eval { $code->() }; die $@ if $@; return $value }

sub recurse {
	my $n = shift;
	return $n ? recurse($n - 1) : spin();
}

sub sort_recursively {
	my $n = shift;
	return spin() if !$n;
	my @sorted = sort { sort_recursively($n - 1) } 2, 1;
	return @sorted;
}

# require finds this text as a module.
sub serve {
	my $text = shift;
	open my $early, '<', \'' or die; # PerlIO::scalar itself is not to be found here
	unshift @INC, sub { open my $in, '<', \$text or die; return $in };
}

my %scenario = (
	nested => sub { outer(1) },
	method => sub { Square->new->area(3) },
	closure => sub { my $n = 3; my $code = sub { my $m = $n; return sub { spin($m) } }; $code->()->() },
	eval_block => sub { eval { outer() } },
	sort_block => sub { my @s = sort { outer($a); $a <=> $b } 3, 2, 1 },
	sort_name => sub { my @s = sort by_name 3, 2, 1 },
	sort_catches => sub { my @s = sort { catches(sub { outer() }) } 3, 2, 1 },
	first => sub { first { outer($_) } 1, 2 },
	reduce => sub { reduce { first { spin() } $a } 1, 2 },
	eval_text => sub { eval "\n\nouter(1);\n"; die $@ if $@ },
	eval_sub => sub { eval "package Made;\nsub made {\n  main::outer(2) }\n1"; Made::made() },
	required => sub { serve("package Loaded;\n\nmain::outer();\n1;\n"); require Loaded },
	recursion => sub { recurse(200) },
	sorts => sub { sort_recursively(20) },
	tied => sub { tie my $t, 'Tied'; my $v = $t },
	overloaded => sub { my $sum = Number->new + 3 },
	alarm => sub { local $SIG{ALRM} = sub { outer() }; kill ALRM => $$; my $n = 0; $n++ while 1 },
	warned => sub { local $SIG{__WARN__} = sub { outer() }; warn 'x' },
	destroyed => sub { my $m = Mortal->new; undef $m; 1 },
	threads => sub {
		require threads;
		{
			local $without_main = 1; # new threads copy it
			threads->create($_)->detach for sub { outer() }, sub { my @s = sort by_name 2, 1 };
		}
		recurse(3);
	},
	fork => sub {
		if (fork == 0) {
			syscall($Config{archname} =~ /aarch64/ ? 167 : 157, 1, 9); # prctl(PR_SET_PDEATHSIG, SIGKILL)
			outer();
		}
		wait;
	},
);

$scenario{$ARGV[0]}->();
