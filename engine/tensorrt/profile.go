package tensorrt

import (
	"strconv"
	"strings"
	"time"
)

// LayerTime is how long one layer of the plan took.
type LayerTime struct {
	Layer string        `json:"layer"`
	Time  time.Duration `json:"nanoseconds"`
}

// readLayerTimes reads lines "<milliseconds> <layer>". A last line that was cut is dropped.
func readLayerTimes(text []byte) []LayerTime {
	var times []LayerTime
	for line := range strings.Lines(string(text)) {
		number, layer, ok := strings.Cut(line, " ")
		milliseconds, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !strings.HasSuffix(layer, "\n") {
			continue
		}
		times = append(times, LayerTime{Layer: strings.TrimSuffix(layer, "\n"), Time: time.Duration(milliseconds * float64(time.Millisecond))})
	}
	return times
}
