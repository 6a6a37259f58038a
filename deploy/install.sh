#!/bin/sh
# Installs edge-infer from a release: sh install.sh --help
set -eu

usage() {
	cat <<'TEXT'
Installs edge-infer for this machine, after the files' SHA-256 checksums were verified.

usage: sh install.sh [--from DIR|URL] [--key KEY] [--package|--archive] [--prefix DIR]

  --from DIR|URL  directory or web address with the files of one release (default: the latest release on GitHub)
  --key KEY       public key of minisign that must have signed the checksums (needs the program minisign)
  --package       install the Debian packages, with the service; needs root (default for root on Debian and Ubuntu)
  --archive       install the program and ONNX Runtime below --prefix (default otherwise)
  --prefix DIR    (default: /usr/local for root, ~/.local for others)
TEXT
}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

wrong_usage() {
	echo "install.sh: $*; see sh install.sh --help" >&2
	exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# architecture prints the architecture as release files name it.
architecture() {
	[ "$(uname -s)" = Linux ] || fail "there are releases for Linux only, this is $(uname -s)"
	case $(uname -m) in
	x86_64 | amd64) echo amd64 ;;
	aarch64 | arm64) echo arm64 ;;
	*) fail "there are releases for x86-64 and 64-bit ARM only, this is $(uname -m)" ;;
	esac
}

# fetch NAME: copies a file of the release to $work.
fetch() {
	case $from in
	http://* | https://*)
		if have curl; then
			curl -fsSL -o "$work/$1" "$from/$1" || fail "cannot download $from/$1"
		elif have wget; then
			wget -q -O "$work/$1" "$from/$1" || fail "cannot download $from/$1"
		else
			fail "curl or wget is needed to download; install one, or use --from DIR"
		fi
		;;
	*)
		[ -f "$from/$1" ] || fail "$from has no file $1"
		cp "$from/$1" "$work/$1" || fail "cannot read $from/$1"
		;;
	esac
}

