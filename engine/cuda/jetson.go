package cuda

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Jetson describes a Jetson board and its software.
type Jetson struct {
	Model   string `json:"model,omitempty"`   // the board
	Release string `json:"release,omitempty"` // Jetson Linux, as 36.4.3
	JetPack string `json:"jetpack,omitempty"` // version for the release; empty if unknown
	Load    *Load  `json:"load,omitempty"`    // nil if not available
}

// Load is the current load of a Jetson's GPU. Unavailable values are -1.
type Load struct {
	Percent  float64 `json:"percent"`
	Hertz    int64   `json:"hertz"` // current clock
	MinHertz int64   `json:"min_hertz"`
	MaxHertz int64   `json:"max_hertz"`
}

// jetpacks lists the first Jetson Linux release of each JetPack, newest first. A release belongs to the first entry with the same major
// number that is not newer.
var jetpacks = [...]struct {
	linux   [3]int
	jetpack string
}{
	{[3]int{39, 0, 0}, "7.2"},
	{[3]int{38, 4, 0}, "7.1"},
	{[3]int{38, 2, 0}, "7.0"},
	{[3]int{36, 5, 0}, "6.2.2"},
	{[3]int{36, 4, 4}, "6.2.1"},
	{[3]int{36, 4, 3}, "6.2"},
	{[3]int{36, 4, 0}, "6.1"},
	{[3]int{36, 3, 0}, "6.0"},
	{[3]int{35, 6, 4}, "5.1.6"},
	{[3]int{35, 6, 1}, "5.1.5"},
	{[3]int{35, 6, 0}, "5.1.4"},
	{[3]int{35, 5, 0}, "5.1.3"},
	{[3]int{35, 4, 0}, "5.1.2"},
	{[3]int{35, 3, 0}, "5.1.1"},
	{[3]int{35, 2, 0}, "5.1"},
	{[3]int{35, 1, 0}, "5.0.2"},
	{[3]int{32, 7, 0}, "4.6.1"},
	{[3]int{32, 6, 0}, "4.6"},
}

var releaseLine = regexp.MustCompile(`# R(\d+) \(release\), REVISION: (\d+)(?:\.(\d+))?`)

// Jetson reads the release file and the device tree. It returns nil on other machines.
func (p Prober) Jetson() *Jetson {
	var j Jetson
	if match := releaseLine.FindSubmatch(p.file("/etc/nv_tegra_release")); match != nil {
		var linux [3]int
		for i := range linux {
			linux[i], _ = strconv.Atoi(string(match[i+1])) // digits, or absent for 0
		}
		j.Release = fmt.Sprintf("%d.%d.%d", linux[0], linux[1], linux[2])
		for _, entry := range jetpacks {
			if entry.linux[0] == linux[0] && slices.Compare(linux[:], entry.linux[:]) >= 0 {
				j.JetPack = entry.jetpack
				break
			}
		}
	}
	if j.Release == "" && !bytes.Contains(p.file("/proc/device-tree/compatible"), []byte("nvidia,tegra")) {
		return nil
	}
	j.Model = strings.TrimRight(string(p.file("/proc/device-tree/model")), "\x00\n")
	if load, ok := p.Load(); ok {
		j.Load = &load
	}
	return &j
}

// gpuNodes lists the device-tree names of integrated GPUs.
var gpuNodes = [...]string{"gpu", "gb10b", "ga10b", "gv11b", "gp10b"}

// thorGPU is the directory of Thor's GPU, which has no such name and reports no load.
const thorGPU = "gpu-gpc-0"

// Load reads the load of a Jetson's GPU from sysfs. It returns false if that is not available.
func (p Prober) Load() (Load, bool) {
	dirs, _ := filepath.Glob(filepath.Join(p.Root, "/sys/class/devfreq/*")) // the pattern is valid
	for _, dir := range dirs {
		node := strings.TrimRight(string(contents(filepath.Join(dir, "device/of_node/name"))), "\x00\n")
		if !slices.Contains(gpuNodes[:], node) && filepath.Base(dir) != thorGPU {
			continue
		}
		load := Load{
			Percent: percent(filepath.Join(dir, "device/load")), Hertz: number(filepath.Join(dir, "cur_freq")),
			MinHertz: number(filepath.Join(dir, "min_freq")), MaxHertz: number(filepath.Join(dir, "max_freq")),
		}
		if load.Percent >= 0 || load.Hertz >= 0 {
			return load, true
		}
	}
	load := Load{Percent: percent(filepath.Join(p.Root, "/sys/devices/gpu.0/load")), Hertz: -1, MinHertz: -1, MaxHertz: -1}
	return load, load.Percent >= 0
}

// percent reads a file with a value in thousandths.
func percent(path string) float64 {
	if permille := number(path); permille >= 0 && permille <= 1000 {
		return float64(permille) / 10
	}
	return -1
}

func (p Prober) file(path string) []byte { return contents(filepath.Join(p.Root, path)) }

// contents returns the bytes of a small file, or nil if it cannot be read, since every file here is optional.
func contents(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// number reads a file with a decimal number. It returns -1 on errors.
func number(path string) int64 {
	value, err := strconv.ParseInt(strings.TrimSpace(string(contents(path))), 10, 64)
	if err != nil || value < 0 {
		return -1
	}
	return value
}
