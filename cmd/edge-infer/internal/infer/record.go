package infer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	captured "github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/format"
)

// Record configures the output file. The zero value writes nothing.
type Record struct {
	Format      string // one of Formats; empty: by the suffix of Path
	Path        string // file, or directory for YOLO and maps; empty for Stdout
	Annotations string // COCO file with the ids of images and categories; may be empty
	Stdout      io.Writer
}

// The formats.
const (
	JSONLines  = "jsonl"
	COCO       = "coco"
	YOLO       = "yolo"
	YOLOScores = "yolo-scores"
	CSV        = "csv"
	MapFiles   = "map"
)

// Formats returns the names of all formats.
func Formats() []string { return []string{JSONLines, COCO, YOLO, YOLOScores, CSV, MapFiles} }

// Flags adds the flags of the output.
func (o *Record) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Format, "format", "", "output format: jsonl, the lines of --json; coco, a list of results for pycocotools; "+
		"yolo or yolo-scores, a label file per image as for Ultralytics, without or with scores; csv, a row per detection; "+
		"map, a PNG of class numbers or an NPY of depths per image, for segmentation and depth networks")
	flags.StringVarP(&o.Path, "output", "o", "", "file for --format, or directory for yolo and map; default: standard output")
	flags.StringVar(&o.Annotations, "annotations", "",
		"COCO instances file of these images with the ids for --format coco; default: ids are the numbers in file names")
}

// Check validates the settings and sets the format from the suffix of the path.
func (o *Record) Check() error {
	if o.Format == "" && o.Path != "" {
		suffixes := map[string]string{".jsonl": JSONLines, ".ndjson": JSONLines, ".json": COCO, ".csv": CSV}
		if o.Format = suffixes[strings.ToLower(filepath.Ext(o.Path))]; o.Format == "" {
			return config.Usagef("--output %s: unknown suffix, set --format %s", o.Path, strings.Join(Formats(), "|"))
		}
	}
	dir := o.Format == YOLO || o.Format == YOLOScores || o.Format == MapFiles
	switch {
	case o.Format != "" && !slices.Contains(Formats(), o.Format):
		return config.Usagef("--format %q must be one of %s", o.Format, strings.Join(Formats(), ", "))
	case dir && o.Path == "":
		return config.Usagef("--format %s writes a file per image: set the directory with --output DIR", o.Format)
	case o.Annotations != "" && o.Format != COCO:
		return config.Usagef("--annotations is for --format coco")
	case o.Path != "" && !dir:
		return atomicfile.Check(o.Path)
	}
	return nil
}

// resumable reports whether a later run can continue the output.
func (o *Record) resumable() bool { return o.Format != COCO && o.Format != CSV }

// recorder writes the results, image by image.
type recorder interface {
	add(seen *Seen) error
	// has reports whether an earlier run has completed a file.
	has(path string) bool
	// close ends the output. An incomplete output is kept only if a later run can continue it.
	close(complete bool) error
}

// open starts the output; it returns nil without an error if there is none.
func (o *Record) open(labels []string, resume bool) (recorder, error) {
	switch o.Format {
	case "":
		return nil, nil
	case JSONLines:
		if o.Path != "" {
			return openLines(o.Path, resume)
		}
		return &jsonLines{out: bufio.NewWriter(o.Stdout)}, nil
	case YOLO, YOLOScores, MapFiles:
		if err := os.MkdirAll(o.Path, 0o755); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		if o.Format == MapFiles {
			return &mapFiles{dir: o.Path, names: names{}}, nil
		}
		return &labelFiles{dir: o.Path, labels: labels, names: names{}, yolo: format.YOLO{Scores: o.Format == YOLOScores}}, nil
	}
	to, file := o.Stdout, (*atomicfile.File)(nil)
	if o.Path != "" {
		var err error
		if file, err = atomicfile.Create(o.Path, 0o644); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		to = file
	}
	d := &document{file: file, writer: &format.CSV{Writer: to, Labels: labels}}
	if o.Format == COCO {
		coco, err := o.coco(to, labels)
		if err != nil {
			return nil, errors.Join(err, d.abandon())
		}
		d.writer = coco
	}
	return d, nil
}

