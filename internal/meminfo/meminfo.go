// Package meminfo reads how much memory the machine has.
package meminfo

import (
	"bytes"
	"os"
	"strconv"
)

// Memory is the machine's, in bytes; -1 if unknown. The GPU of a Jetson uses the same memory.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	SwapTotal int64 `json:"swap_total"`
	SwapFree  int64 `json:"swap_free"`
	// NvMap is what the GPU, the video engines and the cameras of a Jetson hold of it, through the driver nvmap.
	NvMap int64 `json:"nvmap"`
}

// Read reads /proc/meminfo.
func Read() Memory {
	text, _ := os.ReadFile("/proc/meminfo") // without it all values are unknown
	return Parse(text)
}

// Parse reads the contents of /proc/meminfo.
func Parse(text []byte) Memory {
	m := Memory{Total: -1, Available: -1, SwapTotal: -1, SwapFree: -1, NvMap: -1}
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		var value *int64
		switch string(name) {
		case "MemTotal":
			value = &m.Total
		case "MemAvailable":
			value = &m.Available
		case "SwapTotal":
			value = &m.SwapTotal
		case "SwapFree":
			value = &m.SwapFree
		case "NvMapMemUsed":
			value = &m.NvMap
		default:
			continue
		}
		number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
		if kibibytes, err := strconv.ParseInt(string(number), 10, 52); err == nil && kibibytes >= 0 {
			*value = kibibytes << 10
		}
	}
	return m
}
