package cross

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// folderEnvironment names the folder of the release binaries; make release-check sets it.
const folderEnvironment = "EDGE_INFER_TEST_RELEASE"

const (
	largest = 30 << 20              // bytes of a binary
	slowest = 50 * time.Millisecond // from its start to the end of version, on the machine it is for
	floor   = 29                    // of glibc 2: JetPack 5 has 2.31
)

// libraries may be needed at start: parts of glibc. All else is loaded when it is used.
var libraries = []string{
	"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}

// artefact gives the path of a release binary or skips the test.
func artefact(t *testing.T, arch string) string {
	folder := os.Getenv(folderEnvironment)
	if folder == "" {
		t.Skip(folderEnvironment + " names no folder of release binaries: make release-check")
	}
	path, err := filepath.Abs(filepath.Join(folder, "edge-infer-"+arch))
	require.NoError(t, err)
	return path
}

func TestArtefact(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			path := artefact(t, arch)
			file, err := elf.Open(path)
			require.NoError(t, err)
			defer file.Close()
			require.Equal(t, machine, file.Machine)
			t.Run("size", func(t *testing.T) {
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.Less(t, info.Size(), int64(largest))
				require.Nil(t, file.Section(".symtab"), "not stripped")
				require.Nil(t, file.Section(".debug_info"), "not stripped")
				t.Logf("%d bytes", info.Size())
			})
			t.Run("libraries", func(t *testing.T) {
				needed, err := file.ImportedLibraries()
				require.NoError(t, err)
				require.Subset(t, libraries, needed)
				for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
					paths, err := file.DynString(tag)
					require.NoError(t, err)
					require.Empty(t, paths, tag)
				}
				t.Log(strings.Join(needed, " "))
			})
			t.Run("symbols", func(t *testing.T) { checkSymbols(t, file) })
			t.Run("hardening", func(t *testing.T) { checkHardening(t, file) })
			t.Run("paths", func(t *testing.T) {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				here, err := filepath.Abs("..")
				require.NoError(t, err)
				require.NotContains(t, string(data), here, "a folder of the building machine")
				require.NotContains(t, string(data), "/.deps/release", "a folder of the building machine")
			})
		})
	}
}

// checkSymbols wants every symbol from a glibc that is old enough, but for go-nvml's, which are looked up once its library is loaded.
func checkSymbols(t *testing.T, file *elf.File) {
	symbols, err := file.ImportedSymbols()
	require.NoError(t, err)
	newest := 0
	for _, s := range symbols {
		if s.Library == "" {
			require.Regexp(t, regexp.MustCompile(`^(nvml|_ITM_|__gmon_start__|__cxa_|__tls_get_addr)`), s.Name, "from no library")
			continue
		}
		var minor int
		_, err := fmt.Sscanf(s.Version, "GLIBC_2.%d", &minor)
		require.NoError(t, err, "%s is of %s", s.Name, s.Version)
		newest = max(newest, minor)
	}
	require.LessOrEqual(t, newest, floor)
	t.Logf("glibc 2.%d", newest)
}

// checkHardening wants a position-independent program with a read-only relocation table and no executable stack. Binding at start, the other
// half of full RELRO, would stop every machine without NVML.
func checkHardening(t *testing.T, file *elf.File) {
	require.Equal(t, elf.ET_DYN, file.Type)
	require.NotNil(t, file.Section(".interp"))
	flags, err := file.DynValue(elf.DT_FLAGS_1)
	require.NoError(t, err)
	require.Len(t, flags, 1)
	require.NotZero(t, elf.DynFlag1(flags[0])&elf.DF_1_PIE)
	require.Zero(t, elf.DynFlag1(flags[0])&elf.DF_1_NOW)
	now, err := file.DynValue(elf.DT_BIND_NOW)
	require.NoError(t, err)
	require.Empty(t, now)
	kinds := map[elf.ProgType]elf.ProgFlag{}
	for _, segment := range file.Progs {
		kinds[segment.Type] = segment.Flags
		if segment.Type == elf.PT_LOAD {
			require.NotEqual(t, elf.PF_W|elf.PF_X, segment.Flags&(elf.PF_W|elf.PF_X), "writable and executable")
		}
	}
	require.Contains(t, kinds, elf.PT_GNU_RELRO)
	require.Contains(t, kinds, elf.PT_GNU_STACK)
	require.Zero(t, kinds[elf.PT_GNU_STACK]&elf.PF_X)
}

// TestStart takes the fastest of several starts, which says most about the program and least about what else the machine does.
func TestStart(t *testing.T) {
	path := artefact(t, "amd64")
	var times []time.Duration
	for range 20 {
		start := time.Now()
		output, err := exec.Command(path, "version").CombinedOutput()
		times = append(times, time.Since(start))
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), " linux/amd64\n")
	}
	slices.Sort(times)
	require.Less(t, times[0], slowest)
	t.Logf("version: fastest %v, median %v", times[0], times[len(times)/2])
}