# named PREFIX SUFFIX: prints the only name in SHA256SUMS that begins with PREFIX and a digit and ends in SUFFIX.
named() {
	names=$(sed -n 's/^[0-9a-f]\{64\} [ *]//p' "$work/SHA256SUMS" | while read -r name; do
		case $name in
		*/*) ;;
		"$1"[0-9]*"$2") echo "$name" ;;
		esac
	done)
	case $names in
	'') fail "SHA256SUMS of $from lists no $1*$2" ;;
	*"
"*) fail "$from has several releases: $(echo "$names" | tr '\n' ' ')" ;;
	esac
	echo "$names"
}

# verify NAME: ends the script unless the file in $work has its checksum.
verify() {
	want=$(sed -n 's/^\([0-9a-f]\{64\}\) [ *]\(.*\)$/\1 \2/p' "$work/SHA256SUMS" | while read -r sum name; do [ "$name" != "$1" ] || echo "$sum"; done)
	if have sha256sum; then
		got=$(sha256sum <"$work/$1")
	elif have shasum; then
		got=$(shasum -a 256 <"$work/$1")
	else
		fail "sha256sum is needed to verify the files; nothing was installed"
	fi
	[ "${got%% *}" = "$want" ] || fail "$1 does not have the checksum of SHA256SUMS: download it again; nothing was installed"
}

# writable DIR: true if DIR, or the nearest directory above it that exists, may be written to.
writable() {
	dir=$1
	while [ ! -e "$dir" ]; do
		dir=$(dirname "$dir")
	done
	[ -d "$dir" ] && [ -w "$dir" ]
}

# place FILE DIR MODE: puts a file into a directory in one step, so that a running program keeps its old one.
place() {
	new=$2/.$(basename "$1").new
	if ! cp "$1" "$new" || ! chmod "$3" "$new" || ! mv "$new" "$2/$(basename "$1")"; then
		fail "cannot write $2/$(basename "$1")"
	fi
}

install_packages() {
	program=$(named edge-infer_ "_$arch.deb")
	runtime=$(named edge-infer-onnxruntime_ "_$arch.deb")
	for name in "$program" "$runtime"; do
		fetch "$name"
		verify "$name"
	done
	chmod 755 "$work"
	# Settings that were changed stay as they are: nobody can answer where the script comes from a pipe.
	apt-get install -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$work/$program" "$work/$runtime" ||
		fail "apt-get could not install the packages"
	echo
	echo "edge-infer is installed. Try it:       edge-infer --camera demo --frames 30"
	echo "Then set your camera and broker:       sudoedit /etc/edge-infer/edge-infer.yaml"
	echo "and start the service:                 sudo systemctl enable --now edge-infer"
}

install_archive() {
	writable "$prefix" || fail "no permission to write to $prefix: use --prefix DIR, or run this as root"
	archive=$(named edge-infer- "-linux-$arch.tar.gz")
	fetch "$archive"
	verify "$archive"
	mkdir "$work/tree"
	gzip -dc "$work/$archive" | tar xf - -C "$work/tree" || fail "cannot unpack $archive"
	tree=$(echo "$work"/tree/edge-infer-*)
	"$tree/bin/edge-infer" version >/dev/null || fail "the program does not start on this machine (it needs glibc 2.29 or newer); nothing was installed"
	mkdir -p "$prefix/bin" "$prefix/lib/edge-infer" "$prefix/share/doc" || fail "cannot make directories in $prefix"
	# The program comes last.
	place "$tree/lib/edge-infer/libonnxruntime.so.1" "$prefix/lib/edge-infer" 644
	cp -R "$tree/share/." "$prefix/share" || fail "cannot write $prefix/share"
	cp -R "$tree/doc/." "$prefix/share/doc" || fail "cannot write $prefix/share/doc"
	place "$tree/bin/edge-infer" "$prefix/bin" 755
	echo "$("$prefix/bin/edge-infer" version | cut -d ' ' -f 1-2) is in $prefix/bin."
	command=edge-infer
	case :$PATH: in
	*:"$prefix/bin":*) ;;
	*) command=$prefix/bin/edge-infer ;;
	esac
	echo "Try it: $command --camera demo --frames 30"
	! have apt-get || echo "As a service: run this script as root, without --archive."
}

main() {
	from=https://github.com/edge-infer/edge-infer/releases/latest/download
	how=
	prefix=
	key=
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--package | --archive) how=${1#--} ;;
		--from | --prefix | --key)
			[ -n "${2:-}" ] || wrong_usage "$1 needs a value"
			case $1 in
			--from) from=${2%/} ;;
			--prefix) prefix=$2 ;;
			--key) key=$2 ;;
			esac
			shift
			;;
		*) wrong_usage "unknown argument $1" ;;
		esac
		shift
	done
	user=$(id -u)
	if [ -z "$how" ]; then
		how=archive
		if [ "$user" = 0 ] && [ -z "$prefix" ] && have apt-get; then how=package; fi
	fi
	if [ "$how" = package ]; then
		[ -z "$prefix" ] || wrong_usage "--prefix is for --archive"
		have apt-get || fail "there is no apt-get here to install packages with: use --archive"
		[ "$user" = 0 ] || fail "packages are installed by root: use sudo, or --archive"
	fi
	if [ -z "$prefix" ]; then
		prefix=/usr/local
		[ "$user" = 0 ] || prefix=${HOME:?}/.local
	fi
	arch=$(architecture)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch SHA256SUMS
	if [ -n "$key" ]; then
		have minisign || fail "minisign is needed to verify the signature: install it, or do without --key"
		fetch SHA256SUMS.minisig
		minisign -Vqm "$work/SHA256SUMS" -P "$key" || fail "SHA256SUMS is not signed by $key; nothing was installed"
	fi
	if [ "$how" = package ]; then install_packages; else install_archive; fi
}

# Only when the whole script has arrived.
main "$@"
