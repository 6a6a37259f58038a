package samples

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/postprocess"
)

// The parts of a data set.
const (
	imagesDir    = "images"
	labelsDir    = "labels"
	description  = "data.yaml"
	imageSuffix  = ".jpg"
	labelSuffix  = ".txt"
	reserveShare = 20 // one part in so many of the file system is left free
)

// dataset is the directory of the frames. One goroutine uses it.
type dataset struct {
	directory string
	ready     bool     // files and labels are known
	labels    []string // of the classes in data.yaml: of all networks, also of earlier ones
	files     []file   // oldest first
	bytes     int64
}

// file is an image.
type file struct {
	name  string // without suffix
	bytes int64
}

// open reads what earlier runs have kept, and removes what a power cut has left half.
func (d *dataset) open() error {
	for _, dir := range []string{imagesDir, labelsDir} {
		if err := atomicfile.MkdirAll(filepath.Join(d.directory, dir), 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(d.directory, imagesDir))
	if err != nil {
		return err
	}
	if err := d.readLabels(); err != nil {
		return err
	}
	d.files, d.bytes = nil, 0
	for _, entry := range entries {
		name, image := strings.CutSuffix(entry.Name(), imageSuffix)
		info, err := entry.Info()
		if !image || err != nil {
			continue
		}
		d.files = append(d.files, file{name, info.Size()})
		d.bytes += info.Size()
	}
	slices.SortFunc(d.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	d.ready = true
	return nil
}

// add writes a frame, whose labels come first: an image without them would count as one without objects. The oldest frames make room.
func (d *dataset) add(s *sample, image []byte, most int64) error {
	err := d.write(s, image, most)
	if err != nil {
		d.ready = false // read again: somebody may have changed it
	}
	return err
}

func (d *dataset) write(s *sample, image []byte, most int64) error {
	if !d.ready {
		if err := d.open(); err != nil {
			return err
		}
	}
	if err := d.describe(s.labels); err != nil {
		return err
	}
	for len(d.files) > 0 && d.bytes+int64(len(image)) > most {
		if err := d.removeOldest(); err != nil {
			return err
		}
	}
	if err := d.checkSpace(int64(len(image))); err != nil {
		return err
	}
	name := s.name()
	if err := atomicfile.Write(d.path(labelsDir, name), s.text(d.labels), 0o600); err != nil {
		return err
	}
	if err := atomicfile.Write(d.path(imagesDir, name), image, 0o600); err != nil {
		return errors.Join(err, os.Remove(d.path(labelsDir, name)))
	}
	d.files = append(d.files, file{name, int64(len(image))})
	d.bytes += int64(len(image))
	return nil
}

func (d *dataset) path(dir, name string) string {
	suffix := imageSuffix
	if dir == labelsDir {
		suffix = labelSuffix
	}
	return filepath.Join(d.directory, dir, name+suffix)
}

// removeOldest removes the oldest frame; somebody else may have done so.
func (d *dataset) removeOldest() error {
	oldest := d.files[0]
	for _, dir := range []string{imagesDir, labelsDir} {
		if err := os.Remove(d.path(dir, oldest.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d.files = d.files[1:]
	d.bytes -= oldest.bytes
	return nil
}

// checkSpace returns an error if a file of that size leaves too little of the file system free.
func (d *dataset) checkSpace(size int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(d.directory, &s); err != nil {
		return err
	}
	free, all := int64(s.Bavail)*s.Bsize, int64(s.Blocks)*s.Bsize
	if free-size < all/reserveShare {
		return fmt.Errorf("%s: %d MiB are free of %d (set samples.max_mb to less)", d.directory, free>>20, all>>20)
	}
	return nil
}

// names is data.yaml.
type names struct {
	Train string         `yaml:"train"`
	Val   string         `yaml:"val"`
	Names map[int]string `yaml:"names"`
}

// readLabels reads the classes of earlier runs.
func (d *dataset) readLabels() error {
	path := filepath.Join(d.directory, description)
	data, err := boundedfile.Read(path, boundedfile.Small)
	d.labels = nil
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n names
	if err == nil {
		err = yaml.Unmarshal(data, &n)
	}
	for i := range len(n.Names) {
		label, there := n.Names[i]
		if !there && err == nil {
			err = fmt.Errorf("class %d has no name", i)
		}
		d.labels = append(d.labels, label)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (move the directory away to begin anew)", path, err)
	}
	return nil
}

// describe adds classes to data.yaml that are not in it.
func (d *dataset) describe(labels []string) error {
	all := slices.Clip(d.labels)
	for _, label := range labels {
		if !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	if len(all) == len(d.labels) {
		return nil
	}
	n := names{Train: imagesDir, Val: imagesDir, Names: map[int]string{}}
	for i, label := range all {
		n.Names[i] = label
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	comment := "# Frames that the network was unsure about. The labels are its own: correct them.\n"
	if err := atomicfile.Write(filepath.Join(d.directory, description), append([]byte(comment), text...), 0o600); err != nil {
		return err
	}
	d.labels = all
	return nil
}

// text returns the labels: a line for each object with its class in a list of names, and the centre, width and height of its box as shares
// of the image.
func (s *sample) text(classes []string) []byte {
	var text bytes.Buffer
	w, h := float32(s.width), float32(s.height)
	for _, o := range s.objects {
		b := postprocess.Box{X1: max(o.box.X1, 0), Y1: max(o.box.Y1, 0), X2: min(o.box.X2, w), Y2: min(o.box.Y2, h)}
		if b.X2 <= b.X1 || b.Y2 <= b.Y1 {
			continue
		}
		class := slices.Index(classes, postprocess.Label(s.labels, o.class))
		if class < 0 {
			continue // the network names fewer classes than it finds
		}
		fmt.Fprintf(&text, "%d %.6f %.6f %.6f %.6f\n", class, (b.X1+b.X2)/2/w, (b.Y1+b.Y2)/2/h, (b.X2-b.X1)/w, (b.Y2-b.Y1)/h)
	}
	return text.Bytes()
}

// Export writes a data set as a tar archive, with the frames that are there at the beginning.
func Export(directory string, out io.Writer) error {
	archive := tar.NewWriter(out)
	for _, pattern := range []string{description, labelsDir + "/*" + labelSuffix, imagesDir + "/*" + imageSuffix} {
		paths, err := filepath.Glob(filepath.Join(directory, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return err
			}
			name, err := filepath.Rel(directory, path)
			if err != nil {
				return err
			}
			head := &tar.Header{Name: "samples/" + name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}
			if info, err := os.Stat(path); err == nil {
				head.ModTime = info.ModTime()
			}
			if err := archive.WriteHeader(head); err != nil {
				return err
			}
			if _, err := archive.Write(data); err != nil {
				return err
			}
		}
	}
	return archive.Close()
}
