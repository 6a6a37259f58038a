package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// directory is a camera's. Its name begins with a word of ours, so that a camera may be called .. without harm.
func (r *Recorder) dir(camera string) string { return filepath.Join(r.Directory, "camera-"+camera) }

const suffix = ".json"

// days returns the days of a camera that have a file, oldest first.
func (r *Recorder) days(camera string) (days []string, err error) {
	if r.Directory == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(r.dir(camera))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries { // by name, which is by date
		day, ours := strings.CutSuffix(entry.Name(), suffix)
		if _, err := time.Parse(dayLayout, day); ours && err == nil {
			days = append(days, day)
		}
	}
	return days, nil
}

// read returns the file of a day; an empty day if there is none.
func (r *Recorder) read(camera, day string) (*Day, error) {
	if _, err := time.Parse(dayLayout, day); err != nil || r.Directory == "" {
		return newDay(camera, day), nil //nolint:nilerr // there is no file of such a day
	}
	data, err := os.ReadFile(filepath.Join(r.dir(camera), day+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return newDay(camera, day), nil
	}
	if err != nil {
		return nil, err
	}
	found, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(r.dir(camera), day+suffix), err)
	}
	found.Camera, found.Day = camera, day
	return found, nil
}

// maxSum is over every sum of a day that can be.
const maxSum = 1e12

var errRange = errors.New("a number is out of range")

// parse reads a file's text.
func parse(data []byte) (*Day, error) {
	found := &Day{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, err
	}
	found.fillDefaults()
	for _, c := range found.Hours {
		for _, z := range c.Zones {
			if !(z.Dwell >= 0 && z.Dwell < maxSum) {
				return nil, errRange
			}
		}
		if !(c.Way.Distance >= 0 && c.Way.Distance < maxSum && c.Way.Time >= 0 && c.Way.Time < maxSum) {
			return nil, errRange
		}
	}
	for _, seconds := range found.Heat {
		if !(seconds >= 0 && seconds < maxSum) {
			return nil, errRange
		}
	}
	return found, nil
}

// write adds a part of a day to its file, and removes the files of days that are too long ago. A file that cannot be understood is put
// aside.
func (r *Recorder) write(part *Day) error {
	path := filepath.Join(r.dir(part.Camera), part.Day+suffix)
	whole, err := r.read(part.Camera, part.Day)
	if err != nil {
		r.Logger.Warn("counts of a day are damaged and put aside", "error", err)
		if err := os.Rename(path, path+".damaged"); err != nil {
			return err
		}
		whole = newDay(part.Camera, part.Day)
	}
	whole.add(part)
	data, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir(part.Camera), 0o750); err != nil {
		return err
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o640); err != nil {
		return err
	}
	days, err := r.days(part.Camera)
	if err != nil {
		return err
	}
	for len(days) > max(r.Days, 1) {
		if err := os.Remove(filepath.Join(r.dir(part.Camera), days[0]+suffix)); err != nil {
			return err
		}
		days = days[1:]
	}
	return nil
}
