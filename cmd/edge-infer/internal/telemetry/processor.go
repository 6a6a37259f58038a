package telemetry

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

func (r *Reader) cpu() CPU {
	c := CPU{Load: -1, Average: -1, Hertz: -1, MaxHertz: -1}
	var busy, total uint64
	for line := range bytes.Lines(r.contents("/proc/stat")) {
		if !bytes.HasPrefix(line, []byte("cpu")) || len(line) < 4 {
			break
		}
		switch {
		case line[3] == ' ':
			busy, total = ticks(line)
		case line[3] >= '0' && line[3] <= '9':
			c.Count++
		}
	}
	// Counters may go back when a CPU is taken away.
	if r.total > 0 && total > r.total && busy >= r.busy {
		c.Load = min(100, 100*float64(busy-r.busy)/float64(total-r.total))
	}
	r.busy, r.total = busy, total
	average, _, _ := bytes.Cut(r.contents("/proc/loadavg"), []byte(" "))
	if value, err := strconv.ParseFloat(string(average), 64); err == nil && value >= 0 && value < 1e6 {
		c.Average = value
	}
	for _, dir := range r.clocks {
		if kilohertz := r.count(dir + "/scaling_cur_freq"); kilohertz > 0 {
			c.Hertz = max(c.Hertz, kilohertz*1000)
		}
		if kilohertz := r.count(dir + "/cpuinfo_max_freq"); kilohertz > 0 {
			c.MaxHertz = max(c.MaxHertz, kilohertz*1000)
		}
	}
	if len(r.clocks) > 0 {
		c.Governor = r.text(r.clocks[0] + "/scaling_governor")
	}
	return c
}

// ticks adds up the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What comes after is part of user.
func ticks(line []byte) (busy, total uint64) {
	for i, field := range bytes.Fields(line) {
		if i == 0 {
			continue
		}
		if i > 8 {
			break
		}
		n, err := strconv.ParseUint(string(field), 10, 48)
		if err != nil {
			return 0, 0
		}
		total += n
		if i != 4 && i != 5 { // idle and waiting for a disk
			busy += n
		}
	}
	return busy, total
}

func (r *Reader) disk() Disk {
	dir := r.Disk
	if dir == "" {
		dir = "/"
	}
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return Disk{Total: -1, Free: -1}
	}
	return Disk{Total: int64(s.Blocks) * int64(s.Bsize), Free: int64(s.Bavail) * int64(s.Bsize)}
}

// gpus reads a Jetson's GPU from sysfs, because NVML supports little of it, and all others from NVML.
func (r *Reader) gpus(reading *Reading) {
	if !r.nvmlTried && !r.FilesOnly {
		// A missing library is not searched again: a driver installed later needs a restart anyway.
		r.nvmlTried = true
		if management, err := cuda.OpenManagement(r.NVML); err == nil {
			r.nvml = management
		}
	}
	var known cuda.NVML
	if r.nvml != nil {
		known = r.nvml.Read()
	}
	if r.jetson {
		g := GPU{Name: "GPU", Load: -1, Decoder: -1, Hertz: -1, MinHertz: -1, MaxHertz: -1, MemoryUsed: -1, MemoryTotal: -1}
		if load, ok := (cuda.Prober{Root: r.Root}).Load(); ok {
			g.Load, g.Hertz = load.Percent, load.Hertz
			g.MinHertz, g.MaxHertz = load.MinHertz, load.MaxHertz
		}
		if len(known.Devices) > 0 && g.Load < 0 {
			g.Load = known.Devices[0].Utilization // Thor
		}
		if g.Load >= 0 || g.Hertz >= 0 {
			reading.GPUs = append(reading.GPUs, g)
		}
		return
	}
	for i := range known.Devices {
		d := &known.Devices[i]
		name := "GPU"
		if len(known.Devices) > 1 {
			name += " " + strconv.Itoa(i)
		}
		reading.GPUs = append(reading.GPUs, GPU{
			Name: name, Load: d.Utilization, Decoder: d.Decoder, Hertz: d.Hertz, MinHertz: -1, MaxHertz: d.MaxHertz,
			MemoryUsed: d.MemoryUsed, MemoryTotal: d.MemoryTotal,
		})
		if d.Temperature >= 0 {
			reading.Temperatures = append(reading.Temperatures, Temperature{Name: name, Celsius: d.Temperature, Limit: max(0, d.Limit)})
		}
		if d.Power >= 0 {
			reading.Rails = append(reading.Rails, Rail{Name: name, Watts: d.Power, Volts: -1, Amperes: -1})
		}
		for _, what := range d.Throttled {
			reading.addSlowdown(Cause(what), name)
		}
	}
}

// emc reads the memory controller's clock and its activity, which the kernel counts in kilohertz percent.
func (r *Reader) emc() EMC {
	e := EMC{Load: -1, Hertz: -1, MaxHertz: -1}
	for _, dir := range [...]struct{ now, most string }{
		{"/sys/kernel/debug/bpmp/debug/clk/emc/rate", "/sys/kernel/debug/bpmp/debug/clk/emc/max_rate"},
		{"/sys/class/devfreq/bwmgr/cur_freq", "/sys/class/devfreq/bwmgr/max_freq"},
	} {
		if e.Hertz = r.count(dir.now); e.Hertz >= 0 {
			e.MaxHertz = r.count(dir.most)
			break
		}
	}
	if limit := r.count("/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"); limit > 0 && limit < e.MaxHertz {
		e.MaxHertz = limit
	}
	for _, file := range [...]string{
		"/sys/kernel/debug/cactmon/mc_all", "/sys/kernel/debug/bpmp/debug/actmon/mc_all_avg_activity", "/sys/kernel/actmon_avg_activity/mc_all",
	} {
		if activity := r.count(file); activity >= 0 && e.Hertz >= 1000 {
			e.Load = min(100, float64(activity)/float64(e.Hertz/1000))
			break
		}
	}
	return e
}
