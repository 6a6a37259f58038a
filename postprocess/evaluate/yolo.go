package evaluate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures are measured, not decoded
	_ "image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess"
)

func readYOLODirectory(dir string) (*Dataset, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "images"))
	if err != nil || !fileExists(filepath.Join(dir, "labels")) {
		return nil, fmt.Errorf("read dataset %s: %w: it needs annotations.json (COCO), or images/ and labels/ (YOLO)", dir, ErrNoLabels)
	}
	dataset := &Dataset{}
	labelled := 0
	for _, entry := range entries {
		extension := strings.ToLower(filepath.Ext(entry.Name()))
		if extension != ".jpg" && extension != ".jpeg" && extension != ".png" {
			continue
		}
		picture := Picture{Path: filepath.Join(dir, "images", entry.Name())}
		if picture.Width, picture.Height, err = measure(picture.Path); err != nil {
			return nil, err
		}
		path := filepath.Join(dir, "labels", strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))+".txt")
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read labels: %w", err)
		}
		if err == nil {
			labelled++
		}
		// A picture without a label file has no objects on it.
		if picture.Truths, err = parseYOLO(path, text, picture.Width, picture.Height); err != nil {
			return nil, err
		}
		dataset.Pictures = append(dataset.Pictures, picture)
	}
	if len(dataset.Pictures) == 0 {
		return nil, fmt.Errorf("read dataset %s: %w: images/ holds no .jpg or .png picture", dir, ErrNoLabels)
	}
	if labelled == 0 {
		return nil, fmt.Errorf("read dataset %s: no file in labels/ is called as one of the %d pictures in images/ (are these the labels of other pictures?)",
			dir, len(dataset.Pictures))
	}
	return dataset, nil
}

func measure(path string) (width, height int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, fmt.Errorf("read picture: %w", err)
	}
	defer file.Close()
	size, _, err := image.DecodeConfig(file)
	if err != nil {
		return 0, 0, fmt.Errorf("read picture %s: %w", path, err)
	}
	return size.Width, size.Height, nil
}

// parseYOLO reads lines of class, centre x, centre y, width and height, the last four as shares of the picture's sides.
func parseYOLO(name string, text []byte, width, height int) ([]Truth, error) {
	var truths []Truth
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		refuse := func(format string, arguments ...any) error {
			return fmt.Errorf("%s:%d: %s", name, number, fmt.Sprintf(format, arguments...))
		}
		if len(fields) != 5 {
			return nil, refuse("%d fields, a line is: class centre-x centre-y width height", len(fields))
		}
		class, err := strconv.Atoi(fields[0])
		if err != nil || class < 0 || class >= maxClass {
			return nil, refuse("class %q is not a number from 0 to %d", fields[0], maxClass-1)
		}
		var share [4]float64
		for i := range share {
			share[i], err = strconv.ParseFloat(fields[1+i], 64)
			if err != nil || !(share[i] >= 0 && share[i] <= 1) {
				return nil, refuse("%q is not a share of the picture from 0 to 1", fields[1+i])
			}
		}
		x, y, w, h := share[0]*float64(width), share[1]*float64(height), share[2]*float64(width), share[3]*float64(height)
		truths = append(truths, Truth{Box: postprocess.Box{
			X1: float32(x - w/2), Y1: float32(y - h/2), X2: float32(x + w/2), Y2: float32(y + h/2),
		}, Class: class})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return truths, nil
}
