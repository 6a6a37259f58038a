package evaluate

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// TestLabelsAsProgramsWriteThem: classes as floating-point numbers, coordinates that rounding moved out of the image and a byte-order
// mark are read.
func TestLabelsAsProgramsWriteThem(t *testing.T) {
	box := postprocess.Box{X1: 40, Y1: 40, X2: 60, Y2: 60}
	for text, want := range map[string]postprocess.Box{
		"58.0 0.5 0.5 0.2 0.2":                 box,
		"5.8e1 0.5 0.5 0.2 0.2":                box,
		"\uFEFF58 0.5 0.5 0.2 0.2":             box,
		"\uFEFF58.0 0.5 0.5 0.2 0.2\r\n":       box,
		"58 0.5 0.5 1.01 0.2":                  {X1: -0.5, Y1: 40, X2: 100.5, Y2: 60},
		"58 -0.01 0.5 0.2 0.2":                 {X1: -11, Y1: 40, X2: 9, Y2: 60},
		"58 0.5 0.5 -0.001 0.2":                {X1: 50, Y1: 40, X2: 50, Y2: 60},
		"58 -0.01 0.4 1.01 0.4 1.0 0.6":        {X1: 0, Y1: 40, X2: 100, Y2: 60},
		"58 0.5 0.5 0.2 0.2\n58.0 .5 .5 .2 .2": box,
	} {
		truths, err := lineFormat{}.parse("a.txt", []byte(text), 100, 100)
		require.NoError(t, err, text)
		require.Len(t, truths, 1, text)
		assert.Equal(t, 58, truths[0].Class, text)
		for i, pair := range [][2]float32{{want.X1, truths[0].X1}, {want.Y1, truths[0].Y1}, {want.X2, truths[0].X2}, {want.Y2, truths[0].Y2}} {
			assert.InDelta(t, pair[0], pair[1], 1e-3, "%s %d", text, i)
		}
	}
	for text, want := range map[string]string{
		"58.5 0.5 0.5 0.2 0.2":   `a.txt:1: class "58.5" is not a number from 0 to 65535`,
		"nan 0.5 0.5 0.2 0.2":    `a.txt:1: class "nan" is not a number from 0 to 65535`,
		"1e9 0.5 0.5 0.2 0.2":    `a.txt:1: class "1e9" is not a number from 0 to 65535`,
		"58 0.5 0.5 1.02 0.2":    `a.txt:1: "1.02" is not a share of the image from 0 to 1`,
		"58 0.5 -0.02 0.2 0.2":   `a.txt:1: "-0.02" is not a share of the image from 0 to 1`,
		"58 0.5 0.5 1.02 \uFEFF": `a.txt:1: "1.02" is not a share of the image from 0 to 1`,
	} {
		_, err := lineFormat{}.parse("a.txt", []byte(text), 100, 100)
		require.EqualError(t, err, want, text)
	}
}

// TestFewBadImagesAreLeftOut: up to 1 % of images with a bad line, or without an image, are left out, counted and named; more are an error
// with the first one.
func TestFewBadImagesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		writeImage(t, dir, fmt.Sprintf("images/%03d.png", i), 20, 10)
		write(t, dir, fmt.Sprintf("labels/%03d.txt", i), "0 0.5 0.5 0.2 0.2\n")
	}
	write(t, dir, "data.yaml", "val: images\nnames: [bolt]")
	write(t, dir, "labels/007.txt", "0 0.5 0.5 0.2 0.2\n1 0.5 0.5 0.2 0.2\n")
	write(t, dir, "images/100.png", "no image")
	first := filepath.Join(dir, "labels", "007.txt") + ":2: class 1, the data set names 1, from 0 on (add its name, or correct the line)"
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	assert.Len(t, dataset.Images, 198)
	assert.Equal(t, []string{"2 of 200 images, the first: " + first}, dataset.Ignored)

	write(t, dir, "labels/150.txt", "0 0.5 0.5 0.2\n")
	_, err = ReadDataset(dir, "")
	require.EqualError(t, err, "read dataset: "+first+", and 2 more of 200 images")
}

// TestFewBadAnnotationsAreLeftOut is the same for a COCO file.
func TestFewBadAnnotationsAreLeftOut(t *testing.T) {
	const count = 200
	file := func(changes map[int]string, images map[int]string) []byte {
		var entries, annotations []string
		for i := range count {
			img := fmt.Sprintf(`{"id":%d,"file_name":"%d.png","width":20,"height":10}`, i, i)
			if changed, ok := images[i]; ok {
				img = changed
			}
			entries = append(entries, img)
			annotation := fmt.Sprintf(`{"image_id":%d,"category_id":1,"bbox":[1,2,3,4]}`, i)
			if changed, ok := changes[i]; ok {
				annotation = changed
			}
			annotations = append(annotations, annotation)
		}
		return []byte("\uFEFF{\"images\":[" + strings.Join(entries, ",\n") + "],\n" + `"categories":[{"id":1,"name":"bolt"}],` +
			"\n\"annotations\":[" + strings.Join(annotations, ",\n") + "]}")
	}
	for bad, reason := range map[string]string{
		`{"image_id":9,"category_id":1}`:                                           "bbox [] is not x, y, width, height in pixels",
		`{"image_id":9,"category_id":1,"bbox":null}`:                               "bbox [] is not x, y, width, height in pixels",
		`{"image_id":9,"category_id":1,"bbox":[1,2,-3,4]}`:                         "bbox [1 2 -3 4] is not x, y, width, height in pixels",
		`{"image_id":9,"category_id":8,"bbox":[1,2,3,4]}`:                          "category 8 is not in the list of categories",
		`{"image_id":9,"category_id":1,"bbox":"none"}`:                             "cannot unmarshal string",
		`{"image_id":9,"category_id":1,"bbox":[1,2,3,4],"segmentation":[[1,2,3]]}`: "segmentation: ",
		`{"image_id":9,"category_id":1,"bbox":[1,2,3,4],"keypoints":[1,2]}`:        "keypoints: ",
	} {
		dataset, err := parseCOCO("a.json", file(map[int]string{9: bad}, nil))
		require.NoError(t, err, bad)
		require.Len(t, dataset.Images, count)
		require.Empty(t, dataset.Images[9].Truths)
		require.Len(t, dataset.Images[10].Truths, 1)
		require.Len(t, dataset.Ignored, 1)
		assert.Contains(t, dataset.Ignored[0], "1 of 200 annotations, the first: a.json:211: "+reason, bad)
		_, err = parseCOCO("a.json", file(map[int]string{9: bad, 10: bad, 11: bad}, nil))
		require.ErrorContains(t, err, "a.json:211: "+reason, bad)
		require.ErrorContains(t, err, ", and 2 more of 200 annotations", bad)
	}
	for bad, reason := range map[string]string{
		`{"id":9,"width":20,"height":10}`:                       "a.json:10: image 9 needs file_name, width and height",
		`{"id":9,"file_name":"a.png"}`:                          "a.json:10: image 9 needs file_name, width and height",
		`{"id":999,"file_name":"a.png","width":2,"height":2}`:   "a.json:211: annotation of image 9, which is not in the list of images",
		`{"id":9,"file_name":"a.png","width":"2","height":"2"}`: "a.json:10: cannot unmarshal string",
	} {
		dataset, err := parseCOCO("a.json", file(nil, map[int]string{9: bad}))
		require.NoError(t, err, bad)
		require.Len(t, dataset.Ignored, 1, bad)
		assert.Regexp(t, `^1 of \d+ images, the first: `+regexp.QuoteMeta(reason), dataset.Ignored[0], bad)
	}
}
