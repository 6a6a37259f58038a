package cross

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// release is a directory with the files of a release as `make package` makes them, small ones, and the machine that installs from it.
type release struct {
	dir   string // of the release
	tools string // programs that stand for the machine's own
	home  string
	log   string // what they were called with
}

// releaseArchive is an archive whose program prints a version, or does whatever else the script does.
func releaseArchive(t *testing.T, script string) []byte {
	var compressed bytes.Buffer
	packed := gzip.NewWriter(&compressed)
	out := tar.NewWriter(packed)
	for _, file := range []struct{ name, text string }{
		{"bin/edge-infer", script},
		{"lib/edge-infer/libonnxruntime.so.1", "runtime"},
		{"share/man/man1/edge-infer.1.gz", "manual"},
		{"doc/edge-infer-onnxruntime/copyright", "licence"},
		{"etc/edge-infer.yaml", "settings"},
	} {
		require.NoError(t, out.WriteHeader(&tar.Header{Name: "edge-infer-1.2.0/" + file.name, Mode: 0o755, Size: int64(len(file.text))}))
		_, err := out.Write([]byte(file.text))
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())
	require.NoError(t, packed.Close())
	return compressed.Bytes()
}

// newRelease makes a release for a machine on which uname and id answer as given; apt-get and curl only note what they are asked for.
func newRelease(t *testing.T, machine, user string) *release {
	root := t.TempDir()
	r := &release{
		dir: filepath.Join(root, "release"), tools: filepath.Join(root, "tools"), home: filepath.Join(root, "home"),
		log: filepath.Join(root, "log"),
	}
	for _, dir := range []string{r.dir, r.tools, r.home} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	files := map[string][]byte{}
	for _, arch := range []string{"amd64", "arm64"} {
		files["edge-infer-1.2.0-linux-"+arch+".tar.gz"] = releaseArchive(t, "#!/bin/sh\necho edge-infer 1.2.0 "+arch+" linux\n")
		files["edge-infer_1.2.0_"+arch+".deb"] = []byte("daemon " + arch)
		files["edge-infer-onnxruntime_1.31.1_"+arch+".deb"] = []byte("runtime " + arch)
		files["edge-infer-"+arch] = []byte("program " + arch)
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		r.write(t, name, files[name])
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	r.write(t, "SHA256SUMS", []byte(sums.String()))
	r.tool(t, "uname", `if [ "$1" = -m ]; then echo `+machine+`; else echo Linux; fi`)
	r.tool(t, "id", "echo "+user)
	r.tool(t, "apt-get", `for file; do case $file in /*) cat "$file"; echo;; *) echo "$file";; esac; done >>"$LOG"`)
	r.tool(t, "curl", `echo "$@" | sed "s,$TMPDIR/[^/]*/,," >>"$LOG"; cp "$RELEASE/$(basename "$3")" "$3"`)
	return r
}

func (r *release) write(t *testing.T, name string, content []byte) {
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), content, 0o644))
}

func (r *release) read(t *testing.T, name string) []byte {
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(t, err)
	return content
}

// tool puts a program before those of the machine.
func (r *release) tool(t *testing.T, name, script string) {
	require.NoError(t, os.WriteFile(filepath.Join(r.tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// install runs the install script and returns its output, its errors and its exit status. Temporary files must be gone.
func (r *release) install(t *testing.T, arguments ...string) (stdout, stderr string, status int) {
	temporary := t.TempDir()
	command := exec.Command("sh", append([]string{"../deploy/install.sh"}, arguments...)...)
	command.Env = []string{"PATH=" + r.tools + ":/usr/bin:/bin", "HOME=" + r.home, "TMPDIR=" + temporary, "LOG=" + r.log, "RELEASE=" + r.dir}
	var output, errors strings.Builder
	command.Stdout = &output
	command.Stderr = &errors
	err := command.Run()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
	return output.String(), errors.String(), command.ProcessState.ExitCode()
}

// installed lists the files below the user's home.
func (r *release) installed(t *testing.T) []string {
	var files []string
	require.NoError(t, filepath.WalkDir(r.home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, r.home+"/"))
		}
		return err
	}))
	return files
}

func (r *release) called(t *testing.T) string {
	text, err := os.ReadFile(r.log)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(text)
}

