package cross

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// dirEnvironment names the directory of the release binaries; make release-check sets it.
const dirEnvironment = "EDGE_INFER_TEST_RELEASE"

const (
	largest = 40_800_000 // bytes of a binary
	newest  = 29         // of glibc 2: JetPack 5 has 2.31
)

// machines are the architectures that are released.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// libraries may be needed at start: parts of glibc. All else is loaded when it is used.
var libraries = []string{
	"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}

// unresolved symbols may be of no library: what go-nvml looks up once NVML is loaded, and what a C compiler's start code asks for in vain.
var unresolved = regexp.MustCompile(`^(nvml[A-Z]\w*|_ITM_(de)?registerTMCloneTable|__gmon_start__)$`)

// directories of the building machine have no place in a binary.
var dirs = regexp.MustCompile(`[\w./-]*/\.deps/release[\w./-]*`)

// artefact is what a binary says about itself.
type artefact struct {
	size      int64
	machine   elf.Machine
	stripped  bool
	needed    []string // libraries at start
	paths     []string // RPATH and RUNPATH
	undefined []string // symbols of no library
	foreign   []string // versions of symbols that are not glibc's, such as GLIBCXX_3.4
	glibc     int      // the newest symbol is of glibc 2.x
	pie       bool
	relro     bool
	now       bool     // every function is looked up at start
	stack     bool     // the stack can be executed
	writable  bool     // code can be written
	dirText   []string // directories of the building machine
}

// released gives the path of a release binary or skips the test.
func released(t *testing.T, arch string) string {
	dir := os.Getenv(dirEnvironment)
	if dir == "" {
		t.Skip(dirEnvironment + " names no directory of release binaries: make release-check")
	}
	return absolute(t, filepath.Join(dir, "edge-infer-"+arch))
}

func inspect(path string) (*artefact, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	a := &artefact{
		size: int64(len(data)), machine: file.Machine, stripped: file.Section(".symtab") == nil && file.Section(".debug_info") == nil,
		stack: true, // unless a header says otherwise
	}
	for _, text := range dirs.FindAll(data, -1) {
		a.dirText = append(a.dirText, string(text))
	}
	if err := a.readDynamic(file); err != nil {
		return nil, err
	}
	if err := a.readSymbols(file); err != nil {
		return nil, err
	}
	for _, segment := range file.Progs {
		switch {
		case segment.Type == elf.PT_GNU_RELRO:
			a.relro = true
		case segment.Type == elf.PT_GNU_STACK:
			a.stack = segment.Flags&elf.PF_X != 0
		case segment.Type == elf.PT_LOAD && segment.Flags&(elf.PF_W|elf.PF_X) == elf.PF_W|elf.PF_X:
			a.writable = true
		}
	}
	return a, nil
}

func (a *artefact) readDynamic(file *elf.File) (err error) {
	if a.needed, err = file.ImportedLibraries(); err != nil {
		return err
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, err := file.DynString(tag)
		if err != nil {
			return err
		}
		a.paths = append(a.paths, paths...)
	}
	flags := map[elf.DynTag]uint64{}
	for _, tag := range []elf.DynTag{elf.DT_FLAGS_1, elf.DT_FLAGS, elf.DT_BIND_NOW} {
		values, err := file.DynValue(tag)
		if err != nil {
			return err
		}
		for _, value := range values {
			flags[tag] |= value
		}
		if tag == elf.DT_BIND_NOW {
			a.now = a.now || len(values) > 0
		}
	}
	a.pie = file.Type == elf.ET_DYN && file.Section(".interp") != nil && elf.DynFlag1(flags[elf.DT_FLAGS_1])&elf.DF_1_PIE != 0
	a.now = a.now || elf.DynFlag1(flags[elf.DT_FLAGS_1])&elf.DF_1_NOW != 0 || elf.DynFlag(flags[elf.DT_FLAGS])&elf.DF_BIND_NOW != 0
	return nil
}

func (a *artefact) readSymbols(file *elf.File) error {
	symbols, err := file.ImportedSymbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		var minor int
		switch _, err := fmt.Sscanf(s.Version, "GLIBC_2.%d", &minor); {
		case s.Version == "":
			a.undefined = append(a.undefined, s.Name)
		case err != nil:
			a.foreign = append(a.foreign, s.Version)
		default:
			a.glibc = max(a.glibc, minor)
		}
	}
	slices.Sort(a.foreign)
	a.foreign = slices.Compact(a.foreign)
	return nil
}

// problems says what keeps a binary from being released for a machine. Full RELRO is no aim: binding at start would stop every machine that
// has no NVML.
func (a *artefact) problems(machine elf.Machine) []string {
	var found []string
	expect := func(good bool, format string, arguments ...any) {
		if !good {
			found = append(found, fmt.Sprintf(format, arguments...))
		}
	}
	expect(a.machine == machine, "is for %v, not for %v", a.machine, machine)
	expect(a.size <= largest, "has %d bytes, more than %d", a.size, largest)
	expect(a.stripped, "is not stripped")
	for _, name := range a.needed {
		expect(slices.Contains(libraries, name), "needs %s at start", name)
	}
	for _, path := range a.paths {
		expect(false, "looks for libraries in %s", path)
	}
	for _, name := range a.undefined {
		expect(unresolved.MatchString(name), "lacks the symbol %s", name)
	}
	for _, version := range a.foreign {
		expect(false, "needs symbols of %s", version)
	}
	expect(a.glibc <= newest, "needs glibc 2.%d", a.glibc)
	expect(a.pie, "is not position-independent")
	expect(a.relro, "has no RELRO")
	expect(!a.now, "binds at start")
	expect(!a.stack, "has an executable stack")
	expect(!a.writable, "has writable code")
	for _, text := range a.dirText {
		expect(false, "names the directory %s", text)
	}
	return found
}

func TestArtefact(t *testing.T) {
	for arch, machine := range machines {
		t.Run(arch, func(t *testing.T) {
			a, err := inspect(released(t, arch))
			require.NoError(t, err)
			for _, problem := range a.problems(machine) {
				t.Error(problem)
			}
		})
	}
}