// coco uses the ids of the annotation file, if there is one.
func (o *Record) coco(to io.Writer, labels []string) (*format.COCO, error) {
	if o.Annotations == "" {
		return &format.COCO{Writer: to, Category: format.CategoryIDs(labels)}, nil
	}
	known, err := evaluate.ReadDataset(o.Annotations, "")
	if err != nil {
		return nil, err
	}
	if known.Categories == nil {
		return nil, fmt.Errorf("%s has no ids: not a COCO file", o.Annotations)
	}
	categories := make([]int64, len(labels))
	for class, label := range labels {
		at := slices.Index(known.Labels, label)
		if at < 0 {
			return nil, fmt.Errorf("%s has no category %q of the model's labels (restrict the output with --classes)", o.Annotations, label)
		}
		categories[class] = known.Categories[at]
	}
	ids := map[string]int64{}
	for i := range known.Images {
		ids[filepath.Base(known.Images[i].Path)] = known.Images[i].ID
	}
	return &format.COCO{
		Writer: to, Category: func(class int) int64 { return categories[class] }, ID: func(p *format.Image) any {
			if id, listed := ids[filepath.Base(p.Path)]; listed {
				return id
			}
			return format.ImageID(p)
		},
	}, nil
}

func (s *Seen) img() format.Image {
	return format.Image{
		Path: s.File, Video: !captured.IsImage(s.File), Frame: s.Frame, Width: s.Width, Height: s.Height, Detections: s.detections,
	}
}

// document is an output file that is renamed when complete.
type document struct {
	writer interface {
		Write(p *format.Image) error
		Close() error
	}
	file *atomicfile.File // nil for standard output
}

func (d *document) add(seen *Seen) error {
	p := seen.img()
	return d.writer.Write(&p)
}

func (*document) has(string) bool { return false }

func (d *document) close(complete bool) error {
	if !complete && d.file != nil {
		return d.abandon()
	}
	err := d.writer.Close()
	if err == nil && d.file != nil {
		err = d.file.Commit()
	}
	return errors.Join(err, d.abandon())
}

func (d *document) abandon() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// labelFiles writes YOLO label files. An image without detections gets an empty one.
type labelFiles struct {
	dir    string
	labels []string
	names  names
	yolo   format.YOLO
	text   []byte
}

func (l *labelFiles) path(p *format.Image) string {
	named := *p
	if p.Video {
		named.Path = l.names.ofVideo(p.Path) + ".any"
	} else {
		named.Path = l.names.of(p.Path, "") + ".any"
	}
	return filepath.Join(l.dir, l.yolo.Name(&named))
}

func (l *labelFiles) add(seen *Seen) error {
	p := seen.img()
	l.text = l.yolo.Append(l.text[:0], &p, l.labels)
	if err := atomicfile.Write(l.path(&p), l.text, 0o644); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

func (l *labelFiles) has(path string) bool {
	p := format.Image{Path: path, Video: !captured.IsImage(path)}
	file := l.path(&p) // reserves the name of a video for later images
	if p.Video {       // the number of frames is unknown
		return false
	}
	_, err := os.Stat(file)
	return err == nil
}

func (*labelFiles) close(bool) error { return nil }

// jsonLines writes one JSON line per image.
type jsonLines struct {
	file *os.File // nil for standard output
	out  *bufio.Writer
	held map[string]int // lines of an earlier run by file
}

// openLines opens a file for lines and appends to those of an earlier run. An incomplete last line is removed, and so are the lines of a
// video at the end, because it may be incomplete.
func openLines(path string, resume bool) (*jsonLines, error) {
	flags := os.O_RDWR | os.O_CREATE
	if !resume {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	l := &jsonLines{file: file, held: map[string]int{}}
	end, err := l.read()
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("output %s: %w", path, err), file.Close())
	}
	l.out = bufio.NewWriter(file)
	return l, nil
}

// read counts the lines of each file and returns the end of the lines to keep.
func (l *jsonLines) read() (end int64, err error) {
	reader := bufio.NewReader(l.file)
	last, begin := "", int64(0) // the last file, and where its lines begin
	for {
		text, err := reader.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err == io.EOF {
			break
		}
		var line struct {
			File string `json:"file"`
		}
		if json.Unmarshal(bytes.TrimSpace(text), &line) != nil || line.File == "" {
			return 0, errors.New("not an output of infer: a line without a file name (use another file, or omit --resume)")
		}
		if line.File != last {
			last, begin = line.File, end
		}
		l.held[last]++
		end += int64(len(text))
	}
	if last != "" && !captured.IsImage(last) {
		delete(l.held, last)
		return begin, nil
	}
	return end, nil
}

func (l *jsonLines) add(seen *Seen) error {
	err := json.NewEncoder(l.out).Encode(seen)
	if err == nil {
		err = l.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// has implements recorder. It counts lines, because names that differ only in invalid UTF-8 are the same in JSON.
func (l *jsonLines) has(path string) bool {
	if l.file == nil {
		return true
	}
	name := string([]rune(path)) // as JSON has it
	if l.held[name] == 0 {
		return false
	}
	if captured.IsImage(path) {
		l.held[name]--
	}
	return true
}

func (l *jsonLines) close(bool) error {
	if l.file == nil {
		return l.out.Flush()
	}
	return errors.Join(l.out.Flush(), l.file.Close())
}
