#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh run|test|matrix|backends: installs the missing Debian packages that ./run needs (test: ./test; the others: its options), as root. The lists have one line
# per package. A second word is a command that replaces the package, wherever it comes from. Does nothing when nothing is missing.
set -eu

run_packages() {
	cat <<-'EOF'
	gcc
	libc6-dev
	python3
	meson meson
	ninja-build ninja
	pkg-config pkg-config
	clang clang
	bpftool
	libbpf-dev
	libelf-dev
	libdw-dev
	zlib1g-dev
	liblzma-dev
	libzstd-dev
	libsqlite3-dev
	libyaml-dev
	libiberty-dev
	libseccomp-dev
	libcapstone-dev
	EOF
}

# libbz2 is for libdw, where the library is linked statically. libclang-rt has libFuzzer. libcurl4 is loaded for debuginfod. cargo-web is Debian 12's current Rust (its plain cargo is too
# old for the registry). cargo, go, node and chromium run the readers that check our files. libbpf-tools are measured for comparison. qemu boots other kernels, mmdebstrap unpacks other Debians.
test_packages() {
	run_packages
	cat <<-'EOF'
	g++
	libbz2-dev
	libcmocka-dev
	libclang-rt-14-dev
	binutils
	dwz dwz
	elfutils
	libcurl4
	universal-ctags ctags
	linux-perf perf
	libbpf-tools runqlat
	musl-tools musl-gcc
	gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
	libc6-dev-arm64-cross
	util-linux
	strace strace
	xz-utils xz
	libcap2-bin setcap
	groff groff
	zsh zsh
	cargo-web cargo
	golang-go go
	nodejs node
	npm npm
	perl
	php8.2-cli
	php8.2-fpm php-fpm8.2
	php8.2-opcache
	openjdk-17-jdk-headless jcmd
	lua5.4 lua5.4
	luajit luajit
	ruby ruby
	openssl openssl
	erlang-base erl
	erlang-dev
	python3-pip pip3
	python3-greenlet
	python3-gevent
	python3-grpcio
	ca-certificates
	chromium chromium
	qemu-system-x86 qemu-system-x86_64
	qemu-system-arm qemu-system-aarch64
	busybox-static
	cpio cpio
	mmdebstrap mmdebstrap
	EOF
}

# maven fetches SkyWalking's server.
backends_packages() {
	test_packages
	cat <<-'EOF'
	maven mvn
	EOF
}

# maven fetches async-profiler. mono-mcs compiles for .NET. The others write perf maps.
matrix_packages() {
	test_packages
	cat <<-'EOF'
	arch-test arch-test
	maven mvn
	mono-mcs mcs
	unzip unzip
	EOF
}

is_installed() { # PACKAGE [COMMAND]
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] || { [ $# -gt 1 ] && command -v "$2" >/dev/null 2>&1; }
}

missing_of() { # LIST: prints the packages that are not installed
	"$1" | while read -r package command; do
		is_installed "$package" ${command:+"$command"} || printf '%s ' "$package"
	done
}

quietly() { # TEXT COMMAND...: prints one line; the command's output only if it fails
	printf '%s ... ' "$1" >&2
	shift
	log=$(mktemp)
	if "$@" >"$log" 2>&1 </dev/null; then
		echo done >&2
		rm -f "$log"
	else
		echo failed >&2
		tail -n 20 "$log" >&2
		rm -f "$log"
		return 1
	fi
}

install() { # PACKAGE...
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

case ${1:-} in
run | test | matrix | backends) list=$1_packages ;;
*) echo "usage: $0 run|test|matrix|backends" >&2; exit 2 ;;
esac
missing=$(missing_of "$list")
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
	echo "These packages (Debian's names) are missing, and there is no apt-get to install them: $missing" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "Missing packages; as root: apt-get install --no-install-recommends $missing" >&2
	exit 1
fi
# Tries the package lists on the machine first: an update takes longer than the installation.
# shellcheck disable=SC2086
if [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' 2>/dev/null | head -n 1)" ] && \
	quietly "installing $missing" install $missing; then
	exit 0
fi
quietly "updating the package lists" apt-get update -q || true
# shellcheck disable=SC2086
quietly "installing $missing" install $missing && exit 0
# A package that the mirror has lost must not prevent the others.
status=0
for package in $missing; do
	quietly "installing $package" install "$package" || status=1
done
[ "$status" = 0 ] || echo "Not installed (the mirror does not have them?): $(missing_of "$list")" >&2
exit "$status"
