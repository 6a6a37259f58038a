// Package testtool finds the programs and C libraries that tests use. All of them are in the packages of cross/deps or on every Debian, so
// a missing one fails the test: a skipped test would pass on a machine where it has never run. Only tests import it.
package testtool

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Packages is the Debian package of every program that a test may run; cross/deps must install it unless each Debian has it.
var Packages = map[string]string{
	"bash":             essential,
	"cc":               "build-essential",
	"chmod":            essential,
	"cp":               essential,
	"curl":             "curl",
	"cut":              essential,
	"ffmpeg":           "ffmpeg",
	"ffprobe":          "ffmpeg",
	"gcc":              "build-essential",
	"git":              "git",
	"go":               essential, // cross/deps wants it on the PATH
	"grep":             essential,
	"gst-launch-1.0":   "gstreamer1.0-tools",
	"head":             essential,
	"ldconfig":         essential,
	"ldd":              essential,
	"minisign":         "minisign",
	"mkfs.ext4":        "e2fsprogs",
	"mosquitto":        "mosquitto",
	"mosquitto_passwd": "mosquitto",
	"mosquitto_pub":    "mosquitto-clients",
	"mosquitto_sub":    "mosquitto-clients",
	"mount":            essential,
	"mv":               essential,
	"nm":               "build-essential",
	"pkg-config":       "pkg-config",
	"protoc":           "protobuf-compiler",
	"setpriv":          essential,
	"sh":               essential,
	"sleep":            essential,
	"stdbuf":           essential,
	"sync":             essential,
	"systemd-analyze":  "systemd",
	"tar":              essential,
	"unshare":          essential,
}

// essential programs belong to packages that every Debian has.
const essential = ""

// Program returns the path of a program of Packages.
func Program(t testing.TB, name string) string {
	t.Helper()
	debian, known := Packages[name]
	if !known {
		t.Fatalf("add %q with its Debian package to internal/testtool, and the package to a line of apt_install in cross/deps", name)
	}
	path := find(name)
	if path == "" {
		t.Fatalf("%s of Debian's package %q is not installed: run make deps", name, debian)
	}
	return path
}

// find returns the path of a program; "" if it is not installed.
func find(name string) string {
	for _, path := range []string{name, "/usr/sbin/" + name} { // not on the PATH of every user
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// Link links the programs of Packages that are installed into a directory, so that a PATH of it alone has no others.
func Link(t testing.TB, dir string) {
	t.Helper()
	for name := range Packages {
		path := find(name)
		if path == "" { // reported where it is run
			continue
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Flags returns what pkg-config prints for arguments such as --cflags and libraries.
func Flags(t testing.TB, arguments ...string) []string {
	t.Helper()
	var errors strings.Builder
	command := exec.Command(Program(t, "pkg-config"), arguments...)
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%sRun make deps; if that does not help, add the library's package to a line of apt_install in cross/deps.", errors.String())
	}
	return strings.Fields(string(output))
}

// Browser returns the path of Chromium or Chrome. Ubuntu has no package of it, so there the test is skipped without one.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if system, _ := os.ReadFile("/etc/os-release"); regexp.MustCompile(`(?m)^ID=ubuntu$`).Match(system) {
		t.Skip("neither chromium nor google-chrome is installed, and Ubuntu has no package of them")
	}
	t.Fatal("neither chromium nor google-chrome is installed: run make deps")
	return ""
}