// Others than root get the archive below their home; the files of an earlier version are replaced.
func TestInstallArchive(t *testing.T) {
	for machine, arch := range map[string]string{"x86_64": "amd64", "aarch64": "arm64"} {
		r := newRelease(t, machine, "1000")
		for range 2 {
			stdout, stderr, status := r.install(t, "--from", r.dir)
			require.Zero(t, status, stderr)
			require.Empty(t, stderr)
			require.Equal(t, "edge-infer 1.2.0 is in "+r.home+"/.local/bin.\nTry it: "+r.home+"/.local/bin/edge-infer --camera demo --frames 30\n"+
				"As a service: run this script as root, without --archive.\n", stdout)
			require.Equal(t, []string{
				".local/bin/edge-infer", ".local/lib/edge-infer/libonnxruntime.so.1", ".local/share/doc/edge-infer-onnxruntime/copyright",
				".local/share/man/man1/edge-infer.1.gz",
			}, r.installed(t))
			output, err := exec.Command(filepath.Join(r.home, ".local/bin/edge-infer")).Output()
			require.NoError(t, err)
			require.Equal(t, "edge-infer 1.2.0 "+arch+" linux\n", string(output))
		}
		require.Empty(t, r.called(t))
	}
}

// Root on a machine with apt-get gets the packages.
func TestInstallPackages(t *testing.T) {
	r := newRelease(t, "aarch64", "0")
	stdout, stderr, status := r.install(t, "--from", r.dir+"/")
	require.Zero(t, status, stderr)
	require.Equal(t, "install\n-y\n-o\nDpkg::Options::=--force-confdef\n-o\nDpkg::Options::=--force-confold\ndaemon arm64\nruntime arm64\n", r.called(t))
	require.Contains(t, stdout, "sudoedit /etc/edge-infer/edge-infer.yaml")
	require.Empty(t, r.installed(t))

	r = newRelease(t, "x86_64", "0")
	_, stderr, status = r.install(t, "--from", r.dir, "--prefix", filepath.Join(r.home, "opt"))
	require.Zero(t, status, stderr)
	require.Empty(t, r.called(t))
	require.Contains(t, r.installed(t), "opt/bin/edge-infer")
}

func TestInstallDownloads(t *testing.T) {
	r := newRelease(t, "x86_64", "1000")
	_, stderr, status := r.install(t, "--archive")
	require.Zero(t, status, stderr)
	const address = "https://github.com/edge-infer/edge-infer/releases/latest/download/"
	require.Equal(t, "-fsSL -o SHA256SUMS "+address+"SHA256SUMS\n-fsSL -o edge-infer-1.2.0-linux-amd64.tar.gz "+address+
		"edge-infer-1.2.0-linux-amd64.tar.gz\n", r.called(t))
	require.Contains(t, r.installed(t), ".local/bin/edge-infer")

	r = newRelease(t, "x86_64", "1000")
	r.tool(t, "curl", "exit 22")
	_, stderr, status = r.install(t, "--from", "https://mirror.example")
	require.Equal(t, 1, status)
	require.Equal(t, "install.sh: cannot download https://mirror.example/SHA256SUMS\n", stderr)
	require.Empty(t, r.installed(t))
}

