package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// parseSegmentation parses COCO's masks: a list of polygons, or run lengths as numbers or compressed. It returns nil without a mask.
func parseSegmentation(text json.RawMessage, width, height int) (*Region, error) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, string(text) == "null", string(text) == "[]":
		return nil, nil
	case text[0] == '[':
		var polygons [][]float64
		if err := json.Unmarshal(text, &polygons); err != nil {
			return nil, errors.New("neither polygons nor run lengths")
		}
		const far = 1e6
		for _, polygon := range polygons {
			if len(polygon) < 6 || len(polygon)%2 != 0 {
				return nil, fmt.Errorf("a polygon of %d numbers", len(polygon))
			}
			for _, v := range polygon {
				if !(math.Abs(v) < far) {
					return nil, fmt.Errorf("a corner at %v", v)
				}
			}
		}
		return &Region{Width: width, Height: height, polygons: polygons}, nil
	}
	var lengths struct {
		Size   [2]int
		Counts json.RawMessage
	}
	if err := json.Unmarshal(text, &lengths); err != nil {
		return nil, errors.New("neither polygons nor run lengths")
	}
	var runs postprocess.Runs
	if bytes.HasPrefix(lengths.Counts, []byte{'"'}) {
		var counts string
		err := json.Unmarshal(lengths.Counts, &counts)
		if err == nil {
			runs, err = postprocess.ParseCounts([]byte(counts))
		}
		if err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(lengths.Counts, &runs); err != nil {
		return nil, errors.New("counts that are neither numbers nor text")
	}
	sum := 0
	for _, n := range runs {
		sum += int(n)
	}
	if lengths.Size != [2]int{height, width} || sum != width*height {
		return nil, fmt.Errorf("run lengths of %d pixels in %v for an image of %dx%d", sum, lengths.Size, width, height)
	}
	return &Region{Width: width, Height: height, runs: runs}, nil
}

// parseKeypoints parses x, y and visibility per keypoint; it returns nil if there are none.
func parseKeypoints(numbers []float64) ([]postprocess.Keypoint, error) {
	if len(numbers)%3 != 0 {
		return nil, fmt.Errorf("%d numbers are not x, y and visibility", len(numbers))
	}
	var points []postprocess.Keypoint
	for i := 0; i < len(numbers); i += 3 {
		points = append(points, postprocess.Keypoint{X: float32(numbers[i]), Y: float32(numbers[i+1]), Score: min(float32(numbers[i+2]), 1)})
	}
	return points, nil
}
