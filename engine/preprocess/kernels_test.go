package preprocess_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// The check compares every kernel with its plain twin and reads next to closed pages, under the sanitizers where it runs natively.
func TestKernels(t *testing.T) {
	native := "plain" // what the kernels are to choose on this machine
	switch {
	case cpu.X86.HasAVX2:
		native = "avx2"
	case runtime.GOARCH == "arm64":
		native = "neon"
	}
	for _, test := range []struct {
		name, compiler, set string
		flags, runner       []string
	}{
		{
			name: "this machine", compiler: "cc", set: native,
			flags: []string{"-fsanitize=address,undefined", "-fno-sanitize-recover"},
		},
		{name: "arm64", compiler: "aarch64-linux-gnu-gcc", set: "neon", flags: []string{"-static"}, runner: []string{"qemu-aarch64-static"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, program := range append([]string{test.compiler}, test.runner...) {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			sources, err := filepath.Glob("*.c")
			require.NoError(t, err)
			binary := filepath.Join(t.TempDir(), "check")
			arguments := append(append([]string{"-std=gnu11", "-O3", "-ffp-contract=off", "-g", "-o", binary}, test.flags...), "testdata/check.c")
			output, err := exec.CommandContext(ctx, test.compiler, append(append(arguments, sources...), "-lm")...).CombinedOutput()
			require.NoError(t, err, "%s", output)
			command := append(test.runner, binary, "1000", "1")
			output, err = exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
			require.NoError(t, err, "%s", output)
			require.Equal(t, test.set, strings.TrimSpace(string(output)))
		})
	}
}