// TestInstallRefuses: one line, and nothing has changed.
func TestInstallRefuses(t *testing.T) {
	const archive = "edge-infer-1.2.0-linux-amd64.tar.gz"
	const differs = archive + " does not have the checksum of SHA256SUMS: download it again; nothing was installed"
	for name, test := range map[string]struct {
		change    func(t *testing.T, r *release)
		arguments []string
		status    int
		refusal   string // RELEASE stands for the release's directory, HOME for the user's
	}{
		"truncated": {func(t *testing.T, r *release) { r.write(t, archive, r.read(t, archive)[:100]) }, nil, 1, differs},
		"empty":     {func(t *testing.T, r *release) { r.write(t, archive, nil) }, nil, 1, differs},
		"swapped checksums": {func(t *testing.T, r *release) {
			text := string(r.read(t, "SHA256SUMS"))
			swap := strings.NewReplacer("linux-amd64", "linux-arm64", "linux-arm64", "linux-amd64")
			r.write(t, "SHA256SUMS", []byte(swap.Replace(text)))
		}, nil, 1, differs},
		"truncated package": {
			func(t *testing.T, r *release) {
				r.tool(t, "id", "echo 0")
				r.write(t, "edge-infer-onnxruntime_1.31.1_amd64.deb", []byte("runtime"))
			},
			nil, 1, "edge-infer-onnxruntime_1.31.1_amd64.deb does not have the checksum of SHA256SUMS: download it again; nothing was installed",
		},
		"unknown architecture": {
			func(t *testing.T, r *release) { r.tool(t, "uname", `[ "$1" = -m ] && echo riscv64 || echo Linux`) }, nil, 1,
			"there are releases for x86-64 and 64-bit ARM only, this is riscv64",
		},
		"another system": {
			func(t *testing.T, r *release) { r.tool(t, "uname", "echo Darwin") }, nil, 1,
			"there are releases for Linux only, this is Darwin",
		},
		"no permission": {
			func(t *testing.T, r *release) {
				require.NoError(t, os.WriteFile(filepath.Join(r.home, "file"), nil, 0o644))
			},
			[]string{"--prefix", "HOME/file/below"},
			1, "no permission to write to HOME/file/below: use --prefix DIR, or run this as root",
		},
		"packages without root": {nil, []string{"--package"}, 1, "packages are installed by root: use sudo, or --archive"},
		"no checksums": {
			func(t *testing.T, r *release) { require.NoError(t, os.Remove(filepath.Join(r.dir, "SHA256SUMS"))) }, nil, 1,
			"RELEASE has no file SHA256SUMS",
		},
		"a web page for checksums": {
			func(t *testing.T, r *release) { r.write(t, "SHA256SUMS", []byte("<html>Not found</html>\n")) }, nil, 1,
			"SHA256SUMS of RELEASE lists no edge-infer-*-linux-amd64.tar.gz",
		},
		"a name with a directory": {
			func(t *testing.T, r *release) {
				r.write(t, "SHA256SUMS", []byte(strings.Repeat("0", 64)+"  edge-infer-1/../../x-linux-amd64.tar.gz\n"))
			}, nil, 1, "SHA256SUMS of RELEASE lists no edge-infer-*-linux-amd64.tar.gz",
		},
		"two releases": {
			func(t *testing.T, r *release) {
				text := string(r.read(t, "SHA256SUMS"))
				r.write(t, "SHA256SUMS", []byte(text+strings.ReplaceAll(text, "1.2.0", "1.3.0")))
			}, nil, 1, "RELEASE has several releases: edge-infer-1.2.0-linux-amd64.tar.gz edge-infer-1.3.0-linux-amd64.tar.gz ",
		},
		"missing archive": {
			func(t *testing.T, r *release) { require.NoError(t, os.Remove(filepath.Join(r.dir, archive))) }, nil, 1,
			"RELEASE has no file " + archive,
		},
		"a program that does not start": {
			func(t *testing.T, r *release) {
				broken := releaseArchive(t, "#!/bin/sh\nexit 1\n")
				old := fmt.Sprintf("%x", sha256.Sum256(r.read(t, archive)))
				r.write(t, archive, broken)
				sum := fmt.Sprintf("%x", sha256.Sum256(broken))
				r.write(t, "SHA256SUMS", bytes.ReplaceAll(r.read(t, "SHA256SUMS"), []byte(old), []byte(sum)))
			}, nil, 1, "the program does not start on this machine (it needs glibc 2.29 or newer); nothing was installed",
		},
		"unknown argument": {nil, []string{"--force"}, 2, "unknown argument --force; see sh install.sh --help"},
		"no value":         {nil, []string{"--prefix"}, 2, "--prefix needs a value; see sh install.sh --help"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t, "x86_64", "1000")
			if test.change != nil {
				test.change(t, r)
			}
			before := r.installed(t)
			places := strings.NewReplacer("RELEASE", r.dir, "HOME", r.home)
			arguments := []string{"--from", r.dir}
			for _, argument := range test.arguments {
				arguments = append(arguments, places.Replace(argument))
			}
			stdout, stderr, status := r.install(t, arguments...)
			require.Equal(t, "install.sh: "+places.Replace(test.refusal)+"\n", stderr)
			require.Equal(t, test.status, status)
			require.Empty(t, stdout)
			require.Equal(t, before, r.installed(t))
			require.Empty(t, r.called(t))
		})
	}
}

func TestInstallHelp(t *testing.T) {
	stdout, stderr, status := newRelease(t, "x86_64", "1000").install(t, "--help")
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "usage: sh install.sh [--from DIR|URL]")
}

// With a key, only checksums that it has signed are used.
func TestInstallChecksTheSignature(t *testing.T) {
	r := newRelease(t, "x86_64", "1000")
	minisign := testtool.Program(t, "minisign")
	keys := t.TempDir()
	run := func(arguments ...string) {
		output, err := exec.Command(minisign, arguments...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	public := func(name string) string {
		run("-G", "-W", "-p", filepath.Join(keys, name+".pub"), "-s", filepath.Join(keys, name+".key"))
		text, err := os.ReadFile(filepath.Join(keys, name+".pub"))
		require.NoError(t, err)
		return strings.Split(string(text), "\n")[1]
	}
	ours, others := public("ours"), public("others")
	_, stderr, status := r.install(t, "--from", r.dir, "--key", ours)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "has no file SHA256SUMS.minisig")
	run("-S", "-s", filepath.Join(keys, "ours.key"), "-m", filepath.Join(r.dir, "SHA256SUMS"))
	_, stderr, status = r.install(t, "--from", r.dir, "--key", others)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "SHA256SUMS is not signed by "+others+"; nothing was installed")
	require.Empty(t, r.installed(t))
	_, stderr, status = r.install(t, "--from", r.dir, "--key", ours)
	require.Zero(t, status, stderr)
	r.write(t, "SHA256SUMS", append(r.read(t, "SHA256SUMS"), ' '))
	_, _, status = r.install(t, "--from", r.dir, "--key", ours)
	require.Equal(t, 1, status)
}
