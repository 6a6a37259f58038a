package tensorrt

// #include "shim.h"
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// LayerTime is the execution time of one layer.
type LayerTime struct {
	Layer string        `json:"layer"`
	Time  time.Duration `json:"nanoseconds"`
}

// maxProfile limits the text of all runs: about 100 bytes per layer.
const maxProfile = 16 << 20

// Profile repeats the slot's last request several times with layer timing and returns the layers' mean times in execution order. Work in
// other slots lengthens them. The request must have been waited for.
func (e *Engine) Profile(number, runs int) ([]LayerTime, error) {
	e.open.RLock()
	defer e.open.RUnlock()
	s, err := e.idle(number)
	if err != nil {
		return nil, err
	}
	text := make([]byte, maxProfile)
	var ee C.ei_error
	length := int(C.ei_slot_profile(s.handle, C.int(max(runs, 1)), (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)), &ee))
	switch {
	case length == 0:
		return nil, shimError("profile", &ee)
	case length >= len(text):
		return nil, newError("profile", engine.ErrUnsupported, "ask for fewer runs", "the times of all layers take %d bytes, at most %d are read",
			length, len(text)-1)
	}
	times, err := readProfile(string(text[:length]))
	if err != nil {
		return nil, newError("profile", nil, "", "%v", err)
	}
	return times, nil
}

// readProfile parses lines "<milliseconds> <layer>", with an empty line after each run, and returns the means.
func readProfile(text string) ([]LayerTime, error) {
	var times []LayerTime
	runs, at := 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			if at != len(times) {
				return nil, fmt.Errorf("run %d had %d layers, the first one %d", runs+1, at, len(times))
			}
			runs, at = runs+1, 0
			continue
		}
		number, layer, ok := strings.Cut(line, " ")
		milliseconds, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(milliseconds >= 0 && milliseconds < 1e9) {
			return nil, fmt.Errorf("%.80q is not a layer's time", line)
		}
		if runs == 0 {
			times = append(times, LayerTime{Layer: layer})
		}
		if at >= len(times) || times[at].Layer != layer {
			return nil, fmt.Errorf("run %d has layer %.80q as number %d, the first one had another", runs+1, layer, at+1)
		}
		times[at].Time += time.Duration(milliseconds * float64(time.Millisecond))
		at++
	}
	for i := range times {
		times[i].Time /= time.Duration(max(runs, 1))
	}
	return times, nil
}
