package convert

import (
	"math"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// parseBatch parses MIN,OPT,MAX, or one number N for 1,N,N.
func parseBatch(text string) (r tensorrt.Range, err error) {
	parts := strings.Split(text, ",")
	if len(parts) == 1 {
		parts = []string{"1", text, text}
	}
	bad := config.Usagef("--batch %q must be MIN,OPT,MAX like 1,4,8, or one number", text)
	if len(parts) != 3 {
		return r, bad
	}
	for i, to := range []*int{&r.Min, &r.Opt, &r.Max} {
		*to, err = strconv.Atoi(parts[i])
		if err != nil || *to < 1 || *to > math.MaxInt16 {
			return r, bad
		}
	}
	if r.Min > r.Opt || r.Opt > r.Max {
		return r, config.Usagef("--batch %q must have MIN <= OPT <= MAX", text)
	}
	return r, nil
}

// parseShape parses NAME=MIN,OPT,MAX with shapes like 1x3x640x640, or one shape for all three.
func parseShape(text string) (s tensorrt.ShapeRange, err error) {
	bad := config.Usagef("--shape %q must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640", text)
	at := strings.LastIndexByte(text, '=')
	if at < 1 {
		return s, bad
	}
	s.Name = text[:at]
	parts := strings.Split(text[at+1:], ",")
	if len(parts) == 1 {
		parts = []string{parts[0], parts[0], parts[0]}
	}
	if len(parts) != 3 {
		return s, bad
	}
	for i, to := range []*[]int64{&s.Min, &s.Opt, &s.Max} {
		for side := range strings.SplitSeq(parts[i], "x") {
			n, err := strconv.ParseInt(side, 10, 32)
			if err != nil || n < 0 {
				return s, bad
			}
			*to = append(*to, n)
		}
	}
	if len(s.Min) != len(s.Opt) || len(s.Opt) != len(s.Max) {
		return s, config.Usagef("--shape %q: MIN, OPT and MAX must have the same number of dimensions", text)
	}
	for d := range s.Opt {
		if s.Min[d] > s.Opt[d] || s.Opt[d] > s.Max[d] {
			return s, config.Usagef("--shape %q: dimension %d must have MIN <= OPT <= MAX", text, d)
		}
	}
	return s, nil
}

// parseBytes parses a size such as 1GiB, 512MiB or a number of bytes.
func parseBytes(text string) (int64, error) {
	number, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if rest, found := strings.CutSuffix(text, suffix); found {
			number, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, config.Usagef("--workspace %q must be a size like 1GiB, 512MiB or a number of bytes", text)
	}
	return n * unit, nil
}
