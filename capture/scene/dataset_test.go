package scene

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func written(t *testing.T, options DatasetOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, WriteDataset(context.Background(), dir, options))
	return dir
}

// contents is every file below dir by its relative path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	}))
	return files
}

func TestDatasetIsReproducible(t *testing.T) {
	options := DatasetOptions{Count: 5, Seed: 3, Width: 160, Height: 120}
	one := contents(t, written(t, options))
	before := runtime.GOMAXPROCS(1)
	two := contents(t, written(t, options))
	runtime.GOMAXPROCS(before)
	assert.Equal(t, one, two, "the number of processors must not matter")
	options.Seed = 4
	other := contents(t, written(t, options))
	assert.NotEqual(t, one["images/000000.jpg"], other["images/000000.jpg"])
	assert.Len(t, one, 2*5+2)
}

func TestLabelsAgree(t *testing.T) {
	dir := written(t, DatasetOptions{Count: 12, Seed: 1, Width: 320, Height: 200, Format: PNG})
	files := contents(t, dir)
	assert.Equal(t, "path: .\ntrain: images\nval: images\nnc: 6\nnames: [bolt, nut, washer, gear, bearing, spring]\n", files["data.yaml"])
	var c coco
	require.NoError(t, json.Unmarshal([]byte(files["annotations.json"]), &c))
	assert.InDelta(t, MinLabelledShare, c.Info.Visible, 0)
	require.Len(t, c.Categories, 6)
	for n, category := range c.Categories {
		assert.Equal(t, cocoCategory{ID: n, Name: Class(n).String()}, category)
	}
	require.Len(t, c.Images, 12)
	want := map[int][]string{}
	for n, a := range c.Annotations {
		assert.Equal(t, n+1, a.ID)
		assert.Equal(t, a.Box[2]*a.Box[3], a.Area)
		assert.Zero(t, a.Crowd)
		assert.GreaterOrEqual(t, a.Visible, MinLabelledShare)
		assert.LessOrEqual(t, a.Visible, 1.0)
		assert.True(t, a.Box[0] >= 0 && a.Box[1] >= 0 && a.Box[2] > 0 && a.Box[3] > 0 && a.Box[0]+a.Box[2] <= 320 && a.Box[1]+a.Box[3] <= 200)
		x, y, w, h := float64(a.Box[0]), float64(a.Box[1]), float64(a.Box[2]), float64(a.Box[3])
		want[a.ImageID] = append(want[a.ImageID], fmt.Sprintf("%d %.8f %.8f %.8f %.8f", a.Category, (x+w/2)/320, (y+h/2)/200, w/320, h/200))
	}
	labelled := 0
	for n, entry := range c.Images {
		assert.Equal(t, cocoImage{ID: n + 1, FileName: fmt.Sprintf("%06d.png", n), Width: 320, Height: 200}, entry)
		img, format, err := image.DecodeConfig(strings.NewReader(files["images/"+entry.FileName]))
		require.NoError(t, err)
		assert.Equal(t, "png", format)
		assert.Equal(t, [2]int{320, 200}, [2]int{img.Width, img.Height})
		text, ok := files[fmt.Sprintf("labels/%06d.txt", n)]
		require.True(t, ok)
		var lines []string
		if text != "" {
			lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
		assert.Equal(t, want[n+1], lines)
		labelled += len(lines)
	}
	assert.Equal(t, len(c.Annotations), labelled)
	assert.Positive(t, labelled)
}

// What the image holds is what the studio drew: labels of all parts that can be seen well enough, and of no other.
func TestHiddenPartsAreNotLabelled(t *testing.T) {
	const count, seed = 40, 9
	dir := written(t, DatasetOptions{Count: count, Seed: seed, Width: 128, Height: 96})
	studio, below := newStudio(newCatalogue(catalogueResolution), 128, 96), 0
	for n := range count {
		lines := 0
		for _, p := range studio.shot(seed, uint64(n)) {
			if p.Visible >= MinLabelledShare {
				lines++
			} else {
				below++
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "labels", fmt.Sprintf("%06d.txt", n)))
		require.NoError(t, err)
		assert.Equal(t, lines, strings.Count(string(text), "\n"), "image %d", n)
	}
	assert.Positive(t, below, "some part is hidden too far")
}

// With a size of their own parts are as large on a large image as on a small one.
func TestPartSize(t *testing.T) {
	for _, width := range []int{200, 800} {
		studio, parts := newStudio(newCatalogue(56), width, 600), 0
		studio.part = 40
		for n := range uint64(5) {
			for _, p := range studio.shot(1, n) {
				parts++
				assert.LessOrEqual(t, max(p.X1-p.X0, p.Y1-p.Y0), 50, "image %d", n)
			}
		}
		assert.Positive(t, parts)
	}
}

func TestDefaultsOfDataset(t *testing.T) {
	options := DatasetOptions{Count: 1}
	require.NoError(t, options.complete())
	assert.Equal(t, DatasetOptions{Count: 1, Width: 1280, Height: 720, Format: JPEG}, options)
}

func TestProgressCountsEveryImage(t *testing.T) {
	var calls []int
	written(t, DatasetOptions{Count: 6, Width: 64, Height: 64, Progress: func(done, total int) {
		assert.Equal(t, 6, total)
		calls = append(calls, done)
	}})
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6}, calls)
}

func TestDatasetErrors(t *testing.T) {
	full := t.TempDir()
	notes := filepath.Join(full, "notes.txt")
	require.NoError(t, os.WriteFile(notes, nil, 0o600))
	for _, c := range []struct {
		dir     string
		options DatasetOptions
		want    string
	}{
		{"", DatasetOptions{Count: 0}, "write dataset: count of 0 images, must be 1 to 10000000"},
		{"", DatasetOptions{Count: 10_000_001}, "write dataset: count of 10000001 images, must be 1 to 10000000"},
		{"", DatasetOptions{Count: 1, PartSize: 7}, "write dataset: parts of 7 pixels, must be 8 to 432"},
		{"", DatasetOptions{Count: 1, Width: 640}, "write dataset: image of 640x0, sides must be 64 to 8192 pixels"},
		{"", DatasetOptions{Count: 1, Format: "gif"}, `write dataset: unknown image format "gif", choose jpg or png`},
		{full, DatasetOptions{Count: 1}, "write dataset: directory " + full + " is not empty, choose a new one"},
		{notes, DatasetOptions{Count: 1}, "write dataset: open " + notes + ": not a directory"},
	} {
		dir := c.dir
		if dir == "" {
			dir = filepath.Join(t.TempDir(), "new")
		}
		err := WriteDataset(context.Background(), dir, c.options)
		require.Error(t, err)
		assert.Equal(t, c.want, strings.Replace(err.Error(), "fdopendir", "open", 1))
	}
}

func TestDatasetStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := filepath.Join(t.TempDir(), "data")
	err := WriteDataset(ctx, dir, DatasetOptions{Count: 10_000, Width: 64, Height: 64, Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	assert.NoFileExists(t, filepath.Join(dir, "annotations.json"), "an unfinished dataset has no index")
}

func TestDatasetReportsWriteErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	err := WriteDataset(context.Background(), dir, DatasetOptions{Count: 200, Width: 64, Height: 64, Progress: func(done, _ int) {
		if done == 1 {
			assert.NoError(t, os.Rename(dir, dir+"-gone")) // other files are being written
		}
	}})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Contains(t, err.Error(), "write dataset: open "+dir)
}
