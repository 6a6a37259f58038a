package cross

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compile makes a small program as this machine's compiler does, with what is asked for, and gives its path.
func compile(t *testing.T, source string, flags ...string) string {
	path := filepath.Join(t.TempDir(), "program")
	arguments := append([]string{"-pie", "-fPIE", "-Wl,-z,relro", "-Wl,-z,lazy", "-x", "c++", "-", "-o", path}, flags...)
	command := exec.Command("cc", arguments...)
	command.Stdin = strings.NewReader(source)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

func inspected(t *testing.T, path string) *artefact {
	a, err := inspect(path)
	require.NoError(t, err)
	return a
}

// TestWrongArtefacts: what a release binary must not be is noticed, each thing by itself.
func TestWrongArtefacts(t *testing.T) {
	const nothing = "int main() { return 0; }"
	machine := machines[runtime.GOARCH]
	path := compile(t, nothing, "-s")
	right := inspected(t, path)
	right.glibc = newest // what is compiled here needs the glibc of here
	require.Empty(t, right.problems(machine))
	for _, test := range []struct {
		name, source, problem string
		flags                 []string
	}{
		{"symbol table", nothing, "is not stripped", nil},
		{"library", nothing, "needs libstdc++.so.6 at start", []string{"-Wl,--no-as-needed", "-lstdc++"}},
		{"run path", nothing, "looks for libraries in /opt/here", []string{"-Wl,--enable-new-dtags,-rpath,/opt/here"}},
		{"old run path", nothing, "looks for libraries in /opt/here", []string{"-Wl,--disable-new-dtags,-rpath,/opt/here"}},
		{
			"symbol", `extern "C" int absent(); int main() { return absent(); }`, "lacks the symbol absent",
			[]string{"-Wl,--unresolved-symbols=ignore-all,--export-dynamic"},
		},
		{"C++ library", "int main(int n, char **) { return *new int(n); }", "needs symbols of GLIBCXX_3.4", []string{"-lstdc++"}},
		{"fixed address", nothing, "is not position-independent", []string{"-no-pie"}},
		{"relocations", nothing, "has no RELRO", []string{"-Wl,-z,norelro"}},
		{"binding", nothing, "binds at start", []string{"-Wl,-z,now"}},
		{"stack", nothing, "has an executable stack", []string{"-Wl,-z,execstack"}},
		{
			"directory", `int main() { return "/home/me/.deps/release/x"[0]; } extern "C" const char *const kept = "/home/me/.deps/release/x";`,
			"names the directory /home/me/.deps/release/x", nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Contains(t, inspected(t, compile(t, test.source, test.flags...)).problems(machine), test.problem)
		})
	}
	makeCodeWritable(t, path)
	require.Contains(t, inspected(t, path).problems(machine), "has writable code")
	require.Contains(t, right.problems(elf.EM_RISCV), "is for "+machine.String()+", not for EM_RISCV")
	right.size, right.glibc = largest+1, newest+1
	tooLarge := fmt.Sprintf("has %d bytes, more than %d", largest+1, largest)
	require.Equal(t, []string{tooLarge, "needs glibc 2.30"}, right.problems(machine))
	_, err := inspect(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = inspect("versions.mk")
	require.ErrorContains(t, err, "bad magic number")
}

// makeCodeWritable changes the flags in the program headers, for which linkers have no option.
func makeCodeWritable(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const entry = 56 // bytes of a header
	headers := data[binary.LittleEndian.Uint64(data[32:]):]
	for i := range int(binary.LittleEndian.Uint16(data[56:])) {
		if elf.ProgType(binary.LittleEndian.Uint32(headers[i*entry:])) == elf.PT_LOAD {
			binary.LittleEndian.PutUint32(headers[i*entry+4:], uint32(elf.PF_R|elf.PF_W|elf.PF_X))
		}
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
}
