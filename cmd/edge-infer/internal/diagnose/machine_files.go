package diagnose

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// machineFiles are patterns of the files that describe a board and its sensors; package telemetry reads most of them. They hold no secrets.
var machineFiles = []string{
	"/etc/nv_tegra_release", "/etc/nvpmodel.conf", "/var/lib/nvpmodel/status", "/proc/device-tree/model", "/proc/device-tree/compatible",
	"/proc/devices", "/proc/stat", "/proc/loadavg", "/proc/meminfo",
	"/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq", "/sys/devices/system/cpu/cpufreq/policy*/cpuinfo_max_freq",
	"/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
	"/sys/devices/gpu.0/load", "/sys/class/devfreq/*/device/of_node/name", "/sys/class/devfreq/*/device/load", "/sys/class/devfreq/*/*_freq",
	"/sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "/sys/kernel/debug/cactmon/mc_all", "/sys/kernel/debug/bpmp/debug/clk/emc/*rate",
	"/sys/class/thermal/thermal_zone*/type", "/sys/class/thermal/thermal_zone*/temp", "/sys/class/thermal/thermal_zone*/trip_point_*",
	"/sys/class/thermal/cooling_device*/type", "/sys/class/thermal/cooling_device*/*_state",
	"/sys/class/hwmon/hwmon*/name", "/sys/class/hwmon/hwmon*/*_label", "/sys/class/hwmon/hwmon*/*_input", "/sys/class/hwmon/hwmon*/*_average",
	"/sys/class/hwmon/hwmon*/*_max", "/sys/class/hwmon/hwmon*/*_crit", "/sys/class/hwmon/hwmon*/*_alarm", "/sys/class/hwmon/hwmon*/oc*",
	"/sys/class/hwmon/hwmon*/pwm*", "/sys/class/hwmon/hwmon*/rpm", "/sys/class/video4linux/*/name",
}

// Limits of the files of a machine.
const (
	maxMachineFile  = 16 << 10 // bytes of one; the rest is cut
	maxMachineFiles = 1 << 20  // bytes of all
	filesTimeout    = 10 * time.Second
)

// toLine writes a file's content in one line, as telemetry's tests read recorded machines.
var toLine = strings.NewReplacer("\n", `\n`, "\x00", `\0`)

// machineFiles returns a line for each file that can be read: path, tab, content. A driver that never answers ends the list.
func (b *Bundle) machineFiles(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, filesTimeout)
	defer cancel()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for _, pattern := range machineFiles {
			found, _ := filepath.Glob(filepath.Join(b.Root, pattern)) // the pattern is valid
			for _, path := range found {
				content, err := readLimited(path)
				if err != nil {
					continue
				}
				content = strings.TrimSuffix(strings.ToValidUTF8(content, "?"), "\n")
				select {
				case lines <- strings.TrimPrefix(path, b.Root) + "\t" + toLine.Replace(content) + "\n":
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	var out strings.Builder
	for {
		select {
		case <-ctx.Done():
			return out.String()
		case line, more := <-lines:
			if !more || out.Len()+len(line) > maxMachineFiles {
				return out.String()
			}
			out.WriteString(line)
		}
	}
}

// readLimited returns the first maxMachineFile bytes of a regular file.
func readLimited(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", os.ErrInvalid
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMachineFile))
	return string(text), err
}

// boardCommands print what a board's cameras and libraries depend on.
func (b *Bundle) boardCommands() [][]string {
	if b.Commands != nil {
		return b.Commands
	}
	nodes := []string{"ls", "-l", "/dev/nvmap", "/tmp/argus_socket"}
	for _, pattern := range []string{"/dev/video*", "/dev/media*", "/dev/nvhost*", "/dev/nvidia*", "/dev/dri/*"} {
		found, _ := filepath.Glob(pattern) // the pattern is valid
		nodes = append(nodes, found...)
	}
	plugins, _ := filepath.Glob("/usr/lib/*/gstreamer-1.0/libgstnv*")
	return [][]string{
		nodes,
		append([]string{"ls", "-l"}, append(plugins, "/proc/version")...),
		{"dpkg-query", "-W", "nvidia-l4t-*", "libnvinfer*", "libcudnn*", "libgstreamer1.0-0", "gstreamer1.0-plugins-*"},
		{"journalctl", "--unit=nvargus-daemon", "--lines=" + logLines, "--no-pager", "--output=short-iso"},
		{"journalctl", "--dmesg", "--lines=" + logLines, "--no-pager", "--output=short-iso"},
	}
}

// board returns the output of the commands, or the reasons why they cannot run.
func (b *Bundle) board(ctx context.Context) string {
	var out bytes.Buffer
	for _, command := range b.boardCommands() {
		out.WriteString("$ " + command[0] + "\n" + output(ctx, command) + "\n")
	}
	return out.String()
}

// output returns what a command prints, errors included.
func output(ctx context.Context, command []string) string {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	var text bytes.Buffer
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Stdout, program.Stderr = &text, &text
	program.WaitDelay = time.Second // a grandchild may hold the pipe open
	if err := program.Run(); err != nil {
		text.WriteString(command[0] + ": " + err.Error() + "\n")
	}
	return text.String()
}
